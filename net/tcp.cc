#include "net/tcp.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include "base/error.h"
#include "net/address.h"

namespace dtrain::net {
namespace {

SocketAddress SocketAddressOf(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  path.copy(name.sun_path, sizeof(name.sun_path) - 1);
  SocketAddress address;
  std::memcpy(&address.bytes, &name, sizeof(name));
  address.size = sizeof(name);
  return address;
}

}  // namespace

Resolved Resolve(const Address& address) {
  if (!address.path.empty()) return {{SocketAddressOf(address.path)}, ""};
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (address.is_name ? 0 : AI_NUMERICHOST);
  addrinfo* list = nullptr;
  const int code = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &list);
  Resolved resolved;
  if (code != 0) {
    resolved.error = gai_strerror(code);
    return resolved;
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    SocketAddress found;
    std::memcpy(&found.bytes, entry->ai_addr, entry->ai_addrlen);
    found.size = entry->ai_addrlen;
    resolved.addresses.push_back(found);
  }
  std::stable_partition(resolved.addresses.begin(), resolved.addresses.end(),
                        [](const SocketAddress& found) { return found.bytes.ss_family == AF_INET; });
  return resolved;
}

std::string SocketAddressText(const SocketAddress& address) {
  const int family = address.bytes.ss_family;
  if (family == AF_UNIX)
    return std::string("unix:") + reinterpret_cast<const sockaddr_un*>(&address.bytes)->sun_path;
  if (family != AF_INET && family != AF_INET6) return "";
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  const int code = getnameinfo(address.get(), address.size, host, sizeof(host), port, sizeof(port),
                               NI_NUMERICHOST | NI_NUMERICSERV);
  if (code != 0) return "";
  return family == AF_INET6 ? "[" + std::string(host) + "]:" + port : std::string(host) + ":" + port;
}

namespace {

constexpr int kBacklog = 4096;  // a whole cluster may connect at once, beside strangers

// The processes that may be whose port it is: " (pid 1234)"; empty: none can be seen. /proc/net/tcp has the
// socket of each port (proc(5)), and a process the links to its sockets.
std::string WhoListens(uint16_t port) {
  std::set<std::string> sockets;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(table);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream fields(line);
      std::string number, local, remote, state, other, inode;
      fields >> number >> local >> remote >> state;
      for (int i = 0; i < 6; ++i) fields >> (i == 5 ? inode : other);
      const size_t colon = local.rfind(':');
      constexpr char kListens[] = "0A";
      if (state != kListens || colon == std::string::npos) continue;
      if (std::strtoul(local.c_str() + colon + 1, nullptr, 16) == port)
        sockets.insert("socket:[" + inode + "]");
    }
  }
  using Entries = std::filesystem::directory_iterator;
  std::error_code ignored;  // of processes that end meanwhile, or are another user's
  for (Entries process("/proc", ignored); process != Entries(); process.increment(ignored)) {
    const std::string pid = process->path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    for (Entries open(process->path() / "fd", ignored); open != Entries(); open.increment(ignored)) {
      const std::string target = std::filesystem::read_symlink(open->path(), ignored).string();
      if (sockets.count(target) != 0) return " (pid " + pid + ")";
    }
  }
  return "";
}

std::string Remedy(int error_number, uint16_t port) {
  switch (error_number) {
    case EADDRINUSE:
      return "Another program" + WhoListens(port) +
             " has this port; stop it or name another port in cluster.ps.";
    case EADDRNOTAVAIL:
      return "This host does not have that address; run this task on its own host, or name an address of "
             "this host in net.bind.";
    case EACCES:
      return "Ports below 1024 are reserved; name another port in cluster.ps.";
    default:
      return "Name another address in cluster.ps or net.bind.";
  }
}

// Returns the descriptor, or -1 with errno set.
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
  const Address parsed = ParseAddress(address);
  const Resolved resolved = Resolve(parsed);
  if (resolved.addresses.empty()) {
    throw UserError(
        "{}: cannot listen: {}. The name of this host is not known here; correct cluster.ps, or name an "
        "address of this host in net.bind.",
        address, resolved.error);
  }
  int error_number = 0;
  for (const SocketAddress& candidate : resolved.addresses) {
    const int descriptor = ListenOne(candidate);
    if (descriptor >= 0) return descriptor;
    if (error_number == 0) error_number = errno;  // of the first address, which is the one that people mean
  }
  throw UserError("{}: cannot listen: {}. {}", address, ErrnoText(error_number),
                  Remedy(error_number, parsed.port));
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
        "descriptor {}: not a listening socket. Hand over one that bind() and listen() were called on.",
        descriptor);
  }
  return text;
}

int MillisecondsUntil(TimePoint deadline, TimePoint now) {
  constexpr int64_t kMaxWaitMs = 3'600'000;
  if (deadline <= now) return 0;
  return static_cast<int>(std::min(std::chrono::ceil<milliseconds>(deadline - now).count(), kMaxWaitMs));
}

namespace {

// Returns 0, or the errno of the connection begun on `descriptor`.
int WaitForConnection(int descriptor, TimePoint deadline) {
  while (true) {
    pollfd item = {descriptor, POLLOUT, 0};
    const int ready = poll(&item, 1, MillisecondsUntil(deadline, Clock::now()));
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

int64_t RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t most = std::min<rlim_t>(limit.rlim_max, kMaxDescriptors);
  if (limit.rlim_cur < most) {
    limit.rlim_cur = most;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, kMaxDescriptors));
}

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
