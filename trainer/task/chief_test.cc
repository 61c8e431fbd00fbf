// The chief of a run is lost: another worker takes its place, wherever each of them was at that moment, and
// what the one before still says does not count.
#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/data/positions.h"
#include "trainer/model/model.h"
#include "trainer/optim/optimizer.h"
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
const auto kWaitAllDone = [](auto& builder) { return wire::CreateWaitAllDone(builder); };

// ps 0 has taken in the loss when another one hears of it.
void CheckChief(Task& witness, uint32_t chief, uint32_t term) {
  const wire::Heartbeat* beat = witness->Beat();
  REQUIRE(beat != nullptr);
  while (beat->term() < term) REQUIRE((beat = witness->Beat()) != nullptr);
  CHECK(beat->chief() == chief);
  CHECK(beat->term() == term);
}

void CheckBecomesChief(Task& worker, uint64_t request, uint32_t term) {
  const wire::Envelope* envelope = worker->Receive();
  REQUIRE(envelope != nullptr);
  CHECK(envelope->request() == request);
  REQUIRE(envelope->body_as_BecomeChief() != nullptr);
  CHECK(envelope->body_as_BecomeChief()->term() == term);
}

// From its first duty to the end of the run; uses four requests.
RunSummary ReportAsChief(Task& worker, uint64_t next) {
  worker->Send(next, kWaitAllDone);
  REQUIRE(worker->Expect<wire::AllDone>() != nullptr);
  worker->Send(next + 1, [](auto& builder) {
    return wire::CreateReport(builder, builder.CreateString(ToWireJson(RunSummary())));
  });
  REQUIRE(worker->Expect<wire::Ack>() != nullptr);
  worker->Send(next + 2, kWaitEnd);
  const wire::End* end = worker->Expect<wire::End>();
  REQUIRE(end != nullptr);
  RunSummary summary;
  REQUIRE(FromWireJson(end->json()->str(), &summary));
  return summary;
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

TEST_CASE("chief: a worker that is done and waits is told, reports, and the run is done without the first") {
  ElasticRun run(ThreeWorkers());
  SayDone(run.At(1), 5);
  run.At(1)->Send(6, kWaitEnd);
  SayDone(run.At(2), 5);
  run.At(2)->Send(6, kWaitEnd);
  run.At(0).Lose();
  CheckBecomesChief(run.At(1), 6, 2);
  run.At(1)->Send(6, kWaitEnd);  // as if the answer had got lost
  CheckBecomesChief(run.At(1), 6, 2);
  const RunSummary summary = ReportAsChief(run.At(1), 7);
  CHECK(summary.lost_workers == std::vector<int64_t>{0});
  CHECK(run.At(2)->Expect<wire::End>() != nullptr);
}

TEST_CASE(
    "chief: a worker that is at its last step when the chief is lost is told when it has nothing to do") {
  ElasticRun run(ThreeWorkers());
  run.At(2).Lose();
  run.At(0).Lose();
  CheckChief(run.At(1), 1, 2);
  SayDone(run.At(1), 5);
  run.At(1)->Send(6, kWaitEnd);
  CheckBecomesChief(run.At(1), 6, 2);
  ReportAsChief(run.At(1), 7);
}

TEST_CASE("chief: one that is lost while it evaluates the finished model is replaced") {
  ElasticRun run(Elastic(TrainMode::kAsync, WorkerLost::kContinue));
  for (const int worker : {0, 1}) SayDone(run.At(worker), 5);
  run.At(1)->Send(6, kWaitEnd);
  run.At(0)->Send(6, kWaitAllDone);
  REQUIRE(run.At(0)->Expect<wire::AllDone>() != nullptr);
  run.At(0).Lose();
  CheckBecomesChief(run.At(1), 6, 2);
  ReportAsChief(run.At(1), 7);
}

TEST_CASE("chief: the run ends when the chief reported, and was lost before the last checkpoint was there") {
  Config config = ThreeWorkers();
  config.checkpoint.dir = testing::NewDirectory();
  config.checkpoint.every_secs = 0;
  ElasticRun run(config);
  run.At(1)->SendPush(5, {1, 1});
  REQUIRE(run.At(1)->Expect<wire::Weights>() != nullptr);
  SayDone(run.At(0), 5);
  SayDone(run.At(1), 6);
  SayDone(run.At(2), 5);
  run.At(0)->Send(6, kWaitAllDone);
  REQUIRE(run.At(0)->Expect<wire::AllDone>() != nullptr);
  run.At(1)->Send(7, kWaitEnd);
  run.At(0).Lose();
  CheckBecomesChief(run.At(1), 7, 2);
  CHECK(ReportAsChief(run.At(1), 8).checkpoint == config.checkpoint.dir + "/step-000000001");
}

// What a run of `config` has saved before its first step.
void SaveInitial(const Config& config) {
  CheckpointDirectory directory(config.checkpoint.dir);
  testing::SmallCheckpoint of;
  of.layout = PlaceVariables(ModelVariables(config.model), 1, PlacementConfig());
  of.slots = SlotNames(config);
  of.step = 0;
  of.positions = ToJson(StartOfData(config, std::nullopt));
  SaveSmall(&directory, of);
}

// A ps 0 that was restarted: the run of these workers had begun.
struct Returning {
  explicit Returning(double detect_s) : config(Elastic(TrainMode::kAsync, WorkerLost::kContinue)) {
    config.failure.detect_s = detect_s;
    config.failure.wait_s = 4 * detect_s;  // the end of the test
    config.checkpoint.dir = testing::NewDirectory();
    SaveInitial(config);
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
  CHECK(answer->body_as_Start()->term() == 1);
  CHECK_FALSE(answer->body_as_Start()->initial());
}

TEST_CASE("chief: a ps 0 that knows less than a worker that returns begins nothing, and says what to copy") {
  net::InprocTransport transport;
  Config config = Elastic(TrainMode::kAsync, WorkerLost::kContinue);
  config.checkpoint.dir = testing::NewDirectory();
  SaveInitial(config);
  Ps ps(config, transport);
  std::vector<std::unique_ptr<RawWorker>> workers;
  for (const int index : {0, 1}) {
    workers.push_back(std::make_unique<RawWorker>(config, transport, index));
    workers.back()->Join();
    workers.back()->Send(1, [&](auto& builder) {
      const auto known = index == 1 ? builder.CreateString("host-a:/ckpt/step-000000400") : 0;
      return wire::CreateReady(builder, true, 5, 0, 0, 0, 0, known, 400);
    });
  }
  const wire::Abort* abort = workers[1]->Expect<wire::Abort>();
  REQUIRE(abort != nullptr);
  CHECK(abort->exit_code() == 1);
  CHECK(abort->text()->str().find("worker 1 knows of a newer checkpoint of this run than ps 0 has: "
                                  "step-000000400 of global step 400") != std::string::npos);
  CHECK_THROWS_AS(ps.Wait(), IoError);
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
