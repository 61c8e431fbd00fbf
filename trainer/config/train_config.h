// The steps and what computes them: train and device of the YAML file. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trainer/config/choices.h"

namespace dtrain {

// The member of train.optimizer.schedule.decay_steps where the key says auto: the updates of the run behind
// the warm-up (AutoDecaySteps() in trainer/survey/data_shape.h).
constexpr int64_t kAutoDecay = 0;

// The learning rate as a function of the update's number.
struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::kConstant;
  int64_t decay_steps = 1;       // all but constant
  double decay_rate = 1;         // step, exponential, inverse_time
  double end_learning_rate = 0;  // cosine
  int64_t warmup_steps = 0;
};

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::kSgd;
  double learning_rate = 0.01;  // loading a file: 0.001 for adam and adamw
  double momentum = 0.9;
  bool nesterov = false;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double rho = 0.9;
  double epsilon = 1e-8;
  double initial_accumulator = 0.1;
  double beta = 0;  // ftrl
  double l1 = 0;
  double l2 = 0;
  bool decay_biases = true;    // whether l1, l2 and weight_decay are for biases too
  double weight_decay = 0.01;  // adamw
  std::optional<double> clip_value;
  std::optional<double> clip_norm;
  ScheduleConfig schedule;
};

// PartOptimizer: the optimizer of one part of a model (train.optimizer.wide, ...).
struct PartOptimizer {
  // Complete once the file is loaded: keys that the part does not have are those of train.optimizer.
  // clip_norm is that of the model alone.
  OptimizerConfig values;
  // The names of the keys that it has: "kind", "schedule.kind". Empty: the part has train.optimizer itself.
  std::set<std::string> own;
};

struct TrainConfig {
  TrainMode mode = TrainMode::kAsync;
  int64_t staleness = 4;             // ssp
  std::optional<int64_t> aggregate;  // sync; unset: as many as there are workers
  int64_t batch_size = 100;
  std::optional<int64_t> epochs;
  std::optional<int64_t> steps;
  int64_t in_flight = 1;
  Reduce reduce = Reduce::kMean;
  std::optional<double> max_secs;  // unset: no limit
  OptimizerConfig optimizer;
  PartOptimizer wide, deep;       // of wide_deep
  PartOptimizer linear, factors;  // of fm
};

// A part of a model that may have an optimizer of its own. Models whose key model.kind names no parts are
// alike in both.
enum class ModelHalf {
  kLinear,  // the weights of features and the bias: the first value of each row of a table
  kOther,   // the other values of rows, and all tensors
};

struct PartKey {
  const char* name;   // in train.optimizer
  const char* model;  // the model.kind that has the part
  ModelHalf half;
  PartOptimizer TrainConfig::*at;
};
constexpr PartKey kPartKeys[] = {{"wide", "wide_deep", ModelHalf::kLinear, &TrainConfig::wide},
                                 {"deep", "wide_deep", ModelHalf::kOther, &TrainConfig::deep},
                                 {"linear", "fm", ModelHalf::kLinear, &TrainConfig::linear},
                                 {"factors", "fm", ModelHalf::kOther, &TrainConfig::factors}};

// The optimizer of a part, and the section of the file that it is from: "train.optimizer.wide".
struct NamedOptimizer {
  std::string key;
  const OptimizerConfig& values;
};
NamedOptimizer OptimizerOf(const TrainConfig& train, ModelHalf half);
// All that the model has: one, or that of the linear part and the other one.
std::vector<NamedOptimizer> OptimizersOf(const TrainConfig& train);

// In sync clip_norm is of a round's mean, and the ps find its norm together; else of each worker's gradient.
inline bool NormOfRounds(const TrainConfig& train) {
  return train.mode == TrainMode::kSync && train.optimizer.clip_norm.has_value();
}

struct DeviceConfig {
  DeviceKind kind = DeviceKind::kAuto;
  std::vector<int64_t> ids{0};   // of a worker, a tower each; never empty
  bool soft_placement = true;    // the processor in place of a GPU that is not there
  double memory_fraction = 0.5;  // of each GPU's memory, at most
  bool tf32 = false;             // products on GPUs
  int64_t threads = 1;           // of each tower on a processor

  int64_t towers() const { return static_cast<int64_t>(ids.size()); }
};

}  // namespace dtrain
