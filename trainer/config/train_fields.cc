#include "trainer/config/train_fields.h"

#include <utility>

#include "trainer/config/field_row.h"

namespace dtrain {
namespace {

constexpr Scope kRun = Scope::kRun;
constexpr Limits kFraction = {0, 0.999999};  // below 1 as a float too

std::vector<Field> RuleFields() {
  const std::string kind = "train.optimizer.kind";
  return {
      Choice(
          kind, [](auto& config) -> auto& { return config.train.optimizer.kind; }, kRun,
          {{"sgd", OptimizerKind::kSgd},
           {"momentum", OptimizerKind::kMomentum},
           {"adagrad", OptimizerKind::kAdagrad},
           {"rmsprop", OptimizerKind::kRmsprop},
           {"adam", OptimizerKind::kAdam},
           {"ftrl", OptimizerKind::kFtrl}},
          "How gradients become new weights; docs/optimizers.md has the formulas."),
      Number(DT_KEY(train.optimizer.learning_rate), kRun, {0, 1e30, true},
             "Learning rate; 0.001 where it is left out with adam."),
      Number(DT_KEY(train.optimizer.momentum), kRun, kFraction, "Share of the velocity that stays.")
          .OnlyWith(kind, "momentum"),
      Flag(DT_KEY(train.optimizer.nesterov), kRun, "Look ahead by one step of the velocity.")
          .OnlyWith(kind, "momentum"),
      Number(DT_KEY(train.optimizer.beta1), kRun, kFraction, "Share of the mean of gradients that stays.")
          .OnlyWith(kind, "adam"),
      Number(DT_KEY(train.optimizer.beta2), kRun, kFraction, "Share of the mean of squares that stays.")
          .OnlyWith(kind, "adam"),
      Number(DT_KEY(train.optimizer.rho), kRun, kFraction, "Share of the mean of squares that stays.")
          .OnlyWith(kind, "rmsprop"),
      Number(DT_KEY(train.optimizer.epsilon), kRun, {1e-30, 1e30},
             "Added to the root that divides, against division by nothing.")
          .OnlyWithAny(kind, {"adagrad", "rmsprop", "adam"}),
      Number(DT_KEY(train.optimizer.initial_accumulator), kRun, {0, 1e30}, "Where the sum of squares starts.")
          .OnlyWithAny(kind, {"adagrad", "ftrl"}),
      Number(DT_KEY(train.optimizer.beta), kRun, {0, 1e30}, "Added to the root of the sum of squares.")
          .OnlyWith(kind, "ftrl"),
      Number(DT_KEY(train.optimizer.l1), kRun, {0, 1e30},
             "l1 * sign(weight) is added to the gradient; with ftrl the l1 of its paper: exact zeros."),
      Number(DT_KEY(train.optimizer.l2), kRun, {0, 1e30},
             "l2 * weight is added to the gradient, known as weight decay; with ftrl the l2 of its paper."),
      Number(DT_KEY(train.optimizer.clip_value), kRun, {0, 1e30, true},
             "Each element of a gradient is cut to -clip_value to clip_value, before l1 and l2.")
          .Try("1")
          .Unset("not cut"),
      Number(DT_KEY(train.optimizer.clip_norm), kRun, {0, 1e30, true},
             "A gradient whose norm over the whole model is larger is scaled down to this norm, before "
             "clip_value.")
          .Try("1")
          .Unset("not scaled"),
  };
}

std::vector<Field> ScheduleFields() {
  const std::string kind = "train.optimizer.schedule.kind";
  return {
      Choice(
          kind, [](auto& config) -> auto& { return config.train.optimizer.schedule.kind; }, kRun,
          {{"constant", ScheduleKind::kConstant},
           {"step", ScheduleKind::kStep},
           {"exponential", ScheduleKind::kExponential},
           {"inverse_time", ScheduleKind::kInverseTime},
           {"cosine", ScheduleKind::kCosine}},
          "The learning rate after n updates, beginning after the warm-up. step: rate * decay_rate^floor(n / "
          "decay_steps); exponential: the same without floor; inverse_time: rate / (1 + decay_rate * n / "
          "decay_steps); cosine: down to end_learning_rate along half a wave of decay_steps."),
      Number(DT_KEY(train.optimizer.schedule.decay_steps), kRun, {1, 1e15},
             "Updates from one change to the next; with cosine: until the end.")
          .Unit("updates")
          .Try("10000")
          .Required()
          .OnlyWithAny(kind, {"step", "exponential", "inverse_time", "cosine"}),
      Number(DT_KEY(train.optimizer.schedule.decay_rate), kRun, {0, 1e30, true},
             "What becomes of the learning rate in decay_steps.")
          .Try("0.5")
          .Required()
          .OnlyWithAny(kind, {"step", "exponential", "inverse_time"}),
      Number(DT_KEY(train.optimizer.schedule.end_learning_rate), kRun, {0, 1e30},
             "The learning rate from the end of the wave on.")
          .OnlyWith(kind, "cosine"),
      Number(DT_KEY(train.optimizer.schedule.warmup_steps), kRun, {0, 1e15},
             "In the first so many updates the learning rate grows linearly up to its full value; the "
             "schedule begins after them.")
          .Unit("updates"),
  };
}

std::vector<Field> OptimizerFields() {
  std::vector<Field> all = RuleFields();
  for (Field& field : ScheduleFields()) all.push_back(std::move(field));
  return all;
}

std::vector<Field> LoopFields() {
  return {
      Choice(
          DT_KEY(train.mode), kRun,
          {{"async", TrainMode::kAsync}, {"sync", TrainMode::kSync}, {"ssp", TrainMode::kSsp}},
          "async: a gradient is applied when it arrives; sync: the mean of a round of gradients is applied "
          "at once; ssp: as async, but nobody gets further ahead of the slowest worker than "
          "train.staleness.")
          .OtherNames({{"synchronous", "sync"}, {"asynchronous", "async"}}),
      Number(DT_KEY(train.staleness), kRun, {0, 1e6},
             "How many steps the fastest worker may be ahead of the slowest; 0: lockstep.")
          .Unit("steps")
          .OnlyWith("train.mode", "ssp"),
      Number(DT_KEY(train.aggregate), kRun, {1, 1e6},
             "Gradients that a round waits for. Below the number of workers the others are backups: what "
             "comes too late for its round is dropped.")
          .Unit("gradients per update")
          .Try("2")
          .Unset("the number of workers")
          .OnlyWith("train.mode", "sync"),
      Number(DT_KEY(train.batch_size), kRun, {1, 1e9},
             "Examples in one step of a worker, on each of its devices.")
          .Unit("examples per step")
          .Try("64"),
      Number(DT_KEY(train.epochs), kRun, {1, 1e9},
             "Passes of each worker over its rows. The first reached of epochs and steps ends the run.")
          .Unit("passes over the data")
          .Try("5")
          .Unset("no limit"),
      Number(DT_KEY(train.steps), kRun, {1}, "Global steps: gradients applied, of all workers together.")
          .Unit("global steps")
          .Try("1000")
          .Unset("no limit"),
      Number(DT_KEY(train.in_flight), kRun, {1, 64}, "Exchanges with the ps that a worker may have open.")
          .Unit("open exchanges"),
  };
}

}  // namespace

std::vector<Field> TrainFields() {
  std::vector<Field> fields = LoopFields();
  for (Field& field : OptimizerFields()) fields.push_back(std::move(field));
  return fields;
}

}  // namespace dtrain
