// The chief of a run is lost: another worker takes its place, wherever each of them was at that moment, and
// what the one before still says does not count.
#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "base/testing/files.h"
#include "trainer/task/elastic_run_test_util.h"

namespace dtrain {
namespace {

Config ThreeWorkers() {
  Config config = Elastic(TrainMode::kAsync, WorkerLost::kContinue, 3);
  config.train.steps = 3;
  return config;
}

void SayDone(Task& worker, uint64_t request) {
  worker->Send(request, [](auto& builder) { return wire::CreateDone(builder, 1, 0.5, 1, 2, 0, 0, 0); });
  REQUIRE(worker->Expect<wire::Ack>() != nullptr);
}

const auto kWaitEnd = [](auto& builder) { return wire::CreateWaitEnd(builder); };

// ps 0 has taken in the loss when another one hears of it.
void CheckChief(Task& witness, uint32_t chief, uint32_t term) {
  const wire::Heartbeat* beat = witness->Beat();
  REQUIRE(beat != nullptr);
  while (beat->term() < term) REQUIRE((beat = witness->Beat()) != nullptr);
  CHECK(beat->chief() == chief);
  CHECK(beat->term() == term);
}

// The answer, behind orders that came more than once.
bool IsRefused(RawWorker& saver) {
  const wire::Envelope* answer = saver.Receive();
  while (answer != nullptr && answer->body_as_SaveOrder() != nullptr) answer = saver.Receive();
  return answer != nullptr && answer->body_as_Refuse() != nullptr;
}

TEST_CASE("chief: when it is lost the worker of the lowest index is it, and the one that returns is not") {
  ElasticRun run(ThreeWorkers());
  CheckChief(run.At(1), 0, 1);
  run.At(0).Lose();
  CheckChief(run.At(2), 1, 2);
  CHECK(run.Again(0).Start().term() == 0);
  CheckChief(run.At(2), 1, 2);
  run.At(1).Lose();
  CheckChief(run.At(2), 0, 3);
}

TEST_CASE("chief: one whose place another process takes at once is lost all the same") {
  ElasticRun run(ThreeWorkers());
  CHECK(run.Again(0).Start().term() == 0);
  CheckChief(run.At(2), 1, 2);
}

TEST_CASE("chief: one that is waited for comes back to its role, in a term of its own") {
  ElasticRun run(Elastic(TrainMode::kAsync, WorkerLost::kWait));
  run.At(0).Lose();
  CheckChief(run.At(1), 0, 2);
  CHECK(run.Again(0).Start().term() == 2);
}

// Everybody who waits hears the end, whoever was lost; asked for at a worker's request.
RunSummary EndOf(Task& worker) {
  const wire::End* end = worker->Expect<wire::End>();
  REQUIRE(end != nullptr);
  RunSummary summary;
  REQUIRE(FromWireJson(end->json()->str(), &summary));
  return summary;
}

TEST_CASE("chief: the run ends without worker 0 where that is lost when the others are done and wait") {
  ElasticRun run(ThreeWorkers());
  for (const int worker : {1, 2}) {
    SayDone(run.At(worker), 5);
    run.At(worker)->Send(6, kWaitEnd);
  }
  run.At(0).Lose();
  CHECK(EndOf(run.At(1)).lost_workers == std::vector<int64_t>{0});
  CHECK(EndOf(run.At(2)).status == "done");
}

TEST_CASE("chief: the next one's saver begins anew, and the one before can neither confirm nor finish") {
  Config config = ThreeWorkers();
  config.checkpoint.dir = "not written";
  config.checkpoint.every_steps = 1;
  config.checkpoint.every_secs = 0;
  ElasticRun run(config);
  run.At(1)->SendPush(5, {1, 1});
  REQUIRE(run.At(1)->Expect<wire::Weights>() != nullptr);
  CHECK(ElasticRun::OrderOf(*run.saver, 1) == 2);
  run.At(0).Lose();
  CheckChief(run.At(1), 1, 2);
  run.saver->Send(2, [](auto& builder) { return wire::CreateConfirmSave(builder, 2, 1); });
  CHECK(IsRefused(*run.saver));
  run.saver->Send(
      3, [](auto& builder) { return wire::CreateAskSave(builder, 1, 2, builder.CreateString("step-1")); });
  CHECK(IsRefused(*run.saver));
  run.saver->Send(4, [](auto& builder) { return wire::CreateConfirmSave(builder, 3, 1); });
  CHECK(IsRefused(*run.saver));

  RawWorker next(config, run.transport, 1);
  next.set_run_id(run.At(1)->run_id());
  CHECK(ElasticRun::OrderOf(next, 2) == 3);
  next.Send(5, [](auto& builder) { return wire::CreateConfirmSave(builder, 3, 2); });
  CHECK(next.Expect<wire::Ack>() != nullptr);
}

// A ps 0 that was restarted: the run of these workers had begun.
struct Returning {
  explicit Returning(double detect_s) : config(Elastic(TrainMode::kAsync, WorkerLost::kContinue)) {
    config.failure.detect_s = detect_s;
    config.failure.wait_s = 4 * detect_s;  // the end of the test
    config.checkpoint.dir = "not written";
    ps = std::make_unique<Ps>(config, transport);
  }
  std::unique_ptr<RawWorker> Join(int index) {
    auto worker = std::make_unique<RawWorker>(config, transport, index);
    worker->Join();
    worker->Send(1, [](auto& builder) { return wire::CreateReady(builder, true, 5, 0); });
    return worker;
  }
  // The next message, while the worker is heard and does something.
  static const wire::Envelope* Await(RawWorker& worker) {
    const TimePoint deadline = Clock::now() + kPatience;
    uint64_t progress = 0;
    while (Clock::now() < deadline) {
      if (const wire::Envelope* envelope = worker.Receive(milliseconds(50))) return envelope;
      ++progress;
      worker.Send(0, [&](auto& builder) {
        return wire::CreateHeartbeat(builder, builder.CreateString("wait"), progress,
                                     builder.CreateString(""));
      });
    }
    return nullptr;
  }

