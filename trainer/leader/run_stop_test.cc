#include "trainer/leader/run_stop.h"

#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <string>

#include "base/error.h"
#include "trainer/peer/abort.h"
#include "trainer/ps/ps_test_util.h"
#include "trainer/result/run_summary.h"
#include "trainer/testing/fake_channel.h"
#include "trainer/testing/flood_channel.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

// A run that gets SIGTERM.
class Stopped {
 public:
  explicit Stopped(const std::string& dir, const RunHistory& history = {}, bool by_fault = false)
      : history_(history), config_(LinearCluster(1, 2, 10)) {
    config_.checkpoint.dir = dir;
    config_.failure.grace_s = 10;
    members_.Worker(1)->taken = 4;
    members_.Worker(1)->lost = true;
    by_fault ? stop_.AskForFault("worker 1 (b:3; node1, pid 4)", "with exit code 2: a.csv:5:2: bad.", now_)
             : stop_.Ask(SIGTERM, "worker 0 (b:2; node1, pid 3)", now_);
  }
  std::string OverdueAfter(int seconds) const { return stop_.Overdue(now_ + std::chrono::seconds(seconds)); }
  RunStopped End(const RunStop::Reached& reached, const std::string& unsaved) const {
    try {
      stop_.End(reached, unsaved);
    } catch (const RunStopped& stopped) {
      return stopped;
    }
  }

 private:
  const RunHistory history_;
  Config config_;
  const TimePoint now_ = Clock::now();
  TaskTable members_{config_, {Role::kPs, 0}};
  Logger log_{"ps 0", {}};
  RunStop stop_{config_, members_, history_, log_};
};

TEST_CASE("run stop: saving has all but a tenth of failure.grace_s") {
  const Stopped run("ckpt");
  CHECK(run.OverdueAfter(9).empty());
  CHECK(run.OverdueAfter(10) == "it took longer than 9 s (failure.grace_s)");
}

TEST_CASE("run stop: for a fault it ends with that, and says what was saved and how to go on") {
  const std::string fault = "worker 1 (b:3; node1, pid 4) ended the run with exit code 2: a.csv:5:2: bad.";
  RunHistory saved;
  saved.checkpoint = "ckpt/step-7";
  saved.checkpoint_step = 7;
  const auto text = [&](const RunStop::Reached& reached, const std::string& unsaved) {
    const Stopped run("ckpt", saved, /*by_fault=*/true);
    CHECK(run.OverdueAfter(9).empty());
    CHECK_FALSE(run.OverdueAfter(10).empty());
    try {
      run.End(reached, unsaved);
    } catch (const RunEnded& ended) {
      CHECK(ended.cause() == ExitCode::kUser);
      return std::string(ended.what());
    }
    return std::string();
  };
  CHECK(text({8, 7, false}, "") == fault +
                                       " The run stopped at global step 7; the newest checkpoint is "
                                       "ckpt/step-7; 1 step behind it is lost. Start it again to go on from "
                                       "there.");
  CHECK(
      text({9, 7, false}, "the disk is full") ==
      fault +
          " The run stopped at global step 9; nothing was saved: the disk is full; the newest checkpoint is "
          "ckpt/step-7; 2 steps behind it are lost. Start it again to go on from there.");
}

TEST_CASE("run stop: how it ends, and what it says") {
  constexpr auto kSignal = static_cast<ExitCode>(128 + SIGTERM);
  RunHistory saved, goes_back;
  saved.checkpoint = goes_back.checkpoint = "ckpt/step-7";
  goes_back.begun = true;
  saved.checkpoint_step = goes_back.checkpoint_step = 7;
  goes_back.lost_step = 9;
  const struct {
    std::string dir;
    RunHistory history;
    RunStop::Reached reached;
    std::string unsaved;
    ExitCode code;
    int64_t global_step;
    std::string text;
  } cases[] = {
      {"ckpt",
       saved,
       {8, 7, false},
       "",
       kSignal,
       7,
       "at global step 7; the newest checkpoint is ckpt/step-7"},
      {"ckpt",
       goes_back,
       {0, -1, true},
       "",
       kSignal,
       7,
       "at global step 7; the newest checkpoint is ckpt/step-7; 2 steps behind it are lost"},
      {"ckpt",
       saved,
       {9, 7, false},
       "the disk is full",
       ExitCode::kInternal,
       9,
       "at global step 9; nothing was saved: the disk is full; the newest checkpoint is ckpt/step-7; 2 steps "
       "behind it are lost"},
      {"ckpt",
       {},
       {9, -1, false},
       "the disk is full",
       ExitCode::kInternal,
       9,
       "at global step 9; nothing was saved: the disk is full; there is no checkpoint; 9 steps are lost"},
      {"",
       {},
       {3, -1, false},
       "",
       ExitCode::kInternal,
       3,
       "at global step 3; nothing was saved: there is no checkpoint.dir"},
      {"ckpt", {}, {0, -1, true}, "", kSignal, 0, "before a step was taken; what is in ckpt stays as it is"},
  };
  for (const auto& each : cases) {
    CAPTURE(each.text);
    const RunStopped end = Stopped(each.dir, each.history).End(each.reached, each.unsaved);
    CHECK(end.what() == "stopped by SIGTERM to worker 0 (b:2; node1, pid 3) " + each.text);
    CHECK(end.code() == each.code);
    CHECK(end.summary().status == "stopped");
    CHECK(end.summary().lost_workers == std::vector<int64_t>{1});
    CHECK(end.summary().global_step == each.global_step);
    const bool goes_back = each.history.begun;
    CHECK(end.summary().local_steps == (goes_back ? std::vector<int64_t>() : std::vector<int64_t>{0, 4}));
  }
}

