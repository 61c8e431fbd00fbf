// Worker 0 is lost, at any moment: the run goes on, saves, evaluates and ends as without any other worker.
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

// The End in answer to a worker's request; every waiting worker gets it, whichever worker was lost.
RunSummary EndOf(Task& worker) {
  const wire::End* end = worker->Expect<wire::End>();
  REQUIRE(end != nullptr);
  RunSummary summary;
  REQUIRE(FromWireJson(end->json()->str(), &summary));
  return summary;
}

TEST_CASE("worker 0: the run ends without it where it is lost when the others are done and wait") {
  ElasticRun run(ThreeWorkers());
  for (const int worker : {1, 2}) {
    SayDone(run.At(worker), 5);
    run.At(worker)->Send(6, kWaitEnd);
  }
  run.At(0).Lose();
  CHECK(EndOf(run.At(1)).lost_workers == std::vector<int64_t>{0});
  CHECK(EndOf(run.At(2)).status == "done");
}

// Saves the checkpoint that a run of `config` writes before its first step.
void SaveInitial(const Config& config) {
  CheckpointDirectory directory(config.checkpoint.dir);
  testing::SmallCheckpoint of;
  of.layout = PlaceVariables(ModelVariables(config.model), 1, PlacementConfig());
  of.slots = SlotNames(config);
  of.step = 0;
  of.positions = ToJson(StartOfData(config, std::nullopt));
  SaveSmall(&directory, of);
}

// A restarted ps 0 and workers whose run had begun.
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
  // The next message; sends heartbeats with progress in the meantime.
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

TEST_CASE("worker 0: a run that goes on begins without it where it stays away") {
  Returning run(0.5);
  const auto worker = run.Join(1);
  const wire::Envelope* answer = Returning::Await(*worker);
  REQUIRE(answer != nullptr);
  REQUIRE(answer->body_as_Start() != nullptr);
  CHECK_FALSE(answer->body_as_Start()->initial());
}

TEST_CASE(
    "worker 0: a ps 0 that knows less than a worker that returns begins nothing, and says what to copy") {
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
      return wire::CreateReady(builder, true, 5, 0, 0, known, 400);
    });
  }
  const wire::Abort* abort = workers[1]->Expect<wire::Abort>();
  REQUIRE(abort != nullptr);
  CHECK(abort->exit_code() == 2);
  CHECK(abort->text()->str().find("worker 1 knows of a newer checkpoint of this run than ps 0 has: "
                                  "step-000000400 of global step 400") != std::string::npos);
  CHECK_THROWS_AS(ps.Wait(), UserError);
}

// Makes worker 0 fail in the middle of its steps.
class FailingHook : public Hook {
 public:
  void AfterStep(const StepView& view, HookRequests*) override {
    if (view.local_step == 20) throw Failure(ExitCode::kInternal, "failed by the test");
  }
};

TEST_CASE(
    "worker 0: a run in which it fails ends with a summary, an evaluation and a checkpoint, in any mode") {
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
