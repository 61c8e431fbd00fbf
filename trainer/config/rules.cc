#include "trainer/config/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "base/names.h"
#include "trainer/config/config.h"
#include "trainer/config/item_text.h"
#include "trainer/config/parse.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

constexpr int kDigitClasses = 10;
constexpr int64_t kMaxTowers = 64;
// Exit codes that have a meaning already: those of docs/operations.md, the shell's "cannot be executed", and
// those of processes that the kernel kills.
constexpr int64_t kTakenExitCodes[] = {1, 2, 3, 127, 128, 130, 137, 139, 143};
constexpr double kAdamLearningRate = 0.001;  // TensorFlow's and PyTorch's, also of adamw
constexpr double kFactorsStddev = 0.01;      // of the first factors and embeddings

class Rules : private DraftRules {
 public:
  Rules(const LoadOptions& options, Draft* draft) : DraftRules(draft), options_(options) {}

  void Run();

 private:
  void DropOverridden();
  void SetDefaults();
  void SetPartDefaults();
  void SetFactorDefaults();
  void SetColumns();
  void CheckEffect(const Field& field);
  void CheckRequired(const Field& field);
  void CheckTraining();
  void CheckSchedule();
  void CheckAutoDecay(const ScheduleConfig& schedule, const std::string& key);
  void CheckExitCode();
  int64_t Workers() const;
  void CheckWorkers();
  void CheckReplicas();
  void CheckMetrics();
  void CheckDevices();
  void CheckAddresses();
  void CheckHosts();
  void CheckRows();
  void CheckHeldOut();
  void CheckWeights();
  void CheckOffset();
  void CheckRenames();
  void CheckColumnTexts();
  void CheckClasses();
  void CheckPipes(const std::string& section, const DataSourceConfig& source);
  void CheckEvaluation();
  void CheckLoss();
  void CheckOutputs();
  std::string HeadKey() const;
  void CheckTargets(const std::string& section, const DataSourceConfig& source);
  void CheckText();
  void CheckLabelColumn(const std::string& section, const DataSourceConfig& source);

  const LoadOptions& options_;
};

// Linear values that are made have no end unless their number is given.
bool IsEndless(const DataSourceConfig& source) {
  return source.format == DataFormat::kSynthetic && source.name == SyntheticName::kLinear && !source.rows;
}

// The key that gives rows a weight; empty: all count the same.
std::string WeightsKey(const DataConfig& data) {
  if (!data.weight.empty()) return "data.weight";
  if (HasRowWeights(data)) return "data.train.format";
  return data.class_weights.empty() ? "" : "data.class_weights";
}

void Rules::Run() {
  DropOverridden();
  SetDefaults();
  for (const Field& field : Fields()) {
    CheckEffect(field);
    if (!options_.cluster_optional || field.key.compare(0, 8, "cluster.") != 0) CheckRequired(field);
  }
  CheckTraining();
  CheckSchedule();
  CheckExitCode();
  CheckMetrics();
  CheckWorkers();
  CheckReplicas();
  CheckDevices();
  CheckAddresses();
  CheckRows();
  CheckEvaluation();
  CheckOutputs();
  CheckLoss();
  CheckTargets("data.train", config_.data.train);
  CheckTargets("data.test", config_.data.test);
  CheckText();
  CheckSparseRules(&draft_);
  if (options_.placed) CheckHosts();
}

// A flag that chooses another kind makes the file's settings of the old kind meaningless, not wrong.
void Rules::DropOverridden() {
  for (const Field& field : Fields()) {
    const Given* const given = Find(field.key);
    const Given* const chooser = Find(field.only_key);
    if (given == nullptr || given->place.flag() || chooser == nullptr || !chooser->place.flag()) continue;
    if (Applies(field, config_)) continue;
    field.set(Value(), &config_);
    draft_.given.erase(field.key);
  }
}

double DefaultRate(OptimizerKind kind) {
  const bool adam = kind == OptimizerKind::kAdam || kind == OptimizerKind::kAdamw;
  return adam ? kAdamLearningRate : OptimizerConfig().learning_rate;
}

