// train.optimizer.clip_norm in whole runs: against plain loops, across ps, and message by message.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "gpu/optimizer_ops.h"
#include "trainer/data/load_data.h"
#include "trainer/data/source.h"
#include "trainer/model/layout.h"
#include "trainer/task/quiet_run_test_util.h"
#include "trainer/task/two_worker_run_test_util.h"

namespace dtrain {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Config Clipping(Config config, double clip_norm) {
  config.train.optimizer.clip_norm = clip_norm;
  return config;
}

// Weight and bias of a line, in double.
using Line = std::array<double, 2>;

// The gradient of the mean squared error of one batch.
Line LineGradient(const Line& line, const Batch& batch) {
  Line gradient = {0, 0};
  for (int64_t row = 0; row < batch.rows; ++row) {
    const double x = static_cast<double>(batch.inputs[row]);
    const double error = line[0] * x + line[1] - static_cast<double>(batch.targets[row]);
    gradient[0] += 2 * error * x / static_cast<double>(batch.rows);
    gradient[1] += 2 * error / static_cast<double>(batch.rows);
  }
  return gradient;
}

// The result of a synchronous run of `config`, or of an asynchronous one of one worker, by plain loops.
// `clipped`: counts the steps that were clipped.
Line PlainRun(const Config& config, int* clipped) {
  const LoadedData data = LoadData(config);
  const int workers = static_cast<int>(config.cluster.worker.size());
  std::vector<std::unique_ptr<BatchSource>> sources;
  for (int i = 0; i < workers; ++i) sources.push_back(MakeBatchSource(config, data.train, i, workers));
  Line line = {0, 0};
  for (int64_t step = 0; step < *config.train.steps; ++step) {
    Line mean = {0, 0};
    for (const auto& source : sources) {
      Batch batch;
      REQUIRE(source->Next(&batch));
      const Line gradient = LineGradient(line, batch);
      for (size_t i : {0, 1}) mean[i] += gradient[i] / workers;
    }
    const double norm = std::sqrt(mean[0] * mean[0] + mean[1] * mean[1]);
    const double scale =
        norm > *config.train.optimizer.clip_norm ? *config.train.optimizer.clip_norm / norm : 1;
    *clipped += scale < 1 ? 1 : 0;
    for (size_t i : {0, 1}) line[i] -= config.train.optimizer.learning_rate * scale * mean[i];
  }
  return line;
}

void CheckAgainstPlainRun(const Config& config) {
  int clipped = 0;
  const Line expected = PlainRun(config, &clipped);
  CHECK(clipped > 0);
  CHECK(clipped < *config.train.steps);
  const RunSummary summary = Run(config);
  CHECK(summary.weights.at("weights/W1")[0] == doctest::Approx(expected[0]).epsilon(1e-5));
  CHECK(summary.weights.at("biases/b1")[0] == doctest::Approx(expected[1]).epsilon(1e-5));
}

TEST_CASE("clip norm: one worker's asynchronous run is a plain loop's") {
  for (const int ps : {1, 2}) {
    for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp}) {
      Config config = Clipping(LinearCluster(ps, 1, 50), 20);
      config.train.mode = mode;
      config.train.batch_size = 4;
      CheckAgainstPlainRun(config);
    }
  }
}

TEST_CASE("clip norm: a synchronous run clips the mean of each round, as a plain loop does") {
  for (const int ps : {1, 2, 3}) {
    for (const int workers : {1, 3}) {
      Config config = Clipping(LinearCluster(ps, workers, 50), 20);
      config.train.mode = TrainMode::kSync;
      config.train.batch_size = 4;
      CheckAgainstPlainRun(config);
    }
  }
}

TEST_CASE(
    "clip norm: one worker's asynchronous run has the same bits for any number of ps and any placement") {
  std::string crc;
  for (const int ps : {1, 2, 3, 5}) {
    for (const PlacementPolicy policy : {PlacementPolicy::kBytes, PlacementPolicy::kRoundRobin}) {
      Config config = Clipping(DigitsCluster(ps, 1, 1), 0.3);
      config.data.train.rows = 1000;
      config.model.init.kind = InitKind::kNormal;
      config.placement.policy = policy;
      const RunSummary summary = Run(config);
      if (crc.empty()) crc = *summary.model_crc;
      CHECK(*summary.model_crc == crc);
    }
  }
}

// 12 rounds of 3 workers.
std::string SyncDigits(Config config) {
  config.train.mode = TrainMode::kSync;
  config.data.train.rows = 1800;
  config.model.init.kind = InitKind::kNormal;
  const RunSummary summary = Run(config);
  CHECK(summary.global_step == 12);
  CHECK(summary.examples == 1800);
  return summary.model_crc.value_or("none");
}

