#include "bench/limit/run.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "bench/limit/client.h"
#include "bench/limit/raw_socket.h"

namespace dtrain::bench {
namespace {

constexpr ssize_t kEndpointBytes = 256;
using Endpoint = std::array<char, kEndpointBytes>;

// The endpoint comes through a pipe: clients are forked before there is a context, since threads do not
// survive a fork.
void StartClients(const LimitPlan& plan, const int (&pipe)[2]) {
  for (int64_t i = 0; i < plan.clients; ++i) {
    if (fork() != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Endpoint endpoint{};
    if (read(pipe[0], endpoint.data(), endpoint.size()) != kEndpointBytes) std::_Exit(1);
    RunLimitClient(plan, endpoint.data());
    std::_Exit(0);
  }
}

}  // namespace

LimitResult RunLimit(const LimitPlan& plan) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) FailRaw("pipe");
  StartClients(plan, pipe_ends);
  RawSocket socket(ZMQ_ROUTER);
  LimitServer server(plan, socket);
  const std::string bound = socket.Bind();
  Endpoint endpoint{};
  bound.copy(endpoint.data(), endpoint.size() - 1);
  for (int64_t i = 0; i < plan.clients; ++i) {
    if (write(pipe_ends[1], endpoint.data(), endpoint.size()) != kEndpointBytes) FailRaw("write");
  }
  const LimitResult result = server.Run();
  while (wait(nullptr) > 0) {
  }
  return result;
}

}  // namespace dtrain::bench
