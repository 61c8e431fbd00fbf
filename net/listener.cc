#include "net/listener.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "net/address.h"
#include "net/resolve.h"

namespace dtrain::net {
namespace {

constexpr int kBacklog = 1024;  // a whole cluster may connect at once; the kernel may hold it lower

const char* Remedy(int error_number) {
  switch (error_number) {
    case EADDRINUSE:
      return "Another program has this port; stop it or name another port in cluster.ps.";
    case EADDRNOTAVAIL:
      return "This host does not have that address; run this task on its own host, or name an address of "
             "this "
             "host in net.bind.";
    case EACCES:
      return "Ports below 1024 are reserved; name another port in cluster.ps.";
    default:
      return "Name another address in cluster.ps or net.bind.";
  }
}

// The descriptor, or -1 with errno.
int ListenOne(const SocketAddress& address) {
  const int descriptor = socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return -1;
  const int on = 1;
  const int off = 0;
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));  // a restart need not wait for TIME_WAIT
  if (address.bytes.ss_family == AF_INET6) {
    setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));  // [::] means every address
  }
  if (bind(descriptor, address.get(), address.size) == 0 && listen(descriptor, kBacklog) == 0)
    return descriptor;
  const int error_number = errno;
  close(descriptor);
  errno = error_number;
  return -1;
}

}  // namespace

int Listen(const std::string& address) {
  const Resolved resolved = Resolve(ParseAddress(address));
  if (resolved.addresses.empty()) {
    throw UserError(
        "{}: cannot listen: {}. The name of this host is not known here; correct cluster.ps, or name an "
        "address "
        "of this host in net.bind.",
        address, resolved.error);
  }
  int error_number = 0;
  for (const SocketAddress& candidate : resolved.addresses) {
    const int descriptor = ListenOne(candidate);
    if (descriptor >= 0) return descriptor;
    if (error_number == 0) error_number = errno;  // of the first, which is the one that people mean
  }
  throw UserError("{}: cannot listen: {}. {}", address, ErrnoText(error_number), Remedy(error_number));
}

std::string ListeningAddress(int descriptor) {
  int listens = 0;
  socklen_t size = sizeof(listens);
  const bool asked = getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0;
  SocketAddress address;
  address.size = sizeof(address.bytes);
  std::string text;
  if (asked && listens != 0 &&
      getsockname(descriptor, reinterpret_cast<sockaddr*>(&address.bytes), &address.size) == 0) {
    text = SocketAddressText(address);
  }
  if (text.empty()) {
    throw UserError(
        "descriptor {}: not a listening TCP socket. Hand over one that bind() and listen() were called on.",
        descriptor);
  }
  return text;
}

}  // namespace dtrain::net