// Sets the defaults that another key decides.
void Rules::SetDefaults() {
  OptimizerConfig& optimizer = config_.train.optimizer;
  if (Find("train.optimizer.learning_rate") == nullptr) optimizer.learning_rate = DefaultRate(optimizer.kind);
  SetPartDefaults();
  const bool deep = config_.model.kind == ModelKind::kWideDeep;
  if (config_.model.kind == ModelKind::kFm || deep) SetFactorDefaults();
  if (deep) SetColumns();
  const std::vector<std::string>& classes = config_.data.classes;
  if (!classes.empty() && HasOutputPerClass(config_.model) && Find("model.outputs") == nullptr) {
    config_.model.outputs = static_cast<int64_t>(classes.size());
  }
  if (HasSparseRows(config_.data) && Find("hooks.progressive") == nullptr) config_.hooks.progressive = true;
  // The kernels of GPUs know no weights and no offsets.
  const bool alike = WeightsKey(config_.data).empty() && config_.data.offset.empty();
  if (!alike && config_.device.kind == DeviceKind::kAuto) config_.device.kind = DeviceKind::kCpu;
}

// Completes the optimizers of parts. A learning rate that nobody has given is that of the part's own kind.
void Rules::SetPartDefaults() {
  for (const PartKey& part : kPartKeys) {
    PartOptimizer& its = config_.train.*part.at;
    if (its.own.empty()) continue;
    const std::string section = fmt::format("train.optimizer.{}", part.name);
    Config merged;
    merged.train.optimizer = config_.train.optimizer;
    for (const Field* field : FieldsIn(section)) {
      const Value own = field->get(config_);
      if (!IsNull(own)) FindField(field->common_key)->set(own, &merged);
    }
    its.values = merged.train.optimizer;
    const double rate = DefaultRate(its.values.kind);
    if (its.own.count("learning_rate") > 0 || Find("train.optimizer.learning_rate") != nullptr) continue;
    if (its.values.learning_rate != rate) FindField(section + ".learning_rate")->set(rate, &config_);
  }
}

void Rules::SetFactorDefaults() {
  ModelConfig& model = config_.model;
  if (Find("model.head") == nullptr) model.head = ModelHead::kLogistic;
  if (Find("model.init.kind") == nullptr) model.init.kind = InitKind::kNormal;
  if (Find("model.init.stddev") == nullptr) model.init.stddev = kFactorsStddev;
}

// The layers of wide_deep tell columns from each other, where the data has columns.
void Rules::SetColumns() {
  ModelConfig& model = config_.model;
  DataConfig& data = config_.data;
  data.by_column = data.train.format == DataFormat::kCriteo || HashesColumns(data);
  if (!data.by_column) return;
  model.columns = CategoryColumns(data);
  model.column_bits = static_cast<int>(*HashBits(data));
  if (Find("model.combine") == nullptr) model.combine = Combine::kJoin;
}

void Rules::CheckEffect(const Field& field) {
  if (!IsGood(field.key) || Applies(field, config_)) return;
  const Field& kind = *FindField("model.kind");
  const bool other_model = !field.only_model.empty() && kind.get(config_) != Value(field.only_model);
  const Field& chooser = other_model ? kind : *FindField(field.only_key);
  if (IsBad(chooser.key)) return;
  Refuse(field.key, fmt::format("has no effect with {} = {}. Leave it out, or set {} to {}.", chooser.key,
                                ValueText(chooser, ValueOrCommon(chooser, config_)), chooser.key,
                                other_model ? field.only_model : ListText(field.only_values, "or")));
}

void Rules::CheckRequired(const Field& field) {
  if (!field.required || Find(field.key) != nullptr || !Applies(field, config_)) return;
  // A part and train.optimizer need what their own choice needs.
  if (field.only_key.rfind("train.optimizer.", 0) == 0) {
    if (Find(field.only_key) == nullptr || Find(field.common_key) != nullptr) return;
    const Value own = ValueOrCommon(*FindField(field.only_key), config_);
    const auto is_own = [&](const std::string& value) { return own == Value(value); };
    if (std::none_of(field.only_values.begin(), field.only_values.end(), is_own)) return;
  }
  const size_t dot = field.key.rfind('.');
  const Field* const chooser = FindField(field.only_key);
  // Where the line lists the choices none is proposed: only the user knows the data and the model.
  const std::string choice = chooser == nullptr || field.choices.empty() ? "..." : field.choices.front();
  const std::string example = field.example.empty() ? choice : field.example;
  const std::string why = chooser == nullptr ? RuleText(field)
                                             : fmt::format("{} = {} needs it", chooser->key,
                                                           ValueText(*chooser, chooser->get(config_)));
  const Place place = field.only_key.empty() ? PlaceOf(field.key) : PlaceOf(field.only_key);
  Add(place, fmt::format("{} is missing; {}. Write \"{}: {}\" under {}.", field.key, why,
                         field.key.substr(dot + 1), example, field.key.substr(0, dot)));
}

