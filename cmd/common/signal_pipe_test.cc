#include "cmd/common/signal_pipe.h"

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
  std::this_thread::sleep_for(2 * SignalPipe::kDuplicateWindow);
  raise(SIGINT);
  CHECK(pipe.Take() == SIGINT);
}

TEST_CASE("signal pipe: SIGHUP is no second one, and neither is one that comes with it") {
  SignalPipe pipe({SIGINT, SIGTERM, SIGHUP});
  raise(SIGHUP);
  raise(SIGTERM);
  CHECK(pipe.Take() == SIGHUP);
  CHECK(pipe.Take() == 0);
  std::this_thread::sleep_for(2 * SignalPipe::kDuplicateWindow);
  raise(SIGHUP);
  CHECK(pipe.Take() == 0);
  std::this_thread::sleep_for(2 * SignalPipe::kDuplicateWindow);
  raise(SIGTERM);
  raise(SIGHUP);
  CHECK(pipe.Take() == SIGTERM);
  CHECK(pipe.Take() == 0);
}

TEST_CASE("signal pipe: SIGHUP that was ignored stays so, and SIGINT and SIGTERM do not") {
  struct sigaction now {};
  for (const int each : {SIGHUP, SIGINT, SIGTERM}) signal(each, SIG_IGN);
  {
    SignalPipe pipe({SIGINT, SIGTERM, SIGHUP});
    raise(SIGHUP);
    CHECK(pipe.Take() == 0);
    raise(SIGINT);
    CHECK(pipe.Take() == SIGINT);
  }
  sigaction(SIGHUP, nullptr, &now);
  CHECK((now.sa_handler == SIG_IGN));
  signal(SIGHUP, SIG_DFL);
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
