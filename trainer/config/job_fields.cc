// The table's rows of what is trained: cluster, model and train; data_fields.cc has those of data.
#include <string>

#include "trainer/config/field_row.h"

namespace dtrain {
namespace {

constexpr Scope kRun = Scope::kRun;
constexpr Scope kTask = Scope::kTask;
constexpr Limits kFromZero = {0};
constexpr Limits kFromOne = {1};
constexpr Limits kFraction = {0, 0.999999};  // below 1 as a float too

std::vector<Field> ClusterFields() {
  return {
      Row(DT_KEY(cluster.ps), FieldType::kAddresses, kRun,
          "Addresses of the parameter servers, in the order of their index. Each binds its own.")
          .Try("[\"localhost:9001\"]")
          .Required(),
      Row(DT_KEY(cluster.worker), FieldType::kAddresses, kRun,
          "Addresses of the workers, in the order of their index; worker 0 is the chief. An address is the "
          "worker's name: its port is not opened, save worker 0's with data.split: feed.")
          .Try("[\"localhost:9002\"]")
          .Required(),
      Number(DT_KEY(cluster.min_workers), kRun, kFromOne,
             "The run starts when every ps, worker 0 and so many workers in all are there; the others may "
             "join at any time.")
          .Unit("workers")
          .Unset("all of cluster.worker"),
  };
}

std::vector<std::pair<const char*, gpu::LossKind>> LossNames() {
  std::vector<std::pair<const char*, gpu::LossKind>> names;
  for (const gpu::LossRow& row : gpu::LossTable()) names.emplace_back(row.name, row.kind);
  return names;
}

std::vector<Field> ModelFields() {
  return {
      Choice(
          DT_KEY(model.kind), kRun,
          {{"linear", ModelKind::kLinear},
           {"logistic", ModelKind::kLogistic},
           {"softmax", ModelKind::kSoftmax},
           {"mlp", ModelKind::kMlp},
           {"fm", ModelKind::kFm},
           {"wide_deep", ModelKind::kWideDeep}},
          "linear: mean squared error; logistic: labels 0 and 1; softmax: labels 0 to outputs - 1; mlp: "
          "hidden layers, and behind them one of these as model.head says; fm: a factorization machine "
          "of sparse rows; wide_deep: a linear model of sparse rows and hidden layers on embeddings of their "
          "features, added up.")
          .Required(),
      Number(DT_KEY(model.inputs), kRun, {1, 1e12}, "Features of one row.")
          .OnlyWith("model.table", {"auto", "none", "range"})
          .Unit("features of one row")
          .Try("784")
          .Unset("as the data says"),
      Number(DT_KEY(model.outputs), kRun, {1, 1e6}, "Outputs; with a softmax the number of classes.")
          .Unit("outputs")
          .Try("10")
          .Unset("1; with a softmax the classes of data.train for CSV, and else 10"),
      Number(DT_KEY(model.hidden), kRun, {1, 1e6}, "Units of each hidden layer, from the inputs on.")
          .Unit("units")
          .Try("[100]")
          .Required()
          .OnlyWith("model.kind", {"mlp", "wide_deep"}),
      Choice(DT_KEY(model.activation), kRun,
             {{"sigmoid", Activation::kSigmoid}, {"tanh", Activation::kTanh}, {"relu", Activation::kRelu}},
             "What hidden layers apply to their outputs.")
          .OnlyWith("model.kind", {"mlp", "wide_deep"}),
      Choice(DT_KEY(model.head), kRun,
             {{"softmax", ModelHead::kSoftmax},
              {"logistic", ModelHead::kLogistic},
              {"linear", ModelHead::kLinear}},
             "What is behind the hidden layers. softmax: an output for each class; logistic: one output, "
             "labels 0 and 1; linear: one output, real targets, mean squared error. fm and wide_deep: "
             "logistic, their default, or linear.")
          .OnlyWith("model.kind", {"mlp", "fm", "wide_deep"}),
      Choice(
          DT_KEY(model.loss), kRun, LossNames(),
          "What training minimises; docs/models.md has the formulas. poisson (labels >= 0), gamma (> 0) and "
          "tweedie (>= 0) predict e^output. For linear heads; hinge and squared_hinge are for logistic "
          "ones, and give scores, not probabilities.")
          .Unset("squared of a linear head; cross-entropy of classes"),
      Number(DT_KEY(model.loss_delta), kRun, {0, 1e30, true},
             "Errors above it count linearly, those below by their square.")
          .OnlyWith("model.loss", {"huber"}),
      Number(DT_KEY(model.loss_level), kRun, {0, 0.999999, true},
             "The share of labels that are to be below the prediction.")
          .OnlyWith("model.loss", {"quantile"}),
      Number(DT_KEY(model.loss_power), kRun, {1, 1.999, true},
             "The variance grows with the mean to this power: near 1 as counts, near 2 as gamma.")
          .Try("1.5")
          .OnlyWith("model.loss", {"tweedie"}),
      Number(
          DT_KEY(model.factors), kRun, {1, 1024},
          "Factors of each feature. The sum of the products of two features' factors is the weight of their "
          "pair.")
          .OnlyWith("model.kind", {"fm"}),
      Number(DT_KEY(model.embedding), kRun, {1, 1024}, "Values of the embedding of each feature.")
          .Unit("values")
          .OnlyWith("model.kind", {"wide_deep"}),
      Choice(DT_KEY(model.combine), kRun, {{"sum", Combine::kSum}, {"join", Combine::kJoin}},
             "How the embeddings of a row become inputs of the first layer. sum: all are added up; join: one "
             "sum for each column of categories, side by side. Left out it is join where rows have columns "
             "(criteo, data.hash, data.bags).")
          .OnlyWith("model.kind", {"wide_deep"}),
      Choice(
          DT_KEY(model.table), kRun,
          {{"auto", TableKind::kAuto},
           {"none", TableKind::kNone},
           {"range", TableKind::kRange},
           {"hash", TableKind::kHash}},
          "Where the weights of features lie. range: in a table of rows over all ps: a step moves only "
          "those of its batch; hash: the same, and features are keys of 64 bits, as many as come; none: in a "
          "tensor that travels whole; auto: range where rows are sparse (libsvm, vw, criteo, data.hash, "
          "data.bags), "
          "else none."),
      Choice(DT_KEY(model.table_pages), kTask, {{"auto", TablePages::kAuto}, {"huge", TablePages::kHuge}},
             "How the rows of a range lie in memory. auto: those of a table above 128 MiB a ps in groups, in "
             "the "
             "order of their first updates, which takes least; huge: each row at a place of its own, in "
             "pages of "
             "2 MiB, which is faster where most rows are written.")
          .OnlyWith("model.table", {"auto", "range"}),
      Number(
          DT_KEY(model.admit_after), kRun, {1, 1e6},
          "A key gets a row with the so many-th update that names it. Until then it has the initial values "
          "and its gradients are dropped.")
          .Unit("updates")
          .OnlyWith("model.table", {"hash"}),
      Number(DT_KEY(model.evict_after), kRun, {1, 1e9},
             "A row that no update has named for so many steps leaves, and so does a key without one.")
          .Unit("steps")
          .Try("100000")
          .Unset("never")
          .OnlyWith("model.table", {"hash"}),
      Number(DT_KEY(model.max_rows), kRun, {65536, 1e13},
             "Rows on all ps, with keys that have none yet. Those that were named longest ago make room for "
             "more.")
          .Unit("rows")
          .Try("10000000")
          .Unset("without end")
          .OnlyWith("model.table", {"hash"}),
      Choice(DT_KEY(model.init.kind), kRun,
             {{"zeros", InitKind::kZeros},
              {"constant", InitKind::kConstant},
              {"normal", InitKind::kNormal},
              {"glorot", InitKind::kGlorot}},
             "Initial weights. normal: mean 0; glorot: uniform, by the numbers of inputs and outputs. fm and "
             "wide_deep: "
             "normal alone, for factors and embeddings; their weights begin at 0, and layers as glorot has "
             "them.")
          .Unset("zeros; glorot for mlp, normal for fm and wide_deep"),
      Number(DT_KEY(model.init.value), kRun, {-1e30, 1e30}, "The initial weight of constant.")
          .Try("0.5")
          .Required()
          .OnlyWith("model.init.kind", {"constant"}),
      Number(DT_KEY(model.init.stddev), kRun, {0, 1e30, true},
             "Standard deviation of normal; 0.01 where it is left out with fm or wide_deep.")
          .OnlyWith("model.init.kind", {"normal"}),
      Number(DT_KEY(model.init.seed), kRun, kFromZero,
             "Seed of the initial weights: the same seed gives the same weights, however they are placed."),
      Choice(DT_KEY(model.init.bias), kRun, {{"same", BiasInit::kSame}, {"zeros", BiasInit::kZeros}},
             "Initial biases. same: drawn as the weights are."),
      Number(DT_KEY(model.init.output_bias), kRun, {-1e30, 1e30},
             "The initial biases of the last layer. For a linear head: about the mean of the labels, so that "
             "training need not find it; with poisson, gamma and tweedie its logarithm.")
          .OnlyWith("model.init.bias", {"zeros"}),
  };
}

std::vector<Field> RuleFields() {
  const std::string kind = "train.optimizer.kind";
  return {
      Choice(kind, DT_AT(train.optimizer.kind), kRun,
             {{"sgd", OptimizerKind::kSgd},
              {"momentum", OptimizerKind::kMomentum},
              {"adagrad", OptimizerKind::kAdagrad},
              {"rmsprop", OptimizerKind::kRmsprop},
              {"adam", OptimizerKind::kAdam},
              {"adamw", OptimizerKind::kAdamw},
              {"ftrl", OptimizerKind::kFtrl}},
             "How gradients become new weights; docs/optimizers.md has the formulas."),
      Number(DT_KEY(train.optimizer.learning_rate), kRun, {0, 1e30, true},
             "Learning rate; 0.001 where it is left out with adam or adamw."),
      Number(DT_KEY(train.optimizer.momentum), kRun, kFraction, "Share of the velocity that stays.")
          .OnlyWith(kind, {"momentum"}),
      Flag(DT_KEY(train.optimizer.nesterov), kRun, "Look ahead by one step of the velocity.")
          .OnlyWith(kind, {"momentum"}),
      Number(DT_KEY(train.optimizer.beta1), kRun, kFraction, "Share of the mean of gradients that stays.")
          .OnlyWith(kind, {"adam", "adamw"}),
      Number(DT_KEY(train.optimizer.beta2), kRun, kFraction, "Share of the mean of squares that stays.")
          .OnlyWith(kind, {"adam", "adamw"}),
      Number(DT_KEY(train.optimizer.rho), kRun, kFraction, "Share of the mean of squares that stays.")
          .OnlyWith(kind, {"rmsprop"}),
      Number(DT_KEY(train.optimizer.epsilon), kRun, {1e-30, 1e30},
             "Added to the root that divides, against division by nothing.")
          .OnlyWith(kind, {"adagrad", "rmsprop", "adam", "adamw"}),
      Number(DT_KEY(train.optimizer.initial_accumulator), kRun, {0, 1e30}, "Where the sum of squares starts.")
          .OnlyWith(kind, {"adagrad", "ftrl"}),
      Number(DT_KEY(train.optimizer.beta), kRun, {0, 1e30}, "Added to the root of the sum of squares.")
          .OnlyWith(kind, {"ftrl"}),
      Number(DT_KEY(train.optimizer.l1), kRun, {0, 1e30},
             "l1 * sign(weight) is added to the gradient; with ftrl the l1 of its paper: exact zeros."),
      Number(DT_KEY(train.optimizer.l2), kRun, {0, 1e30},
             "l2 * weight is added to the gradient, known as weight decay; with ftrl the l2 of its paper."),
      Number(DT_KEY(train.optimizer.weight_decay), kRun, {0, 1e30},
             "Decoupled weight decay: each update first takes learning rate * weight_decay * weight off the "
             "weight.")
          .OnlyWith(kind, {"adamw"}),
      Flag(DT_KEY(train.optimizer.decay_biases), kRun,
           "Whether l1, l2 and weight_decay act on biases too. false: on weights alone."),
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
          kind, DT_AT(train.optimizer.schedule.kind), kRun,
          {{"constant", ScheduleKind::kConstant},
           {"step", ScheduleKind::kStep},
           {"exponential", ScheduleKind::kExponential},
           {"inverse_time", ScheduleKind::kInverseTime},
           {"cosine", ScheduleKind::kCosine}},
          "The learning rate after n updates, beginning after the warm-up. step: rate * decay_rate^floor(n / "
          "decay_steps); exponential: the same without floor; inverse_time: rate / (1 + decay_rate * n / "
          "decay_steps); cosine: down to end_learning_rate along half a wave of decay_steps."),
      NumberOr("auto", kAutoDecay, DT_KEY(train.optimizer.schedule.decay_steps), kRun, {1, 1e15},
               "Updates from one change to the next; with cosine: until the end. auto: all updates of the "
               "run behind the warm-up, which needs train.steps, or rows that have an end and no pipe.")
          .Unit("updates")
          .Try("10000")
          .Required()
          .OnlyWith(kind, {"step", "exponential", "inverse_time", "cosine"}),
      Number(DT_KEY(train.optimizer.schedule.decay_rate), kRun, {0, 1e30, true},
             "What becomes of the learning rate in decay_steps.")
          .Try("0.5")
          .Required()
          .OnlyWith(kind, {"step", "exponential", "inverse_time"}),
      Number(DT_KEY(train.optimizer.schedule.end_learning_rate), kRun, {0, 1e30},
             "The learning rate from the end of the wave on.")
          .OnlyWith(kind, {"cosine"}),
      Number(DT_KEY(train.optimizer.schedule.warmup_steps), kRun, {0, 1e15},
             "In the first so many updates the learning rate grows linearly up to its full value; the "
             "schedule begins after them.")
          .Unit("updates"),
  };
}

std::vector<Field> LoopFields() {
  return {
      Choice(
          DT_KEY(train.mode), kRun,
          {{"async", TrainMode::kAsync}, {"sync", TrainMode::kSync}, {"ssp", TrainMode::kSsp}},
          "async: a gradient is applied when it arrives; sync: the mean of a round of gradients is applied "
          "at once; ssp: as async, but nobody gets further ahead of the slowest worker than train.staleness.")
          .OtherNames({{"synchronous", "sync"}, {"asynchronous", "async"}}),
      Number(DT_KEY(train.staleness), kRun, {0, 1e6},
             "How many steps the fastest worker may be ahead of the slowest; 0: lockstep.")
          .Unit("steps")
          .OnlyWith("train.mode", {"ssp"}),
      Number(DT_KEY(train.aggregate), kRun, {1, 1e6},
             "Gradients that a round waits for. Below the number of workers the others are backups: what "
             "comes too late for its round is dropped.")
          .Unit("gradients per update")
          .Try("2")
          .Unset("the number of workers")
          .OnlyWith("train.mode", {"sync"}),
      Number(DT_KEY(train.batch_size), kRun, {1, 1e9},
             "Examples in one step of a worker, on each of its devices.")
          .Unit("examples per step")
          .Try("64"),
      Number(DT_KEY(train.epochs), kRun, {1, 1e9},
             "Passes of each worker over its rows. The first reached of epochs, steps and max_secs ends the "
             "run.")
          .Unit("passes over the data")
          .Try("5")
          .Unset("no limit"),
      Number(DT_KEY(train.steps), kRun, {1}, "Global steps: gradients applied, of all workers together.")
          .Unit("global steps")
          .Try("1000")
          .Unset("no limit"),
      Number(DT_KEY(train.max_secs), kRun, {0, 1e9, true},
             "The run is saved, evaluated and done after so many seconds of training. A run that is resumed "
             "counts from its own start.")
          .Unit("seconds")
          .Try("3600")
          .Unset("no limit"),
      Choice(DT_KEY(train.reduce), kRun, {{"mean", Reduce::kMean}, {"sum", Reduce::kSum}},
             "What a gradient is of the rows of its update: their mean, or their sum. The sum is the mean "
             "times the rows, so it needs a learning rate that is so many times smaller."),
      Number(DT_KEY(train.in_flight), kRun, {1, 64}, "Exchanges with the ps that a worker may have open.")
          .Unit("open exchanges"),
  };
}

// The keys of the optimizer of each part of a model: those of train.optimizer but clip_norm, which is of the
// whole model.
std::vector<Field> PartFields(const std::vector<Field>& common) {
  const std::string section = "train.optimizer.";
  std::vector<Field> fields;
  for (const PartKey& part : kPartKeys) {
    for (const Field& base : common) {
      const std::string name = base.key.substr(section.size());
      if (name == "clip_norm") continue;
      const auto in_part = [&](const std::string& key) {
        return key.empty() ? key : section + part.name + "." + key.substr(section.size());
      };
      Field field = base;
      field.key = in_part(base.key);
      field.only_key = in_part(base.only_key);
      field.common_key = base.key;
      field.only_model = part.model;
      field.unset = "as train.optimizer";
      field.get = [=, get = base.get, at = part.at](const Config& config) {
        const PartOptimizer& its = config.train.*at;
        if (its.own.count(name) == 0) return Value();
        Config as_common;
        as_common.train.optimizer = its.values;
        return get(as_common);
      };
      field.set = [=, set = base.set, at = part.at](const Value& value, Config* config) {
        PartOptimizer& its = config->train.*at;
        Config as_common;
        as_common.train.optimizer = its.values;
        set(value, &as_common);
        its.values = as_common.train.optimizer;
        IsNull(value) ? void(its.own.erase(name)) : void(its.own.insert(name));
      };
      fields.push_back(std::move(field));
    }
  }
  return fields;
}

}  // namespace

std::vector<Field> JobFields() {
  const std::vector<Field> optimizer = Joined({RuleFields(), ScheduleFields()});
  return Joined(
      {ClusterFields(), ModelFields(), DataFields(), LoopFields(), optimizer, PartFields(optimizer)});
}

}  // namespace dtrain
