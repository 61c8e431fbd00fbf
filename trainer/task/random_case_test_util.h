// RandomCase: a small run drawn from a seed, and what its end must be.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/testing/files.h"
#include "trainer/config/config.h"
#include "trainer/config/dump.h"
#include "trainer/model/layout.h"
#include "trainer/task/run_task.h"
#include "trainer/testing/small_config.h"

namespace dtrain {

constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max() / 64;

// How a worker is lost. kGone and kTorn are as after a kill: the connections close without a message.
enum class LossKind {
  kNone,
  kError,  // it fails and tells ps 0
  kGone,   // before it sends any block of a gradient
  kTorn,   // after it has sent some blocks of a gradient to some ps
};

struct LostTask {
  LossKind kind = LossKind::kNone;
  int worker = 0;
  int64_t step = 0;    // while it takes this local step, from 1
  int64_t blocks = 0;  // kTorn: the blocks that it has sent
  bool returns = false;
};

struct RandomCase {
  uint64_t seed = 0;
  Config config;
  LostTask loss;
  int late_worker = -1;      // started only after the others; -1: none
  int64_t late_at = 0;       // at this local step of worker 0, or at its end
  int64_t repeat_every = 0;  // workers send every n-th request twice; 0: none
  int64_t rows = 0;          // of data.train; not used where they have no end
  std::string directory;     // of the file of rows of a sparse model; empty: none

  int workers() const { return static_cast<int>(config.cluster.worker.size()); }
  int ps() const { return static_cast<int>(config.cluster.ps.size()); }
  bool sync() const { return config.train.mode == TrainMode::kSync; }
  bool waits() const { return config.failure.worker_lost == WorkerLost::kWait; }
  bool CompressesGradients() const { return config.net.compress.push != net::Compression::kNone; }
  bool all_in_each_round() const { return sync() && config.train.aggregate.value_or(workers()) == workers(); }

  // The local steps of the worker's own epochs.
  int64_t OwnSteps(int worker) const {
    if (!config.train.epochs) return kUnbounded;
    const int64_t batch = config.train.batch_size;
    const bool keep = config.data.last_batch == LastBatch::kKeep;
    const int64_t batches = keep ? (rows + batch - 1) / batch : rows / batch;
    const int64_t dealt = all_in_each_round() ? 0 : worker;  // in step with worker 0
    const int64_t own =
        config.data.split == Split::kFull ? batches : (batches - dealt + workers() - 1) / workers();
    const int64_t towers = config.device.towers();
    return *config.train.epochs * ((own + towers - 1) / towers);
  }
  // The ps of each block of a gradient.
  std::vector<int> PsOfBlocks() const {
    const Layout layout = MakeLayout(config, ps());
    std::vector<int> owners;
    for (int i = 0; i < ps(); ++i) {
      owners.insert(owners.end(), static_cast<size_t>(BlocksOf(layout, static_cast<size_t>(i))), i);
    }
    return owners;
  }
  int64_t MaxSteps() const { return config.train.steps.value_or(kUnbounded); }
};

inline std::string Describe(const RandomCase& c) {
  static constexpr const char* kLosses[] = {"none", "error", "gone", "torn"};
  return fmt::format(
      "seed {}; loss {}: worker {} at step {} after {} blocks, returns {}; late {} at {}; "
      "repeats {}\n{}",
      c.seed, kLosses[static_cast<int>(c.loss.kind)], c.loss.worker, c.loss.step, c.loss.blocks,
      c.loss.returns, c.late_worker, c.late_at, c.repeat_every, DumpConfig(c.config));
}

// Draws a case, one decision after another.
class CaseMaker {
 public:
  explicit CaseMaker(uint64_t seed) : random_(seed) { case_.seed = seed; }
  RandomCase Make() {
    config_ = LinearCluster(static_cast<int>(Between(1, 4)), static_cast<int>(Between(1, 5)), 0);
    config_.failure.detect_s = 60;  // a busy machine must not lose a worker
    config_.failure.startup_timeout_s = 60;
    config_.failure.wait_s = 60;
    config_.placement.policy = OneIn(2) ? PlacementPolicy::kBytes : PlacementPolicy::kRoundRobin;
    if (OneIn(5)) config_.device.ids = {0, 1};
    DrawMode();
    DrawModel();
    DrawOptimizer();
    DrawData();
    if (sparse_) {
      MakeSparse();
    } else {
      config_.data.test = config_.data.train;  // the evaluation pulls the final weights
      config_.data.test.rows = 10;
    }
    DrawTrouble();
    if (OneIn(3)) DrawCompression();
    return case_;
  }