TEST_CASE("clip norm: sync has the same bits for any number of ps and any placement") {
  const std::string plain = SyncDigits(DigitsCluster(1, 3, 1));
  for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kAdam}) {
    std::string crc;
    for (const int ps : {1, 2, 3, 5}) {
      for (const PlacementPolicy policy : {PlacementPolicy::kBytes, PlacementPolicy::kRoundRobin}) {
        Config config = Clipping(DigitsCluster(ps, 3, 1), 0.3);
        config.placement.policy = policy;
        config.train.optimizer.kind = kind;
        const std::string here = SyncDigits(config);
        if (crc.empty()) crc = here;
        CHECK(here == crc);
      }
    }
    CHECK(crc != plain);
  }
}

TEST_CASE("clip norm: a norm that nothing reaches changes no bit of a synchronous run") {
  for (const int ps : {1, 3}) {
    CHECK(SyncDigits(Clipping(DigitsCluster(ps, 3, 1), 1e6)) == SyncDigits(DigitsCluster(ps, 3, 1)));
  }
}

TEST_CASE("clip norm: sync of more blocks than the window holds otherwise ends with the same bits") {
  std::string crc;
  for (const int ps : {1, 3}) {
    Config config = Clipping(LinearCluster(ps, 3, 2), 1);
    config.model.inputs = 20 * kBlockValues;
    config.train.mode = TrainMode::kSync;
    config.failure.detect_s = 20;  // under a sanitizer a round of 20 MiB takes seconds
    const RunSummary summary = Run(config);
    CHECK(summary.global_step == 2);
    if (crc.empty()) crc = *summary.model_crc;
    CHECK(*summary.model_crc == crc);
  }
}

TEST_CASE("clip norm: with backup workers and uneven ends a run of N steps ends at exactly N") {
  for (const int ps : {1, 3}) {
    for (const int aggregate : {1, 2, 4}) {
      Config config = Clipping(LinearCluster(ps, 4, 100), 0.5);
      config.train.mode = TrainMode::kSync;
      config.train.aggregate = aggregate;
      CHECK(Run(config).global_step == 100);
    }
  }
}

TEST_CASE("clip norm: in sync uneven shards end everywhere") {
  for (const int ps : {1, 3}) {
    Config config = Clipping(DigitsCluster(ps, 3, 1), 0.3);
    config.train.mode = TrainMode::kSync;
    config.data.train.rows = 400;
    CHECK(Run(config).local_steps == std::vector<int64_t>{3, 3, 2});
  }
}

TEST_CASE("clip norm: a round's mean is clipped, not its gradients") {
  TwoWorkerRun run(Clipping(TwoWorkers(TrainMode::kSync), 5));
  run.EnterBoth();
  run.workers[0].SendPush(5, {12, 0}, 0, 0);
  run.CheckNothing(0);
  run.workers[1].SendPush(5, {0, 16}, 0, 0);  // the mean is (6, 8); its norm is 10
  for (const int worker : {0, 1}) run.CheckWeights(worker, 1, {-3, -4});
}

TEST_CASE("clip norm: a round of one gradient is clipped too, and a short one is not") {
  TwoWorkerRun run(Clipping(TwoWorkers(TrainMode::kSync), 5));
  run.EnterBoth();
  run.workers[1].Send(5, [](auto& builder) { return wire::CreateDone(builder, 0, 0.5, 1, 2, 0, 0, 0); });
  run.workers[0].SendPush(5, {6, 8}, 0, 0);
  run.CheckWeights(0, 1, {-3, -4});
  run.workers[0].SendPush(6, {3, 4}, 0, 1);
  run.CheckWeights(0, 2, {-6, -8});
}

TEST_CASE("clip norm: a mean that is not finite is applied as it is, where nobody stops at it") {
  Config config = Clipping(TwoWorkers(TrainMode::kSync), 5);
  config.hooks.stop_on_nan = false;
  TwoWorkerRun run(config);
  run.EnterBoth();
  run.workers[0].SendPush(5, {60, kInfinity}, 0, 0);
  run.workers[1].SendPush(5, {80, 0}, 0, 0);
  run.CheckWeights(0, 1, {-70, -kInfinity});
}

// ps 1 asks for a round; with the norm of `part`, unless empty, as its gradient of the round before.
void Ask(RawWorker& ps, uint64_t request, uint64_t round, const std::vector<float>& part = {}) {
  gpu::Stream stream;
  gpu::SquareSum sum;
  gpu::AddSquares(stream, reinterpret_cast<const std::byte*>(part.data()), static_cast<int64_t>(part.size()),
                  &sum);
  ps.Send(request, [&](auto& builder) {
    const auto words = part.empty() ? 0 : builder.CreateVector(sum.words.data(), sum.words.size());
    return wire::CreateWaitEnd(builder, round, words, !sum.finite);
  });
}

