#include "trainer/config/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "trainer/config/device_fields.h"
#include "trainer/config/field_row.h"
#include "trainer/config/host_map.h"
#include "trainer/config/launch_fields.h"
#include "trainer/config/train_fields.h"
#include "trainer/config/user_text.h"

namespace dtrain {

Field Field::Unit(std::string text) const {
  Field field = *this;
  field.unit = std::move(text);
  return field;
}
Field Field::Try(std::string text) const {
  Field field = *this;
  field.example = std::move(text);
  return field;
}
Field Field::Unset(std::string meaning) const {
  Field field = *this;
  field.unset = std::move(meaning);
  return field;
}
Field Field::Required() const {
  Field field = *this;
  field.required = true;
  return field;
}
Field Field::OnlyWith(std::string other_key, std::string value) const {
  return OnlyWithAny(std::move(other_key), {std::move(value)});
}
Field Field::OnlyWithAny(std::string other_key, std::vector<std::string> values) const {
  Field field = *this;
  field.only_key = std::move(other_key);
  field.only_values = std::move(values);
  return field;
}
Field Field::AliasOf(std::string other_key) const {
  Field field = *this;
  field.alias_of = std::move(other_key);
  return field;
}

namespace {

constexpr Scope kRun = Scope::kRun;
constexpr Scope kTask = Scope::kTask;
constexpr Limits kFromZero = {0};
constexpr Limits kFromOne = {1};
constexpr double kMostSeconds = 1e6;

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
      Number(
          DT_KEY(cluster.min_workers), kRun, kFromOne,
          "The run starts when every ps, worker 0 and so many workers in all are there; the others may join "
          "at any time.")
          .Unit("workers")
          .Unset("all of cluster.worker"),
  };
}

std::vector<Field> ModelFields() {
  return {
      Choice(DT_KEY(model.kind), kRun,
             {{"linear", ModelKind::kLinear},
              {"logistic", ModelKind::kLogistic},
              {"softmax", ModelKind::kSoftmax},
              {"mlp", ModelKind::kMlp}},
             "linear: mean squared error; logistic: labels 0 and 1; softmax: labels 0 to outputs - 1; mlp: "
             "softmax behind hidden layers.")
          .Required(),
      Number(DT_KEY(model.inputs), kRun, {1, 1e12}, "Features of one row.")
          .Unit("features of one row")
          .Try("784")
          .Unset("as the data says"),
      Number(DT_KEY(model.outputs), kRun, {1, 1e6},
             "Outputs; the number of classes for softmax and mlp. With CSV it must be given.")
          .Unit("outputs")
          .Try("10")
          .Unset("1; 10 for softmax and mlp"),
      Numbers(DT_KEY(model.hidden), kRun, {1, 1e6}, "Units of each hidden layer, from the inputs on.")
          .Unit("units")
          .Try("[100]")
          .Required()
          .OnlyWith("model.kind", "mlp"),
      Choice(DT_KEY(model.activation), kRun,
             {{"sigmoid", Activation::kSigmoid}, {"tanh", Activation::kTanh}, {"relu", Activation::kRelu}},
             "What hidden layers apply to their outputs.")
          .OnlyWith("model.kind", "mlp"),
      Choice(DT_KEY(model.init.kind), kRun,
             {{"zeros", InitKind::kZeros},
              {"constant", InitKind::kConstant},
              {"normal", InitKind::kNormal},
              {"glorot", InitKind::kGlorot}},
             "Initial weights. normal: mean 0; glorot: uniform, by the numbers of inputs and outputs.")
          .Unset("zeros; glorot for mlp"),
      Number(DT_KEY(model.init.value), kRun, {-1e30, 1e30}, "The initial weight of constant.")
          .Try("0.5")
          .Required()
          .OnlyWith("model.init.kind", "constant"),
      Number(DT_KEY(model.init.stddev), kRun, {0, 1e30, true}, "Standard deviation of normal.")
          .OnlyWith("model.init.kind", "normal"),
      Number(DT_KEY(model.init.seed), kRun, kFromZero,
             "Seed of the initial weights: the same seed gives the same weights, however they are placed."),
      Choice(DT_KEY(model.init.bias), kRun, {{"same", BiasInit::kSame}, {"zeros", BiasInit::kZeros}},
             "Initial biases. same: drawn as the weights are."),
  };
}