void Rules::CheckTraining() {
  const TrainConfig& train = config_.train;
  RefuseIf(train.in_flight > 1 && train.mode != TrainMode::kAsync, "train.in_flight",
           "must be 1 unless train.mode is async: others wait for each gradient. Try 1.");
  if (Find("train.steps") != nullptr || Find("train.max_secs") != nullptr) return;
  if (Find("train.epochs") == nullptr) {
    Add({0, 0, draft_.path},
        "train.epochs or train.steps is missing; one of them ends the run. Write \"epochs: 5\" under train.");
  } else if (IsEndless(config_.data.train) && !IsBad("data.train.rows") && !IsBad("data.train.name")) {
    Refuse("train.epochs",
           "data.train has no end (synthetic linear without rows). Set train.steps or data.train.rows.");
  }
}

// The updates of a run are train.steps, or follow from the number of rows.
void Rules::CheckSchedule() {
  std::optional<int64_t> warmup;  // of the schedule before
  for (const auto& [section, optimizer] : OptimizersOf(config_.train)) {
    const ScheduleConfig& schedule = optimizer.schedule;
    if (schedule.kind == ScheduleKind::kConstant || schedule.decay_steps != kAutoDecay) continue;
    const std::string own = section + ".schedule.decay_steps";
    const std::string key = Find(own) != nullptr ? own : "train.optimizer.schedule.decay_steps";
    if (!IsGood(key)) continue;
    RefuseIf(
        warmup.value_or(schedule.warmup_steps) != schedule.warmup_steps, key,
        "is auto for both parts of the model, and their warm-ups differ. Give both one warmup_steps, or a "
        "number here. Try 10000.");
    warmup = schedule.warmup_steps;
    CheckAutoDecay(schedule, key);
  }
}

void Rules::CheckAutoDecay(const ScheduleConfig& schedule, const std::string& key) {
  RefuseIf(
      schedule.kind == ScheduleKind::kStep, key,
      "is one step as long as the run, which never comes. Give the updates from one step to the next. Try "
      "10000.");
  if (config_.train.steps || IsBad("train.steps")) return;
  const DataSourceConfig& train = config_.data.train;
  const bool counted = config_.train.epochs && !IsEndless(train) && !ReadsPipe(train);
  RefuseIf(!counted && !IsBad("train.epochs"), key,
           "is the updates of the run, and how many they are nobody knows: it has no train.steps, and no "
           "epochs of "
           "rows that can be counted. Set train.steps, or give a number. Try 10000.");
}

// A supervisor knows by this code alone that a task ended because it lost a peer.
void Rules::CheckExitCode() {
  const int64_t code = config_.failure.peer_lost_exit;
  if (std::count(std::begin(kTakenExitCodes), std::end(kTakenExitCodes), code) == 0) return;
  Refuse("failure.peer_lost_exit", fmt::format("is the code of another ending, as {} are. Try 138, or 4.",
                                               fmt::join(kTakenExitCodes, ", ")));
}

// How many workers the run has; 0: that is not known.
int64_t Rules::Workers() const {
  const auto named = static_cast<int64_t>(config_.cluster.worker.size());
  return options_.workers.value_or(named > 0 ? named : options_.default_workers);
}

void Rules::CheckWorkers() {
  const int64_t workers = Workers();
  const char* const source = options_.workers ? ", by --workers"
                             : !config_.cluster.worker.empty()
                                 ? ""
                                 : ", those of dtrain local where cluster.worker is not set";
  for (const char* key : {"cluster.min_workers", "train.aggregate"}) {
    if (workers == 0 || !IsGood(key)) continue;
    const int64_t given = std::get<int64_t>(FindField(key)->get(config_));
    if (given <= workers) continue;
    Refuse(key, fmt::format("must be at most the number of workers ({}{}). Try {}{}.", workers, source,
                            workers, options_.workers ? fmt::format(", or --workers {}", given) : ""));
  }
}

