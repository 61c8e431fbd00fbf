#include "net/probe.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "net/address.h"
#include "net/resolve.h"

namespace dtrain::net {
namespace {

// 0, or the errno of the connection that was begun on `descriptor`.
int WaitForConnection(int descriptor, TimePoint deadline) {
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
    pollfd item = {descriptor, POLLOUT, 0};
    const int ready = poll(&item, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 3'600'000)));
    if (ready > 0) break;
    if (ready == 0) return ETIMEDOUT;
    if (errno != EINTR) return errno;
  }
  int error_number = 0;
  socklen_t size = sizeof(error_number);
  getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error_number, &size);
  return error_number;
}

int TryConnect(const SocketAddress& address, TimePoint deadline) {
  const int descriptor = socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return errno;
  int error_number = connect(descriptor, address.get(), address.size) == 0 ? 0 : errno;
  if (error_number == EINPROGRESS) error_number = WaitForConnection(descriptor, deadline);
  close(descriptor);
  return error_number;
}

ProbeStatus StatusOf(int error_number) {
  switch (error_number) {
    case 0:
      return ProbeStatus::kOpen;
    case ECONNREFUSED:
      return ProbeStatus::kRefused;
    case ETIMEDOUT:
    case EHOSTUNREACH:
      return ProbeStatus::kNoAnswer;
    default:
      return ProbeStatus::kOther;
  }
}

}  // namespace

ProbeResult Probe(const std::string& address, milliseconds timeout) {
  const Resolved resolved = Resolve(ParseAddress(address));
  if (resolved.addresses.empty()) return {ProbeStatus::kNameNotFound, resolved.error};
  const TimePoint deadline = Clock::now() + timeout;
  ProbeResult first;
  for (const SocketAddress& candidate : resolved.addresses) {
    const int error_number = TryConnect(candidate, deadline);
    if (error_number == 0) return {ProbeStatus::kOpen, ""};
    if (first.text.empty()) first = {StatusOf(error_number), ErrnoText(error_number)};
  }
  return first;
}

}  // namespace dtrain::net
