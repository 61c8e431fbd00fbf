#include "trainer/shard/range_update.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "trainer/model/model.h"
#include "trainer/shard/range_part.h"
#include "trainer/shard/shard_test_util.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

constexpr OptimizerKind kKinds[] = {
    OptimizerKind::kSgd,  OptimizerKind::kMomentum, OptimizerKind::kAdagrad, OptimizerKind::kRmsprop,
    OptimizerKind::kAdam, OptimizerKind::kAdamw,    OptimizerKind::kFtrl};

// An mlp on some ps, with strong decay.
Config Decaying(OptimizerKind kind, int ps) {
  Config config = DigitsCluster(ps, 1, 1);
  config.model.kind = ModelKind::kMlp;
  config.model.inputs = 50;
  config.model.hidden = {7, 5};
  config.model.outputs = 3;
  config.model.init.kind = InitKind::kNormal;
  config.model.init.bias = BiasInit::kSame;
  OptimizerConfig& optimizer = config.train.optimizer;
  optimizer.kind = kind;
  optimizer.learning_rate = 0.1;
  optimizer.l1 = 0.02;
  optimizer.l2 = 0.3;
  optimizer.weight_decay = 0.5;
  return config;
}

// Returns the weights by variable after two updates, the first by one gradient and the second by three.
std::vector<std::vector<float>> Updated(const Config& config) {
  const int ps_count = static_cast<int>(config.cluster.ps.size());
  const Layout layout = PlaceVariables(ModelVariables(config.model), ps_count, config.placement);
  std::vector<float> flat;
  for (int ps = 0; ps < ps_count; ++ps) {
    RangePart shard(config, layout, ps);
    shard.Initialise();
    const size_t values = shard.bytes(0) / sizeof(float);
    const std::vector<float> gradient(values, 0.25f);
    const net::TensorView view{reinterpret_cast<const std::byte*>(gradient.data()), shard.bytes(0)};
    shard.Apply(0, view);
    shard.ApplyMean(0, {{view, view, view}, {1, 1, 1}});
    const net::LentBytes now = shard.Lend(0);
    const auto* const weights = static_cast<const float*>(now.data);
    flat.insert(flat.end(), weights, weights + values);
    now.release(nullptr, now.context);
  }
  std::vector<std::vector<float>> variables;
  for (const Variable& variable : ModelVariables(config.model)) {
    const auto from = flat.begin() + layout.Find(variable.name).offset;
    variables.emplace_back(from, from + variable.size());
  }
  return variables;
}

Config Undecayed(Config config) {
  config.train.optimizer.l1 = config.train.optimizer.l2 = config.train.optimizer.weight_decay = 0;
  return config;
}

TEST_CASE("decay biases: switched off, weights decay as ever and biases are updated as without decay") {
  for (const OptimizerKind kind : kKinds) {
    CAPTURE(static_cast<int>(kind));
    Config config = Decaying(kind, 1);
    const auto all = Updated(config), none = Updated(Undecayed(config));
    config.train.optimizer.decay_biases = false;
    const auto weights_alone = Updated(config);
    for (size_t i = 0; i < all.size(); ++i) {
      CAPTURE(i);
      CHECK(all[i] != none[i]);
      CHECK(weights_alone[i] == (i % 2 == 0 ? all[i] : none[i]));
    }
  }
}

TEST_CASE("decay biases: switched off, the bits are the same for any number of ps") {
  for (const OptimizerKind kind : kKinds) {
    CAPTURE(static_cast<int>(kind));
    Config one = Decaying(kind, 1);
    one.train.optimizer.decay_biases = false;
    for (const int ps : {2, 3, 5}) {
      Config more = Decaying(kind, ps);
      more.train.optimizer.decay_biases = false;
      CHECK(Updated(more) == Updated(one));
    }
  }
}