// The keys of data.train and data.test. `at` leads from a Config to the source.
template <typename At>
std::vector<Field> SourceFields(const std::string& section, At at) {
  const std::string format = section + ".format";
  const bool train = section == "data.train";
  const Field kind = Choice(
      format, [at](auto& config) -> auto& { return at(config).format; }, kRun,
      {{"idx", DataFormat::kIdx}, {"csv", DataFormat::kCsv}, {"synthetic", DataFormat::kSynthetic}},
      train ? "What workers train on. idx: MNIST's form, plain or gzip, bytes / 255; csv: numbers and a "
              "label, separated by commas; synthetic: made here."
            : "What is evaluated on; as for data.train.");
  return {
      train ? kind.Required() : kind.Unset("no test set"),
      Row(
          section + ".path", [at](auto& config) -> auto& { return at(config).path; }, FieldType::kInputPath,
          kTask, "The CSV file, plain or gzip.")
          .Try("table.csv")
          .Required()
          .OnlyWith(format, "csv"),
      Row(
          section + ".label", [at](auto& config) -> auto& { return at(config).label; }, FieldType::kText,
          kRun,
          "The column of labels: its name in the header, or its number; the first is 0. All others are "
          "features. Labels are numbers, or for classes names: these count from 0 in their sorted order.")
          .Unit("a column's name, or its number")
          .Try("0")
          .Required()
          .OnlyWith(format, "csv"),
      Flag(
          section + ".header", [at](auto& config) -> auto& { return at(config).header; }, kRun,
          "Whether the first line names the columns.")
          .OnlyWith(format, "csv"),
      Row(
          section + ".images", [at](auto& config) -> auto& { return at(config).images; },
          FieldType::kInputPath, kTask, "The IDX file of images.")
          .Try("train-images-idx3-ubyte.gz")
          .Required()
          .OnlyWith(format, "idx"),
      Row(
          section + ".labels", [at](auto& config) -> auto& { return at(config).labels; },
          FieldType::kInputPath, kTask, "The IDX file of labels.")
          .Try("train-labels-idx1-ubyte.gz")
          .Required()
          .OnlyWith(format, "idx"),
      Choice(
          section + ".name", [at](auto& config) -> auto& { return at(config).name; }, kRun,
          {{"linear", SyntheticName::kLinear}, {"digits", SyntheticName::kDigits}},
          "linear: y = 2 x + 10 and noise; digits: drawn digits of 28 x 28 pixels with noise, 10 classes.")
          .Required()
          .OnlyWith(format, "synthetic"),
      Number(
          section + ".rows", [at](auto& config) -> auto& { return at(config).rows; }, kRun, {1, 1e12},
          "How many rows are made.")
          .Unit("rows")
          .Try("10000")
          .Unset(train ? "linear: without end; digits: the drawing's own number"
                       : "digits: the drawing's own number")
          .OnlyWith(format, "synthetic"),
  };
}

std::vector<Field> DataFields() {
  return {
      Number(DT_KEY(data.validation), kRun, kFromZero, "The first N training rows are held out.")
          .Unit("rows held out"),
      Choice(
          DT_KEY(data.split), kRun,
          {{"shard", Split::kShard}, {"full", Split::kFull}, {"feed", Split::kFeed}},
          "shard: each worker trains on its own 1/n of the rows; full: each on all of them; feed: as shard, "
          "but worker 0 alone reads data and sends the others their batches."),
      Flag(DT_KEY(data.shuffle), kRun, "Another order of the rows in each epoch."),
      Number(DT_KEY(data.seed), kRun, kFromZero, "Seed of the order and of synthetic data."),
      Choice(DT_KEY(data.last_batch), kRun, {{"keep", LastBatch::kKeep}, {"drop", LastBatch::kDrop}},
             "What happens to the short batch at the end of an epoch."),
      Choice(DT_KEY(data.scale), kRun,
             {{"none", FeatureScale::kNone},
              {"unit", FeatureScale::kUnit},
              {"standard", FeatureScale::kStandard}},
             "How features are scaled, fitted on the training rows without those held out. unit: least to "
             "greatest become 0 to 1; standard: mean 0, standard deviation 1.")
          .OnlyWith("data.train.format", "csv"),
      Choice(DT_KEY(data.cache), kTask, {{"memory", DataCache::kMemory}, {"device", DataCache::kDevice}},
             "Where a worker keeps its training rows. device: in the memory of its GPU too, if they fit; a "
             "step then sends the numbers of its rows and not the rows. Without a GPU it is memory."),
  };
}