 private:
  int64_t Between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_.Below(counter_++, static_cast<uint64_t>(most - least + 1)));
  }
  bool OneIn(int64_t n) { return Between(1, n) == 1; }

  void DrawMode() {
    TrainConfig& train = config_.train;
    train.mode = static_cast<TrainMode>(Between(0, 2));
    train.staleness = 4;
    if (train.mode == TrainMode::kSsp) train.staleness = Between(0, 4);
    if (train.mode == TrainMode::kAsync && OneIn(2)) train.in_flight = Between(2, 4);
    if (train.mode == TrainMode::kSync && OneIn(3)) train.aggregate = Between(1, case_.workers());
  }
  // The largest model has more than one block on one ps or two, and layers whose blocks are sent early.
  void DrawModel() {
    const int64_t kind = Between(1, 12);
    wide_ = kind == 1;
    if (kind > 9) {
      sparse_ = true;
      config_.model.kind = ModelKind::kLogistic;
      config_.model.inputs = Between(3, 400);
      config_.device.ids = {0};
      if (kind == 12) {  // with layers beside the table
        config_.model.kind = ModelKind::kWideDeep;
        config_.model.head = ModelHead::kLogistic;
        config_.model.hidden = {Between(1, 9)};
        config_.model.embedding = Between(1, 9);
        config_.model.init.stddev = 0.1;
      }
      return;
    }
    if (kind > 6) {
      config_.model.inputs = Between(1, 9);
      return;
    }
    config_.model.kind = kind > 3 ? ModelKind::kSoftmax : ModelKind::kMlp;
    config_.model.inputs = 784;
    config_.model.outputs = 10;
    if (kind <= 3) config_.model.hidden = wide_ ? std::vector<int64_t>{350, 900} : std::vector{Between(2, 9)};
    config_.data.train.name = SyntheticName::kDigits;
  }
  void DrawOptimizer() {
    OptimizerConfig& optimizer = config_.train.optimizer;
    optimizer.kind = static_cast<OptimizerKind>(Between(0, static_cast<int64_t>(OptimizerKind::kFtrl)));
    optimizer.decay_biases = optimizer.kind != OptimizerKind::kAdamw;
    optimizer.learning_rate = optimizer.kind == OptimizerKind::kMomentum ? 0.001 : 0.005;
    if (OneIn(3)) optimizer.clip_norm = 0.5;
  }
  void DrawData() {
    DataConfig& data = config_.data;
    TrainConfig& train = config_.train;
    data.split = static_cast<Split>(Between(0, sparse_ ? 1 : 2));
    data.shuffle = !OneIn(4);
    train.batch_size = Between(2, 9);
    data.last_batch = OneIn(3) ? LastBatch::kDrop : LastBatch::kKeep;
    const int64_t shares = case_.workers() * config_.device.towers();
    const int64_t batches = shares + Between(0, wide_ ? 4 : 6 * case_.workers());
    data.train.rows = batches * train.batch_size + Between(0, train.batch_size - 1);
    case_.rows = *data.train.rows;
    const int64_t ends = Between(1, 3);
    if (ends != 1) train.epochs = Between(1, wide_ ? 1 : 5);
    train.steps.reset();
    if (ends != 2) train.steps = wide_ ? Between(1, 8) : Between(1, 150);
    if (ends == 1 && config_.model.kind == ModelKind::kLinear && OneIn(2)) data.train.rows.reset();
  }
  // The drawn rows as a file of libsvm. Each row has some of the features, not in order, and one may come
  // twice.
  void MakeSparse() {
    DataConfig& data = config_.data;
    case_.directory = testing::NewDirectory();
    data.train.format = DataFormat::kLibsvm;
    data.train.path = {case_.directory + "/rows.svm"};
    data.train.rows.reset();
    std::ofstream file(data.train.path[0]);
    for (int64_t row = 0; row < case_.rows; ++row) {
      file << Between(0, 1);
      for (int64_t features = Between(0, 8); features > 0; --features) {
        file << fmt::format(" {}:{}", Between(1, *config_.model.inputs), OneIn(2) ? 1 : 0.5);
      }
      file << "\n";
    }
    data.test = data.train;
  }
  void DrawCompression() {
    if (UsesTable(config_) && config_.model.kind != ModelKind::kWideDeep) return;
    config_.net.compress.push = static_cast<net::Compression>(Between(0, 3));
    config_.net.compress.pull = static_cast<net::Compression>(Between(0, 2));
  }
  void DrawTrouble() {
    if (OneIn(4)) case_.repeat_every = Between(1, 7);
    const int64_t trouble = Between(1, 4);
    if (trouble == 1 && case_.workers() > 1) {
      case_.late_worker = case_.workers() - 1;
      case_.late_at = Between(1, 20);
      config_.cluster.min_workers = case_.workers() - 1;
    } else if (trouble <= 3) {
      DrawLoss();
    }
  }
  void DrawLoss() {
    LostTask& loss = case_.loss;
    if (OneIn(2)) config_.failure.worker_lost = WorkerLost::kWait;
    const bool chief_may = case_.waits() && config_.data.split != Split::kFeed;
    if (!chief_may && case_.workers() == 1) return;
    loss.worker = static_cast<int>(Between(chief_may ? 0 : 1, case_.workers() - 1));
    loss.step = Between(1, 12);
    // No test waits for failure.detect_s, so a worker that will not return says so (kError). Only ps 0 hears
    // that, and in ssp every ps counts a worker until it misses it; hence one ps. A worker that says nothing
    // returns, and the run cannot end before. One that says so and is not waited for does not return, since
    // the run might end first. It might also when worker 0 feeds the worker: that is back when it has joined,
    // and then needs a batch of a worker 0 that is still there.
    const bool may_be_too_late = !case_.waits() && config_.data.split == Split::kFeed;
    loss.kind = may_be_too_late ? LossKind::kError : static_cast<LossKind>(Between(1, 3));
    loss.returns = case_.waits() || loss.kind != LossKind::kError;
    if (!loss.returns && config_.train.mode == TrainMode::kSsp) config_.cluster.ps.resize(1);
    if (loss.kind != LossKind::kTorn) return;
    loss.blocks = Between(0, static_cast<int64_t>(case_.PsOfBlocks().size()) - 1);
    case_.repeat_every = 0;  // so that each answer belongs to a known request
  }

  const CounterRandom random_;
  uint64_t counter_ = 0;
  bool wide_ = false;
  bool sparse_ = false;
  RandomCase case_;
  Config& config_ = case_.config;
};

}  // namespace dtrain