// The next ps has the replica of a ps. Parameters stay on a GPU only where all tasks share a process.
void Rules::CheckReplicas() {
  const std::string key = "failure.replicas";
  if (config_.failure.replicas == 0 || !IsGood(key)) return;
  const auto named = static_cast<int64_t>(config_.cluster.ps.size());
  const int64_t ps = options_.ps.value_or(named > 0 ? named : options_.default_ps);
  RefuseIf(
      ps == 1, key,
      fmt::format("needs two ps or more, and the run has 1{}: the next ps holds what a ps has. Try 0, or {}.",
                  options_.ps  ? ", by --ps"
                  : named == 0 ? ", that of dtrain local where cluster.ps is not set"
                               : "",
                  options_.ps || named == 0 ? "--ps 2" : "name another ps in cluster.ps"));
  RefuseIf(config_.failure.ps_lost == PsLost::kFail && !IsBad("failure.ps_lost"), key,
           "has no effect with failure.ps_lost = fail, which ends the run when a ps is lost. Try 0, or "
           "failure.ps_lost: wait.");
  RefuseIf(
      options_.one_process, key,
      "has no effect with --in-process: all ps are threads of one process, and end with it. Try 0, or start "
      "without --in-process.");
}

void Rules::CheckMetrics() {
  const MetricsConfig& metrics = config_.metrics;
  RefuseIf(!metrics.port && !metrics.password.empty(), "metrics.password",
           "has no effect without metrics.port. Set metrics.port, or leave it out.");
}

void Rules::CheckDevices() {
  const DeviceConfig& device = config_.device;
  const std::set<int64_t> different(device.ids.begin(), device.ids.end());
  if (different.size() < device.ids.size()) {
    Refuse("device.ids",
           fmt::format("must be different from each other. Try [{}].", fmt::join(different, ", ")));
  }
  if (device.towers() > kMaxTowers) {
    Refuse("device.ids",
           fmt::format("must be at most {} devices for one worker. Use more workers.", kMaxTowers));
  }
  RefuseIf(device.towers() > 1 && device.threads > 1, "device.threads",
           "must be 1 with several device.ids: products of several threads wait for each other. Try 1, and "
           "more device.ids.");
}

void Rules::CheckAddresses() {
  std::map<std::string, std::string> owners;  // of each address
  for (const std::string role : {"ps", "worker"}) {
    const std::string key = "cluster." + role;
    const auto& addresses = role == "ps" ? config_.cluster.ps : config_.cluster.worker;
    for (size_t i = 0; i < addresses.size(); ++i) {
      const bool listens = role == "ps" || (i == 0 && FeedsOthers(config_));
      if (listens && !CanConnect(addresses[i])) {
        Add(PlaceOf(key), fmt::format("{}[{}] = {}; must be where the other machines reach this {}. Name its "
                                      "host here; net.bind says where it listens.",
                                      key, i, addresses[i], role));
      }
      const std::string identity = AddressIdentity(addresses[i]);
      if (identity.empty()) continue;
      const auto [owner, is_new] = owners.emplace(identity, fmt::format("{} {}", role, i));
      if (is_new) continue;
      Add(PlaceOf(key), fmt::format("{}[{}] = {}; is the address of {} too. Give each task its own.", key, i,
                                    addresses[i], owner->second));
    }
  }
}

void Rules::CheckHosts() {
  std::vector<std::string> machines;
  for (const auto* addresses : {&config_.cluster.ps, &config_.cluster.worker}) {
    for (const std::string& address : *addresses) machines.push_back(HostOf(address));
  }
  if (machines.empty()) return;  // `dtrain local` makes a cluster of its own
  for (const auto& [name, host] : config_.launch.hosts) {
    if (std::find(machines.begin(), machines.end(), name) != machines.end()) continue;
    const std::string close = ClosestName(name, machines);
    Add(PlaceOf("launch.hosts"),
        fmt::format("launch.hosts.{}; no address of the cluster is on that machine. {}", name,
                    close.empty() ? "Leave it out, or write its name as cluster.ps or cluster.worker has it."
                                  : fmt::format("Did you mean {}?", close)));
  }
}