std::vector<Field> PlacementFields() {
  return {
      Choice(
          DT_KEY(placement.policy), kRun,
          {{"bytes", PlacementPolicy::kBytes},
           {"round_robin", PlacementPolicy::kRoundRobin},
           {"pin", PlacementPolicy::kPin}},
          "bytes: split so that every ps holds nearly the same; round_robin: whole variables in turn; pin: "
          "whole variables where placement.pin says."),
      Row(DT_KEY(placement.pin), FieldType::kPins, kRun,
          "Which ps holds a variable: \"weights/W1=0\"; \"biases/*=1\" stands for all names that begin so. "
          "The first that fits counts; the rest go to the ps with the fewest bytes.")
          .Try("[\"weights/W1=0\"]")
          .Required()
          .OnlyWith("placement.policy", "pin"),
      Flag(DT_KEY(placement.log), kTask,
           "Print at the start which ps holds what, and what of a step runs where."),
  };
}

std::vector<Field> RunningFields() {
  return {
      Choice(DT_KEY(eval.on), kRun, {{"test", EvalOn::kTest}, {"validation", EvalOn::kValidation}},
             "test: data.test; validation: the rows held out by data.validation."),
      Number(DT_KEY(eval.every_steps), kRun, kFromZero,
             "The chief evaluates the weights that it has every N of its local steps; 0: not before the end.")
          .Unit("local steps"),
      Flag(DT_KEY(eval.at_end), kRun, "Evaluate when training is over."),
      Choice(DT_KEY(eval.by), kRun, {{"chief", EvalBy::kChief}, {"all", EvalBy::kAll}},
             "Who evaluates; all: every worker, with the weights that it has."),
      Number(DT_KEY(eval.patience), kRun, kFromZero,
             "After so many evaluations of eval.every_steps in a row without a smaller loss the run ends "
             "early; 0: never.")
          .Unit("evaluations"),
      Flag(DT_KEY(eval.keep_best), kRun,
           "Write a checkpoint after each evaluation of eval.every_steps with the smallest loss so far, and "
           "keep the last of those beside checkpoint.keep."),
      Flag(DT_KEY(hooks.stop_on_nan), kRun,
           "Check every loss and every gradient, at the worker and at the ps, and end the run with "
           "exit code 3 where one is not finite."),
      Number(DT_KEY(hooks.log_every_steps), kTask, kFromZero, "A line every N local steps; 0: none.")
          .Unit("local steps"),
      Number(DT_KEY(hooks.log_every_epochs), kTask, kFromZero, "A line every N epochs; 0: none.")
          .Unit("epochs"),
      Number(DT_KEY(hooks.count_every_steps), kTask, kFromZero,
             "A line with global and local steps a second every N local steps; 0: none.")
          .Unit("local steps"),
      Number(
          "hooks.stop_at_step", [](auto& config) -> auto& { return config.train.steps; }, kRun, kFromOne,
          "Another name for train.steps.")
          .Unit("global steps")
          .Try("1000")
          .Unset("no limit")
          .AliasOf("train.steps"),
      Number(DT_KEY(failure.detect_s), kRun, {0.1, kMostSeconds},
             "A task that has not been heard, or has done nothing, for so many seconds is lost.")
          .Unit("seconds"),
      Number(DT_KEY(failure.startup_timeout_s), kRun, {0, kMostSeconds, true},
             "How many seconds the tasks wait for one another at the start.")
          .Unit("seconds"),
      Choice(
          DT_KEY(failure.worker_lost), kRun,
          {{"continue", WorkerLost::kContinue}, {"wait", WorkerLost::kWait}, {"fail", WorkerLost::kFail}},
          "When a worker is lost during the run. continue: it goes on without it; wait: it does not end, and "
          "sync has no round, until it is back; fail: the run ends with exit code 4. Where the chief is "
          "lost, "
          "continue makes the worker of the lowest index the chief; with data.split: feed the run ends."),
      Choice(DT_KEY(failure.ps_lost), kRun, {{"wait", PsLost::kWait}, {"fail", PsLost::kFail}},
             "When a ps is lost during the run. wait: until it is back; then all go on from the newest "
             "checkpoint, which needs checkpoint.dir; fail: the run ends with exit code 4."),
      Number(DT_KEY(failure.wait_s), kRun, {0, kMostSeconds, true},
             "How many seconds a run waits for a lost task before it ends with exit code 4.")
          .Unit("seconds"),
      Number(
          DT_KEY(failure.restarts), kTask, kFromZero,
          "How often `dtrain local` and `dtrain launch` start each task again that has failed or was lost.")
          .Unit("restarts"),
      Choice(
          DT_KEY(failure.on_sigterm), kTask,
          {{"save_and_end", OnSigterm::kSaveAndEnd}, {"leave", OnSigterm::kLeave}},
          "What SIGTERM does. save_and_end: a checkpoint, and the whole run ends with exit code 143; leave: "
          "only this task goes, if it is a worker other than worker 0."),
      Number(DT_KEY(failure.grace_s), kRun, {0, kMostSeconds, true},
             "How many seconds a run has to save and end after SIGTERM or SIGINT.")
          .Unit("seconds"),
      Number(DT_KEY(failure.peer_lost_exit), kTask, {1, 255},
             "The exit code for a lost peer or a deadline: another than 4 where a scheduler wants it.")
          .Try("138"),
  };
}

