#include "trainer/ps/run_stop.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <string>

#include "base/error.h"
#include "trainer/result/run_summary.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

// A run that SIGTERM is to stop.
class Stopped {
 public:
  explicit Stopped(const std::string& dir) : config_(LinearCluster(1, 2, 10)) {
    config_.checkpoint.dir = dir;
    config_.failure.grace_s = 10;
    members_.Worker(1)->taken = 4;
    stop_.Ask(SIGTERM, now_);
  }
  std::string OverdueAfter(int seconds) const { return stop_.Overdue(now_ + std::chrono::seconds(seconds)); }
  RunStopped End(const RunStop::Reached& reached, const std::string& unsaved) const {
    try {
      stop_.End(reached, unsaved);
    } catch (const RunStopped& stopped) {
      return stopped;
    }
  }

  RunHistory history;

 private:
  Config config_;
  const TimePoint now_ = Clock::now();
  Membership members_{config_, {Role::kPs, 0}};
  Logger log_{"ps 0", {}};
  RunStop stop_{config_, members_, history, log_};
};

TEST_CASE("run stop: saving has all but a tenth of failure.grace_s") {
  const Stopped run("ckpt");
  CHECK(run.OverdueAfter(9).empty());
  CHECK(run.OverdueAfter(10) == "it took longer than 9.0 s (failure.grace_s)");
}

TEST_CASE("run stop: a run that is saved ends with the signal's code and the checkpoint's step") {
  Stopped run("ckpt");
  run.history.checkpoint = "ckpt/step-7";
  const RunStopped end = run.End({8, 7, false}, "");
  CHECK(end.code() == static_cast<ExitCode>(128 + SIGTERM));
  CHECK(std::string(end.what()) ==
        "stopped by SIGTERM at global step 7; the newest checkpoint is ckpt/step-7");
  CHECK(end.summary().status == "stopped");
  CHECK(end.summary().global_step == 7);
  CHECK(end.summary().local_steps == std::vector<int64_t>{0, 4});
}

TEST_CASE("run stop: one that is stopped while it goes back says what the loss has cost") {
  Stopped run("ckpt");
  run.history.begun = true;
  run.history.checkpoint = "ckpt/step-7";
  run.history.checkpoint_step = 7;
  run.history.lost_step = 9;
  const RunStopped end = run.End({0, -1, true}, "");
  CHECK(end.code() == static_cast<ExitCode>(128 + SIGTERM));
  CHECK(std::string(end.what()) ==
        "stopped by SIGTERM at global step 7; the newest checkpoint is ckpt/step-7; 2 steps behind it are "
        "lost");
  CHECK(end.summary().global_step == 7);
}

TEST_CASE("run stop: a run that could not be saved fails, and says why and what there is") {
  Stopped run("ckpt");
  run.history.checkpoint = "ckpt/step-7";
  const RunStopped end = run.End({8, 7, false}, "the disk is full");
  CHECK(end.code() == ExitCode::kInternal);
  CHECK(std::string(end.what()) ==
        "stopped by SIGTERM at global step 8; nothing was saved: the disk is full; the newest checkpoint is "
        "ckpt/step-7");
}

TEST_CASE("run stop: without checkpoint.dir nothing is saved") {
  CHECK(std::string(Stopped("").End({3, -1, false}, "").what()) ==
        "stopped by SIGTERM at global step 3; nothing was saved: there is no checkpoint.dir");
}

TEST_CASE("run stop: before its first step a run leaves the directory as it is") {
  const RunStopped end = Stopped("ckpt").End({0, -1, true}, "");
  CHECK(end.code() == static_cast<ExitCode>(128 + SIGTERM));
  CHECK(std::string(end.what()) ==
        "stopped by SIGTERM before a step was taken; what is in ckpt stays as it is");
}

}  // namespace
}  // namespace dtrain