  net::InprocTransport transport;
  Config config;
  std::unique_ptr<Ps> ps;
};

TEST_CASE("chief: a run that goes on begins without worker 0 where that stays away") {
  Returning run(0.5);
  const auto worker = run.Join(1);
  const wire::Envelope* answer = Returning::Await(*worker);
  REQUIRE(answer != nullptr);
  REQUIRE(answer->body_as_Start() != nullptr);
  CHECK(answer->body_as_Start()->initialise());
  CHECK(answer->body_as_Start()->again());
  CHECK(answer->body_as_Start()->term() == 1);
}

TEST_CASE("chief: a run whose chief is lost while it restores goes back once more") {
  Returning run(0.5);
  const auto chief = run.Join(0), other = run.Join(1);
  REQUIRE(chief->Expect<wire::Start>()->initialise());
  const wire::Envelope* answer = Returning::Await(*other);  // while the chief is not heard
  REQUIRE(answer != nullptr);
  REQUIRE(answer->body_as_Refuse() != nullptr);
  CHECK(answer->body_as_Refuse()->reason() == wire::Reason::Run);
  CHECK(answer->run_epoch() == 1);
}

// Worker 0 fails in the middle of its steps.
class FailingHook : public Hook {
 public:
  void AfterStep(const StepView& view, HookRequests*) override {
    if (view.local_step == 20) throw Failure(ExitCode::kInternal, "failed by the test");
  }
};

TEST_CASE(
    "chief: threads whose chief fails end with a summary and a checkpoint of the next one's, in any mode") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSync, TrainMode::kSsp}) {
    CAPTURE(static_cast<int>(mode));
    const std::string directory = testing::NewDirectory();
    Config config = DigitsCluster(2, 3, 3);
    config.train.mode = mode;
    config.checkpoint.dir = directory;
    config.eval.every_steps = 10;
    LogOptions log;
    log.level = LogLevel::kError;
    log.standard_error = false;
    TaskOptions options;
    options.more_hooks = [](TaskId task) {
      HookList hooks;
      if (task.index == 0) hooks.push_back(std::make_unique<FailingHook>());
      return hooks;
    };
    const RunSummary summary = RunClusterInProcess(config, log, options);
    CHECK(summary.status == "done");
    CHECK(summary.lost_workers == std::vector<int64_t>{0});
    REQUIRE(summary.test_accuracy.has_value());
    CHECK(*summary.test_accuracy > 0.5);
    REQUIRE(summary.checkpoint.has_value());
    CHECK(std::filesystem::exists(*summary.checkpoint + "/manifest"));
    CHECK(*summary.checkpoint == fmt::format("{}/step-{:09}", directory, summary.global_step));
    std::filesystem::remove_all(directory);
  }
}

}  // namespace
}  // namespace dtrain