std::vector<Field> CheckpointFields() {
  return {
      Row(DT_KEY(checkpoint.dir), FieldType::kOutputPath, kTask,
          "A directory for checkpoints (docs/checkpoint.md). Set it for every task. Without it a lost ps "
          "ends "
          "the run, and so does a signal, with nothing saved.")
          .Try("run/ckpt")
          .Unset("none are written"),
      Number(DT_KEY(checkpoint.every_secs), kRun, {0, kMostSeconds},
             "A checkpoint every N seconds; 0: not by time. One is written at the start, one at the end.")
          .Unit("seconds"),
      Number(DT_KEY(checkpoint.every_steps), kRun, kFromZero,
             "A checkpoint every N global steps; 0: not by steps.")
          .Unit("global steps"),
      Number(DT_KEY(checkpoint.timeout_s), kRun, {0, kMostSeconds, true},
             "A checkpoint that is not complete after so many seconds is given up. Training goes on; without "
             "its first or its last one the run ends with exit code 1.")
          .Unit("seconds"),
      Number(DT_KEY(checkpoint.keep), kRun, kFromOne, "How many checkpoints are kept: the newest.")
          .Unit("checkpoints"),
      Row(DT_KEY(checkpoint.resume), FieldType::kText, kTask,
          "auto: a run begins with the newest complete checkpoint in checkpoint.dir, if there is one; never: "
          "with initial values; a path: with that checkpoint.")
          .Unit("auto, never or a path"),
      Choice(DT_KEY(checkpoint.writer), kRun,
             {{"chief", CheckpointWriter::kChief}, {"ps", CheckpointWriter::kPs}},
             "chief: the chief writes all of it to its own disk; ps: each ps writes its part, to one "
             "directory that all of them see."),
  };
}

std::vector<Field> SummaryFields() {
  return {
      Row(DT_KEY(summary.dir), FieldType::kOutputPath, kTask,
          "A directory for TensorBoard's event files: chief/, worker-1/, ..., ps-0/ (docs/summaries.md).")
          .Try("run/logs")
          .Unset("none"),
      Number(DT_KEY(summary.every_steps), kTask, kFromZero,
             "A point of each curve every N local steps of the task that writes it; 0: not by steps.")
          .Unit("local steps"),
      Number(DT_KEY(summary.every_secs), kTask, {0, kMostSeconds},
             "A point of each curve also every N seconds; 0: not by time.")
          .Unit("seconds"),
  };
}