void Rules::CheckRows() {
  const DataConfig& data = config_.data;
  const bool feed = data.split == Split::kFeed;
  for (const auto& [key, by_all, other] :
       {std::tuple("data.cache", data.cache == DataCache::kDevice, "memory"),
        std::tuple("eval.by", config_.eval.by == EvalBy::kAll, "chief")}) {
    RefuseIf(
        feed && by_all, key,
        fmt::format("with data.split = feed only worker 0 has data. Try {}, or set data.split to shard or "
                    "full.",
                    other));
  }
  RefuseIf(data.cache == DataCache::kNone && feed && ReadsPipe(data.train), "data.cache",
           "with data.split = feed worker 0 gives rows of many places to all, and keeps none of a pipe. Try "
           "memory, or data.split: shard.");
  if (data.split == Split::kDynamic) {
    RefuseIf(ReadsPipe(data.train), "data.split",
             "deals rows by their numbers in the data, and data.train comes through a pipe. Try shard.");
    RefuseIf(
        IsEndless(data.train) && !IsBad("data.train.rows") && !IsBad("data.train.name"), "data.split",
        "deals what is left of an epoch, and needs data with an end. Give data.train.rows, or try shard.");
  }
  CheckHeldOut();
  CheckWeights();
  CheckOffset();
  CheckRenames();
  CheckColumnTexts();
  CheckClasses();
  CheckPipes("data.train", data.train);
  CheckPipes("data.test", data.test);
  if (data.train.rows && data.validation >= *data.train.rows && data.train.format == DataFormat::kSynthetic) {
    Refuse("data.validation",
           fmt::format("must be < data.train.rows ({}): no row would be left to train on. Try 0.",
                       *data.train.rows));
  }
  RefuseIf(IsEndless(data.test) && IsGood("data.test.name") && !IsBad("data.test.rows"), "data.test.name",
           "a test set needs an end. Write \"rows: 10000\" under data.test.");
}

void Rules::CheckHeldOut() {
  const DataConfig& data = config_.data;
  if (data.validation > 0 && IsGood("data.validation")) {
    const double given = std::strtod(Find("data.validation")->shown.c_str(), nullptr);
    RefuseIf(given != std::floor(given), "data.validation",
             fmt::format("must be a whole number of rows, or a share below 1. Try {}.", data.validation));
  }
  if (data.validation_share > 0 && IsEndless(data.train) && !IsBad("data.train.rows")) {
    Refuse("data.validation", "is a share, and data.train has no end. Give the number of rows. Try 1000.");
  }
  if (data.validation_by == HeldOutBy::kFirst) return;
  RefuseIf(data.validation_share == 0 && !IsBad("data.validation"), "data.validation_by",
           "needs a share in data.validation. Try data.validation: 0.2.");
  const bool targets = IsGood("model.kind") && !IsBad("model.head") && !HasClasses(config_.model);
  RefuseIf(targets && data.validation_by == HeldOutBy::kStratified, "data.validation_by",
           "is about classes, and the model's targets are real numbers. Try seed.");
}

void Rules::CheckWeights() {
  const DataConfig& data = config_.data;
  const std::string key = WeightsKey(data);
  if (key.empty() || IsBad(key)) return;
  RefuseIf(key == "data.weight" && data.train.format == DataFormat::kLibsvm && data.weight != "label", key,
           "must be label for libsvm, whose rows may have their weights behind the label. Try label.");
  RefuseIf(key == "data.weight" && data.train.format == DataFormat::kCriteo && !CriteoColumn(data.weight),
           key, "must be a column behind the label: I1 to I13, C1 to C26, or its number, 1 to 39. Try I1.");
  const bool by_format = key == "data.train.format";
  RefuseIf(config_.device.kind == DeviceKind::kCuda, "device.kind",
           by_format ? "rows of vw have weights, and GPUs compute all rows alike. Try cpu."
                     : key + " is set, and GPUs compute all rows alike. Try cpu, or leave out " + key + ".");
  const bool targets = IsGood("model.kind") && !IsBad("model.head") && !HasClasses(config_.model);
  if (data.class_weights.empty() || IsBad("data.class_weights")) return;
  RefuseIf(targets, "data.class_weights",
           "is about classes, and the model's targets are real numbers. Name a column in data.weight.");
  if (data.class_weights == std::vector<std::string>{"balanced"}) return;
  for (const std::string& item : data.class_weights) {
    if (ParseClassWeight(item)) continue;
    Refuse("data.class_weights",
           fmt::format("{} is no class with a weight >= 0. Try [balanced], or [yes=3].", Quoted(item)));
    return;
  }
}

void Rules::CheckOffset() {
  constexpr char kKey[] = "data.offset";
  const DataConfig& data = config_.data;
  if (data.offset.empty() || IsBad(kKey)) return;
  RefuseIf(data.train.format == DataFormat::kVw && data.offset != kInitialOffset, kKey,
           "must be initial for vw, whose rows may have an initial prediction behind label and weight. Try "
           "initial.");
  RefuseIf(data.offset == data.weight, kKey, "is also data.weight; it is one of them. Name another column.");
  RefuseIf(IsGood("model.kind") && !IsBad("model.head") && HasOutputPerClass(config_.model), kKey,
           "is added to the output of a row, and this model has one for each class. Leave it out, or use a "
           "model with one output.");
  RefuseIf(config_.device.kind == DeviceKind::kCuda && WeightsKey(data).empty(), "device.kind",
           "data.offset is set, and GPUs compute all rows alike. Try cpu, or leave out data.offset.");
}

