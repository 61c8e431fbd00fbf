#include "bench/limit/client_processes.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "bench/limit/raw_socket.h"

namespace dtrain::bench {
namespace {

constexpr ssize_t kEndpointBytes = 256;
using Endpoint = std::array<char, kEndpointBytes>;

}  // namespace

ClientProcesses::ClientProcesses(int64_t count, const std::function<void(const std::string& endpoint)>& run)
    : count_(count) {
  if (pipe(pipe_) != 0) FailRaw("pipe");
  for (int64_t i = 0; i < count; ++i) {
    if (fork() != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Endpoint endpoint{};
    if (read(pipe_[0], endpoint.data(), endpoint.size()) != kEndpointBytes) std::_Exit(1);
    run(endpoint.data());
    std::_Exit(0);
  }
}

void ClientProcesses::Begin(const std::string& endpoint) {
  Endpoint bytes{};
  endpoint.copy(bytes.data(), bytes.size() - 1);
  for (int64_t i = 0; i < count_; ++i) {
    if (write(pipe_[1], bytes.data(), bytes.size()) != kEndpointBytes) FailRaw("write");
  }
}

void ClientProcesses::Wait() {
  while (wait(nullptr) > 0) {
  }
}

ClientProcesses::~ClientProcesses() {
  close(pipe_[0]);
  close(pipe_[1]);
}

}  // namespace dtrain::bench