TEST_CASE("decay biases: switched off, what lies between variables is written too") {
  Config config = Decaying(OptimizerKind::kAdam, 1);
  config.train.optimizer.decay_biases = false;
  const Layout layout = PlaceVariables(ModelVariables(config.model), 1, config.placement, 256);
  const std::unique_ptr<Optimizer> optimizer = MakeOptimizer(config, layout.size);
  const std::vector<float> zeros(static_cast<size_t>(layout.size));
  std::vector<float> updated(zeros.size(), std::numeric_limits<float>::quiet_NaN());
  ApplyUpdate({{1, 1, true, 0},
               {0, layout.size},
               zeros.data(),
               updated.data(),
               reinterpret_cast<const std::byte*>(zeros.data())},
              config.train.optimizer, layout, 0, optimizer.get());
  CHECK(std::none_of(updated.begin(), updated.end(), [](float value) { return std::isnan(value); }));
}

TEST_CASE("reduce: the sum of a round is its mean times the number of gradients, and so is its norm") {
  Config config = Decaying(OptimizerKind::kSgd, 1);
  config.train.optimizer.l1 = config.train.optimizer.l2 = 0;
  config.model.init.kind = InitKind::kZeros;
  config.train.reduce = Reduce::kSum;
  const Layout layout = PlaceVariables(ModelVariables(config.model), 1, config.placement);
  RangePart shard(config, layout, 0);
  shard.Initialise();
  const std::vector<float> gradient(shard.bytes(0) / sizeof(float), 0.5f);
  const net::TensorView view{reinterpret_cast<const std::byte*>(gradient.data()), shard.bytes(0)};
  gpu::SquareSum squares;
  // With sums the rows of a gradient give it no weight.
  const RoundGradients round{{view, view, view, view}, {1, 2, 3, 4}};
  shard.AddSquaresOfMean(0, round, &squares);
  CHECK(gpu::Total(squares) == 4.0 * static_cast<double>(layout.size));
  shard.ApplyMean(0, round, 1);
  const net::LentBytes now = shard.Lend(0);
  CHECK(static_cast<const float*>(now.data)[0] == doctest::Approx(-0.1 * 4 * 0.5));
  now.release(nullptr, now.context);
}

// Returns the weights and slots after two rounds of five workers: of batches of one size, and of several.
std::vector<std::vector<float>> UpdatedBy(int64_t threads, OptimizerKind kind) {
  Config config = Decaying(kind, 1);
  config.model.inputs = 60'000;  // a whole block, whose sums threads share, and a part of one
  config.cluster.worker.assign(5, "a:1");
  config.train.mode = TrainMode::kSync;
  config.train.optimizer.decay_biases = false;
  config.device.threads = threads;
  const Layout layout = PlaceVariables(ModelVariables(config.model), 1, config.placement);
  RangePart shard(config, layout, 0);
  shard.Initialise();
  std::vector<float> values(static_cast<size_t>(kBlockValues) + 5);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  for (int64_t block = 0; block < shard.block_count(); ++block) {
    RoundGradients round;
    for (size_t first = 0; first < 5; ++first) {
      round.Add(
          net::TensorView{reinterpret_cast<const std::byte*>(values.data() + first), shard.bytes(block)}, 1);
    }
    shard.ApplyMean(block, round);
    round.weights = {1, 2, 3, 4, 5};
    shard.ApplyMean(block, round);
  }
  return ValuesOf(*shard.TakeSnapshot(), SlotNames(config).size());
}

TEST_CASE("update: however many threads share the sums of a round, weights and slots have the same bits") {
  for (const OptimizerKind kind : kKinds) {
    CAPTURE(static_cast<int>(kind));
    const std::vector<std::vector<float>> alone = UpdatedBy(1, kind);
    REQUIRE(alone[0].size() > static_cast<size_t>(kBlockValues));
    for (const int64_t threads : {2, 3}) {
      const std::vector<std::vector<float>> shared = UpdatedBy(threads, kind);
      REQUIRE(shared.size() == alone.size());
      for (size_t slot = 0; slot < alone.size(); ++slot) {
        REQUIRE(shared[slot].size() == alone[slot].size());
        CHECK(std::memcmp(shared[slot].data(), alone[slot].data(), alone[slot].size() * sizeof(float)) == 0);
      }
    }
  }
}

}  // namespace
}  // namespace dtrain