void Rules::CheckRenames() {
  std::set<std::string> from;
  for (const std::string& item : config_.data.rename_labels) {
    const auto rename = ParseRename(item);
    const bool twice = rename && !from.insert(rename->first).second;
    if (rename && !twice) continue;
    Refuse("data.rename_labels",
           fmt::format("{} {}. Try [\"yes. -> yes\"].", Quoted(item),
                       twice ? "renames a label for the second time" : "is no FROM -> TO"));
    return;
  }
}

void Rules::CheckColumnTexts() {
  std::set<std::string> columns;
  const auto refuse = [&](const char* key, const std::string& item, const std::string& why) {
    Refuse(key, fmt::format("{} {}", Quoted(item), why));
  };
  for (const std::string& item : config_.data.number_format) {
    const ColumnItem format = ParseColumnItem(item);
    const bool twice = !columns.insert(format.column).second;
    if (ParseNumberFormat(format.value) && !twice) continue;
    return refuse("data.number_format", item,
                  twice ? "is the second format of the same numbers. Leave one."
                        : "shows no number; it must show how they are written. Try [\"price=$1,234.50\"].");
  }
  columns.clear();
  for (const std::string& item : config_.data.dates) {
    const ColumnItem date = ParseDateColumn(item);
    const std::string form = item.substr(std::min(item.find('='), item.size()));
    const bool letters = form.size() > 4 && form.find_first_not_of("=YMDONHSTymdonhst:/.-, ") == form.npos;
    const bool twice = !columns.insert(date.column).second;
    if (!twice && (!date.value.empty() || !(letters || form.find('%') != form.npos))) continue;
    return refuse(
        "data.dates", item,
        twice ? "names its column for the second time. Leave one."
              : fmt::format("names no form of dates; the forms are {}, and a time may follow. Try one.",
                            ListText(DateForms(), "and")));
  }
  columns.clear();
  for (const std::string& item : config_.data.bags) {
    const BagItem bag = ParseBag(item);
    if (!columns.insert(bag.column).second)
      return refuse("data.bags", item, "names its column for the second time. Leave one.");
    if (item.back() == '=')
      return refuse("data.bags", item, "names no column of weights. Name it, or try =none.");
    for (const std::string& format : config_.data.number_format) {
      const std::string column = ParseColumnItem(format).column;
      if (column.empty() || (column != bag.column && column != bag.weights)) continue;
      return refuse("data.number_format", format,
                    "names a column of data.bags, whose numbers are plain. Leave it out.");
    }
  }
  for (const std::string& item : config_.data.missing_values) {
    if (ParseColumnItem(item).value.empty())
      return refuse("data.missing_values", item, "names no text; empty fields need none. Leave it out.");
  }
}

void Rules::CheckClasses() {
  const std::vector<std::string>& names = config_.data.classes;
  const ModelConfig& model = config_.model;
  if (names.empty() || IsBad("data.classes") || !IsGood("model.kind") || IsBad("model.head")) return;
  const std::set<std::string> different(names.begin(), names.end());
  RefuseIf(different.size() < names.size(), "data.classes",
           "must name each class once. Take the others out.");
  RefuseIf(!HasClasses(model), "data.classes",
           "is about classes, and the model's targets are real numbers. Leave it out.");
  const int64_t classes = HasOutputPerClass(model) ? model.outputs.value_or(0) : 2;
  RefuseIf(HasClasses(model) && static_cast<int64_t>(names.size()) != classes, "data.classes",
           fmt::format("has {}, and the model tells {} classes. Name each class.",
                       Plural(static_cast<int64_t>(names.size()), "name"), classes));
}

