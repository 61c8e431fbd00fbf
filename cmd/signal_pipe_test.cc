#include "cmd/signal_pipe.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <thread>

namespace dtrain {
namespace {

TEST_CASE("signal pipe: one that comes twice at once, as from timeout(1), is one") {
  SignalPipe pipe({SIGINT, SIGTERM});
  raise(SIGTERM);
  raise(SIGTERM);
  CHECK(pipe.Take() == SIGTERM);
  CHECK(pipe.Take() == 0);
}

TEST_CASE("signal pipe: another one, and the same one later, are a second") {
  SignalPipe pipe({SIGINT, SIGTERM});
  raise(SIGTERM);
  raise(SIGINT);
  CHECK(pipe.Take() == SIGTERM);
  CHECK(pipe.Take() == SIGINT);
  std::this_thread::sleep_for(2 * SignalPipe::kTwin);
  raise(SIGINT);
  CHECK(pipe.Take() == SIGINT);
}

TEST_CASE("signal pipe: of other signals each one is told") {
  SignalPipe pipe({SIGCHLD});
  raise(SIGCHLD);
  raise(SIGCHLD);
  CHECK(pipe.Take() == SIGCHLD);
  CHECK(pipe.Take() == SIGCHLD);
  CHECK(pipe.Take() == 0);
}

}  // namespace
}  // namespace dtrain