constexpr net::NodeId kBusy = 2;
constexpr net::NodeId kGone = 4;
constexpr net::NodeId kLate = 6;

// One worker is connected and says Bye; the connection of the other is closed.
class Aborted {
 public:
  Aborted() {
    members_.Worker(0)->node = kBusy;
    members_.Worker(1)->node = kGone;
    channel.gone.insert(kGone);
  }
  void Bye(net::NodeId from) {
    net::Encoder encoder;
    channel.incoming.push_back({from, encoder.Finish({}, wire::CreateBye(encoder.Begin()))});
  }
  // Worker 1 joins only now.
  void Hello(net::NodeId from) {
    channel.incoming.push_back({from, HelloMessage(config_, wire::Role::Worker, 1).Take()});
  }
  void Tell(int exit_code = 4) {
    const std::string text = "worker 1 is lost";
    TellOfAbort({{Role::kPs, 0}, exit_code, text}, milliseconds(1), members_, channel, outbox_);
  }
  void TellOfStop(bool supervised) {
    const std::string text = "stopped by SIGTERM";
    const RunSummary summary;
    TellOfAbort({{Role::kPs, 0}, 143, text, &summary, supervised}, milliseconds(1), members_, channel,
                outbox_);
  }
  void Miss() { members_.Worker(1)->node = 0; }
  int64_t SentTo(net::NodeId node) const {
    return std::count_if(channel.sent.begin(), channel.sent.end(),
                         [&](const FakeChannel::Sent& sent) { return sent.to == node; });
  }

  FloodChannel channel;

 private:
  Config config_ = LinearCluster(1, 2, 10);
  TaskTable members_{config_, {Role::kPs, 0}};
  Outbox outbox_{channel, 16};
};

TEST_CASE("abort notice: each is told on both of its connections, and once it has said Bye no more") {
  Aborted run;
  run.Bye(kBusy);
  run.Tell();
  CHECK(run.SentTo(kBusy) == 1);
  CHECK(run.SentTo(kBusy | 1) == 1);
  const wire::Abort* abort = run.channel.sent.back().envelope().body_as_Abort();
  REQUIRE(abort != nullptr);
  CHECK(abort->exit_code() == 4);
  CHECK(abort->text()->str() == "worker 1 is lost");
}

TEST_CASE("abort notice: it is repeated to one that has not said Bye, which another's does not stop") {
  Aborted run;
  run.Bye(kGone);
  run.Tell();
  CHECK(run.SentTo(kBusy) > 1);
}

TEST_CASE("abort notice: one that comes to a run that has failed is told, not of a lost peer") {
  for (const int code : {2, 4}) {
    Aborted run;
    run.Miss();
    run.Bye(kBusy);
    run.Hello(kLate);
    run.Bye(kLate);
    run.Tell(code);
    CHECK(run.SentTo(kLate) == (code == 2 ? 1 : 0));
  }
}

TEST_CASE("abort notice: one that comes to a run that was stopped is told, unless a supervisor stops it") {
  for (const bool supervised : {false, true}) {
    Aborted run;
    run.Miss();
    run.Bye(kBusy);
    run.Hello(kLate);
    run.Bye(kLate);
    run.TellOfStop(supervised);
    CHECK(run.SentTo(kLate) == (supervised ? 0 : 1));
  }
}

TEST_CASE("abort notice: it ends when its time is over, however much comes, and is repeated meanwhile") {
  Aborted run;
  net::Encoder encoder;
  run.channel.flood = {kBusy, encoder.Finish({}, wire::CreateNeedStep(encoder.Begin()))};
  run.Tell();
  CHECK(run.SentTo(kBusy) > 1);
}

}  // namespace
}  // namespace dtrain