// What comes through a pipe is read once, from front to back, by one worker.
void Rules::CheckPipes(const std::string& section, const DataSourceConfig& source) {
  const std::string key = section + ".path";
  for (const auto& [name, paths] :
       {std::pair(".images", &source.images), std::pair(".labels", &source.labels)}) {
    RefuseIf(std::any_of(paths->begin(), paths->end(), IsPipe), section + name,
             "IDX is read of files, not of standard input or a command. Save it in a file, and name that.");
  }
  if (!IsText(source.format) || IsBad(key)) return;
  const auto pipes = std::count_if(source.path.begin(), source.path.end(), IsPipe);
  RefuseIf(pipes > 0 && source.path.size() > 1, key,
           "- and exec: stand alone, and are no part of a list. Try exec:cat FILE...");
  const bool standard_input = pipes > 0 && IsStandardInput(source.path[0]);
  const bool train = section == "data.train";
  const bool streams = train && ReadsPipe(source) && config_.data.cache == DataCache::kNone;
  RefuseIf(train && ReadsPipe(source) && config_.data.validation_share > 0, "data.validation",
           "is a share, and of a pipe nobody knows the number of rows. Give a number of rows. Try 1000.");
  RefuseIf(streams && config_.train.epochs.value_or(1) > 1, "train.epochs",
           "data.train comes through a pipe, once. Try 1, or data.cache: memory.");
  RefuseIf(train && ReadsPipe(source) && config_.data.cache == DataCache::kFile, "data.cache",
           "a cache is of files, and data.train comes through a pipe. Try none or memory.");
  const bool read_by_all = Workers() > 1 && config_.data.split != Split::kFeed;
  RefuseIf(standard_input && section == "data.train" && read_by_all, key,
           "standard input is read by one worker. Use exec:COMMAND, data.split: feed, or 1 worker (--workers "
           "1).");
}

void Rules::CheckEvaluation() {
  const EvalConfig& eval = config_.eval;
  const DataConfig& data = config_.data;
  const bool none_held_out = data.validation == 0 && data.validation_share == 0 && !IsBad("data.validation");
  RefuseIf(eval.on == EvalOn::kValidation && none_held_out, "eval.on",
           "no rows are held out (data.validation = 0). Set data.validation, or eval.on to test.");
  const bool on_test = eval.on == EvalOn::kTest && !IsBad("eval.on");
  const bool no_test = data.test.format == DataFormat::kNone && !IsBad("data.test.format");
  const bool on_none = eval.every_steps > 0 && on_test && no_test;
  const bool held_out = data.validation > 0 || data.validation_share > 0;
  RefuseIf(on_none && held_out, "eval.on",
           "there are no test rows (no data.test). Set data.test, or eval.on to validation.");
  RefuseIf(on_none && !held_out, "eval.every_steps",
           "there is nothing to evaluate on (no data.test). Set data.test or data.validation.");
  const bool never = eval.every_steps == 0 && !IsBad("eval.every_steps");
  RefuseIf(eval.patience > 0 && never, "eval.patience",
           "counts the evaluations of eval.every_steps, which is 0. Try eval.every_steps: 100.");
  RefuseIf(eval.keep_best && never, "eval.keep_best",
           "is about the evaluations of eval.every_steps, which is 0. Try eval.every_steps: 100.");
  if (eval.metric != EvalMetric::kLoss && !IsBad("eval.metric")) {
    RefuseIf(eval.patience == 0 && !eval.keep_best, "eval.metric",
             "is what eval.patience and eval.keep_best compare, and neither is set. Set one of them.");
    const bool of_classes = eval.metric == EvalMetric::kAuc || eval.metric == EvalMetric::kAccuracy;
    if (IsGood("model.kind") && !IsBad("model.head") && of_classes != HasClasses(config_.model)) {
      Refuse(
          "eval.metric",
          fmt::format(
              of_classes ? "is of models that tell classes, and {} tells none. Set loss, rmse or deviance."
                         : "is of models that tell numbers, and {} tells classes. Set loss, auc or accuracy.",
              HeadText(config_.model)));
    }
    RefuseIf(eval.metric == EvalMetric::kDeviance && !config_.model.loss && !HasClasses(config_.model),
             "eval.metric",
             "is that of model.loss, and of squared error it is the loss. Set loss or rmse, or model.loss.");
  }
  // The directory of a run that a command makes has checkpoints.
  const bool none = config_.run.dir == kNoRunDirectory || IsGood("checkpoint.dir");
  RefuseIf(eval.keep_best && config_.checkpoint.dir.empty() && none, "eval.keep_best",
           "needs checkpoint.dir. Try checkpoint.dir: run/ckpt.");
}

