#include "trainer/monitor/metrics_port.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "net/tcp.h"

namespace dtrain {
namespace {

// A connection to a port of this host.
int ConnectTo(const std::string& address) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  // A failure, and not a wait without end, if nobody answers.
  const timeval patience{60, 0};
  REQUIRE(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
  return fd;
}

// All that comes until the other side closes.
std::string ReadAll(int fd) {
  std::string all;
  char part[4096];
  for (ssize_t got; (got = recv(fd, part, sizeof part, 0)) > 0;) all.append(part, static_cast<size_t>(got));
  return all;
}

TEST_CASE("metrics port: readers who say nothing, or only begin to, keep no other out") {
  constexpr milliseconds kForEver{3'600'000};
  const MetricsPort port(
      net::Listen("127.0.0.1:0"), "", [] { return std::string("figure 1\n"); }, kForEver);
  std::vector<int> silent;
  for (size_t i = 0; i < 3 * MetricsPort::kMaxReaders; ++i) {
    silent.push_back(ConnectTo(port.address()));
    if (i % 2 == 0) CHECK(send(silent.back(), "GET /", 5, MSG_NOSIGNAL) == 5);
  }
  const FileDescriptor reader(ConnectTo(port.address()));
  const std::string_view request = "GET /metrics HTTP/1.1\r\n\r\n";
  REQUIRE(send(reader.get(), request.data(), request.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(request.size()));
  const std::string answer = ReadAll(reader.get());
  CHECK(answer.find("HTTP/1.1 200 OK\r\n") == 0);
  CHECK(answer.find("figure 1\n") != std::string::npos);
  for (const int fd : silent) close(fd);
}

}  // namespace
}  // namespace dtrain
