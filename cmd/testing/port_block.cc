#include "cmd/testing/port_block.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"

namespace dtrain::testing {

PortBlock::PortBlock(const std::vector<std::string>& hosts, int count, int first, int step, int tries) {
  const int start = static_cast<int>(getpid()) % tries;  // two tests at once begin at other ones
  for (int i = 0; i < tries; ++i) {
    first_ = first + (start + i) % tries * step;
    if (Take(hosts, count)) return;
    Free();
  }
  DT_CHECK(false, first, step, tries);
}

PortBlock::~PortBlock() { Free(); }

bool PortBlock::Take(const std::vector<std::string>& hosts, int count) {
  for (const std::string& host : hosts) {
    for (int port = first_; port < first_ + count; ++port) {
      const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      sockets_.push_back(fd);
      sockaddr_in address{};
      address.sin_family = AF_INET;
      address.sin_port = htons(static_cast<uint16_t>(port));
      DT_CHECK(inet_pton(AF_INET, host.c_str(), &address.sin_addr) == 1, host);
      if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return false;
      // Only now: a port that another one keeps like this is not got, and who listens at ours may bind it
      // too.
      const int on = 1;
      setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    }
  }
  return true;
}

void PortBlock::Free() {
  for (const int fd : sockets_) close(fd);
  sockets_.clear();
}

}  // namespace dtrain::testing