void Rules::CheckLoss() {
  ModelConfig& model = config_.model;
  if (!model.loss || !IsGood("model.kind") || IsBad("model.head") || IsBad("model.loss")) return;
  const ModelHead head = HeadOf(model);
  const bool of_classes = HasScores(model);
  RefuseIf(head != (of_classes ? ModelHead::kLogistic : ModelHead::kLinear), "model.loss",
           fmt::format("is for {}, and {}. Try {}: {}.",
                       of_classes ? "two classes" : "labels that are numbers", HeadText(model),
                       HasHeadKey(model) ? "model.head" : "model.kind", of_classes ? "logistic" : "linear"));
  if (model.loss == gpu::LossKind::kSquared) model.loss.reset();
}

void Rules::CheckOutputs() {
  if (!config_.model.outputs || !IsGood("model.kind") || IsBad("model.head")) return;
  const bool per_class = HasOutputPerClass(config_.model);
  RefuseIf(per_class && *config_.model.outputs < 2, "model.outputs",
           "must be >= 2 (classes) for softmax and mlp. Try 10.");
  RefuseIf(!per_class && *config_.model.outputs > 1, "model.outputs",
           "must be 1 for linear and logistic. Leave it out.");
}

// The key that decides what the model's labels are. It is in the file.
std::string Rules::HeadKey() const {
  return HasHeadKey(config_.model) && IsGood("model.head") ? "model.head" : "model.kind";
}

void Rules::CheckTargets(const std::string& section, const DataSourceConfig& source) {
  const bool synthetic = source.format == DataFormat::kSynthetic;
  const bool named = !synthetic || IsGood(section + ".name");
  const bool labels_tell = source.format == DataFormat::kNone || IsText(source.format);
  if (labels_tell || !named || !IsGood("model.kind") || IsBad("model.head")) return;
  const bool real_targets = synthetic && source.name == SyntheticName::kLinear;
  const bool classes = HasClasses(config_.model);
  if (!classes && !real_targets) {
    Refuse(HeadKey(), fmt::format("needs real targets, and {} has classes. Try softmax.", section));
  }
  if (classes && real_targets) {
    const bool unsaid = config_.model.kind == ModelKind::kMlp && HeadKey() == "model.kind";
    Refuse(HeadKey(), fmt::format("needs classes, and {} has real targets. Try linear{}.", section,
                                  unsaid ? ", or model.head: linear" : ""));
  }
  RefuseIf(
      !classes && real_targets && gpu::LossRowOf(LossOf(config_.model).kind).range != gpu::TargetRange::kAny,
      "model.loss",
      fmt::format("needs labels from 0 on, and those of {} are drawn on both sides of it. Try huber.",
                  section));
  const bool digits = synthetic && source.name == SyntheticName::kDigits;
  if (HeadOf(config_.model) == ModelHead::kLogistic && digits) {
    Refuse(HeadKey(),
           fmt::format("needs labels 0 and 1, and {} has {} classes. Try softmax.", section, kDigitClasses));
  }
}

void Rules::CheckText() {
  const DataConfig& data = config_.data;
  CheckLabelColumn("data.train", data.train);
  CheckLabelColumn("data.test", data.test);
  const bool texts = IsText(data.train.format) || IsText(data.test.format);
  const bool both = data.train.format != DataFormat::kNone && data.test.format != DataFormat::kNone;
  if (both && texts && data.train.format != data.test.format) {
    const Field &train = *FindField("data.train.format"), &test = *FindField("data.test.format");
    const std::string text = ValueText(train, (IsText(data.train.format) ? train : test).get(config_));
    Refuse("data.test.format",
           fmt::format("does not go with data.train.format = {}: {} is tested on {}. Use one for both.",
                       ValueText(train, train.get(config_)), text, text));
  }
  const bool classes = IsGood("model.kind") && !IsBad("model.head") && HasOutputPerClass(config_.model);
  // What comes through a pipe is read once, and by workers alone.
  const bool piped = std::any_of(data.train.path.begin(), data.train.path.end(), IsPipe);
  if (IsText(data.train.format) && piped && classes && !config_.model.outputs) {
    Add(PlaceOf("model.kind"),
        "model.outputs is missing; data that come through a pipe need it, the number of classes. Write "
        "\"outputs: 3\" under model.");
  }
}

void Rules::CheckLabelColumn(const std::string& section, const DataSourceConfig& source) {
  const std::string key = section + ".label";
  if (source.format != DataFormat::kCsv || source.header || !IsGood(key) || ColumnNumber(source.label))
    return;
  Refuse(key,
         fmt::format("must be a column's number (the first is 0) with {}.header = false. Try 0.", section));
}

}  // namespace

void CheckRules(const LoadOptions& options, Draft* draft) { Rules(options, draft).Run(); }

}  // namespace dtrain