std::vector<Field> HostFields() {
  return {
      Row(DT_KEY(net.bind), FieldType::kAddress, kTask,
          "The address that this task binds, where the cluster's address leads here through a service or "
          "NAT: a ps, or worker 0 with data.split: feed.")
          .Try("\"0.0.0.0:9001\"")
          .Unset("the cluster's address"),
      Number(DT_KEY(net.timeout_ms), kRun, {1, kMostSeconds * 1000}, "How long an answer may take.")
          .Unit("milliseconds"),
      Number(DT_KEY(net.max_message_mb), kTask, {1, 1e6}, "The largest message that is accepted.")
          .Unit("MiB"),
      Flag(DT_KEY(net.checksum), kRun, "Put a checksum on all tensors and verify it: for finding faults."),
      Row(DT_KEY(log.dir), FieldType::kOutputPath, kTask, "A directory: each task writes its log there too.")
          .Try("run/logs")
          .Unset("no file"),
      Choice(
          "log.format", [](auto& config) -> auto& { return config.log.json; }, kTask,
          {{"text", false}, {"json", true}}, "Log lines as text, or as one JSON object each."),
      Choice(DT_KEY(log.level), kTask,
             {{"debug", static_cast<int>(LogLevel::kDebug)},
              {"info", static_cast<int>(LogLevel::kInfo)},
              {"warning", static_cast<int>(LogLevel::kWarning)},
              {"error", static_cast<int>(LogLevel::kError)}},
             "The least important lines that are written."),
      Flag(DT_KEY(security.insecure), kTask,
           "Allow a ps to bind an address that other hosts can reach, without encryption or authentication."),
  };
}

std::vector<Field> AllFields() {
  std::vector<Field> all = ClusterFields();
  for (const auto& part : {ModelFields(),
                           SourceFields(
                               "data.train", [](auto& config) -> auto& { return config.data.train; }),
                           SourceFields(
                               "data.test", [](auto& config) -> auto& { return config.data.test; }),
                           DataFields(), TrainFields(), PlacementFields(), DeviceFields(), RunningFields(),
                           CheckpointFields(), SummaryFields(), HostFields(), LaunchFields()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::string TextListText(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back(Quoted(text));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

}  // namespace

const std::vector<Field>& Fields() {
  static const std::vector<Field> fields = AllFields();
  return fields;
}

const Field* FindField(const std::string& key) {
  for (const Field& field : Fields()) {
    if (field.key == key) return &field;
  }
  return nullptr;
}

bool IsSection(const std::string& name) { return !NamesIn(name).empty(); }

std::vector<std::string> NamesIn(const std::string& section) {
  const std::string prefix = section.empty() ? "" : section + ".";
  std::vector<std::string> names;
  for (const Field& field : Fields()) {
    if (field.key.compare(0, prefix.size(), prefix) != 0) continue;
    const std::string rest = field.key.substr(prefix.size());
    const std::string name = rest.substr(0, rest.find('.'));
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return names;
}

std::string JoinKey(const std::string& section, const std::string& name) {
  return section.empty() ? name : section + "." + name;
}

bool Applies(const Field& field, const Config& config) {
  if (field.only_key.empty()) return true;
  const Value chosen = FindField(field.only_key)->get(config);
  return std::any_of(field.only_values.begin(), field.only_values.end(),
                     [&](const std::string& value) { return chosen == Value(value); });
}

std::string ValueText(const Field& field, const Value& value) {
  if (IsNull(value)) return "null";
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<int64_t>(&value)) return fmt::format("{}", *whole);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) return TextListText(*list);
  if (const auto* sizes = std::get_if<std::vector<int64_t>>(&value)) {
    return fmt::format("[{}]", fmt::join(*sizes, ", "));
  }
  if (const auto* hosts = std::get_if<LaunchHosts>(&value)) return HostsText(*hosts);
  const std::string& text = std::get<std::string>(value);
  return field.type == FieldType::kChoice ? text : Quoted(text);
}

std::string LimitsText(const Field& field) {
  switch (field.type) {
    case FieldType::kChoice:
      return fmt::format("{}", fmt::join(field.choices, ", "));
    case FieldType::kInt:
    case FieldType::kInts:
    case FieldType::kDouble:
      break;
    default:
      return "";
  }
  const Limits& limits = field.limits;
  const std::string least = fmt::format("{} {}", limits.above ? ">" : ">=", limits.least);
  if (limits.most == std::numeric_limits<double>::infinity()) return least;
  if (!limits.above) return fmt::format("{} to {}", limits.least, limits.most);
  return fmt::format("{}, <= {}", least, limits.most);
}

}  // namespace dtrain