void CheckRound(RawWorker& ps, uint64_t number) {
  const wire::Round* round = ps.Expect<wire::Round>();
  REQUIRE(round != nullptr);
  CHECK(round->number() == number);
  CHECK_FALSE(round->scale());
}

void CheckScale(RawWorker& ps, uint64_t round, double value) {
  const wire::Round* answer = ps.Expect<wire::Round>();
  REQUIRE(answer != nullptr);
  CHECK(answer->number() == round);
  REQUIRE(answer->scale());
  CHECK(*answer->scale() == value);
}

// ps 0 with one of the two values, and ps 1, driven by hand. In round 1 both workers began; round 2 has a
// gradient of each, is decided, and ps 0 has measured its mean.
struct TwoPsRun : TwoWorkerRun {
  TwoPsRun(float first, float second) : TwoWorkerRun(Clipping(TwoWorkers(TrainMode::kSync, 2), 5)) {
    Ask(*other_ps, 2, 1);
    EnterBoth();
    CheckRound(*other_ps, 1);
    Ask(*other_ps, 3, 2);
    workers[0].SendPush(5, {first}, 0, 0);
    workers[1].SendPush(5, {second}, 0, 0);
    CheckRound(*other_ps, 2);
  }
};

TEST_CASE("clip norm: a round waits for the parts of all ps, which get one scale") {
  TwoPsRun run(5, 7);
  run.CheckNothing(0);
  Ask(*run.other_ps, 4, 3, {8});
  CheckScale(*run.other_ps, 2, 0.5);
  for (const int worker : {0, 1}) run.CheckWeights(worker, 1, {-3});
  Ask(*run.other_ps, 4, 3, {8});  // its answer was lost
  CheckScale(*run.other_ps, 2, 0.5);
  Ask(*run.other_ps, 5, 3);
  run.workers[0].SendPush(6, {3}, 0, 1);
  run.workers[1].SendPush(6, {3}, 0, 1);
  CheckRound(*run.other_ps, 3);
  Ask(*run.other_ps, 6, 4, {4});
  CheckScale(*run.other_ps, 3, 1);
  for (const int worker : {0, 1}) run.CheckWeights(worker, 2, {-6});
}

TEST_CASE("clip norm: a gradient that was measured is applied though its worker leaves") {
  TwoPsRun run(5, 7);
  run.workers[1].Send(6, [](auto& builder) { return wire::CreateDone(builder, 0, 0.5, 1, 2, 0, 0, 0); });
  CHECK(run.workers[1].Expect<wire::Ack>() != nullptr);
  Ask(*run.other_ps, 4, 3, {8});
  run.CheckWeights(0, 1, {-3});
}

TEST_CASE("clip norm: a worker that leaves after its gradient was measured may begin anew meanwhile") {
  TwoPsRun run(5, 7);
  RawWorker again(run.config, run.transport, 1);
  run.workers[1].Leave();
  again.Join();
  again.Send(4, [](auto& builder) { return wire::CreateReady(builder); });
  again.Send(5, [](auto& builder) {
    return wire::CreatePull(builder, 0, true);
  });  // like the push of the earlier process
  CHECK(again.Expect<wire::Start>()->local_step() == 1);
  Ask(*run.other_ps, 4, 3, {8});
  CheckScale(*run.other_ps, 2, 0.5);
  run.CheckWeights(0, 1, {-3});
  CHECK(again.Receive(kNothing) == nullptr);  // it is in no round yet
  Ask(*run.other_ps, 5, 3);
  run.workers[0].SendPush(6, {3}, 0, 1);
  CheckRound(*run.other_ps, 3);
  Ask(*run.other_ps, 6, 4, {4});
  run.CheckWeights(0, 2, {-6});
  CHECK(again.Expect<wire::Weights>()->version() == 2);
}

TEST_CASE("clip norm: a part of another round, or one that is none, is dropped, and the right one counts") {
  TwoPsRun run(5, 7);
  Ask(*run.other_ps, 4, 2, {1000});
  Ask(*run.other_ps, 5, 9, {1000});
  run.other_ps->Send(6, [](auto& builder) {
    return wire::CreateWaitEnd(builder, 3, builder.CreateVector(std::vector<uint64_t>{1, 2, 3}));
  });
  run.CheckNothing(0);
  Ask(*run.other_ps, 7, 3, {8});
  CheckScale(*run.other_ps, 2, 0.5);
  run.CheckWeights(0, 1, {-3});
}

TEST_CASE("clip norm: a part that is not finite leaves the round as it is, on every ps") {
  TwoPsRun run(50, 70);
  Ask(*run.other_ps, 4, 3, {kInfinity});
  CheckScale(*run.other_ps, 2, 1);
  run.CheckWeights(0, 1, {-60});
}

}  // namespace
}  // namespace dtrain
