#include "trainer/config/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "trainer/config/config.h"
#include "trainer/config/parse.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

constexpr int kDigitClasses = 10;
constexpr int64_t kMaxTowers = 64;
// Exit codes that have a meaning already: those of docs/operations.md, the shell's "cannot be executed", and
// those of processes that the kernel kills.
constexpr int64_t kTakenExitCodes[] = {1, 2, 3, 127, 128, 130, 137, 139, 143};
constexpr double kAdamLearningRate = 0.001;  // TensorFlow's and PyTorch's

class Rules {
 public:
  Rules(const std::string& path, GivenKeys* given, Problems* problems)
      : path_(path), given_(*given), problems_(*problems) {}

  Config Run(const LoadOptions& options);

 private:
  void JoinAliases();
  void JoinAlias(const Field& alias);
  void DropOverridden();
  void SetDefaults();
  void CheckEffect(const Field& field);
  void CheckRequired(const Field& field);
  void CheckEnd();
  void CheckExitCode();
  void CheckWorkers(const LoadOptions& options);
  void CheckMode();
  void CheckDevices();
  void CheckAddresses();
  void CheckHosts();
  void CheckFeed();
  void CheckRows();
  void CheckEvaluation();
  void CheckCheckpoint();
  void CheckOutputs();
  void CheckTargets(const std::string& section, const DataSourceConfig& source);
  void CheckCsv();
  void CheckLabelColumn(const std::string& section, const DataSourceConfig& source);

  const GivenKey* Given(const std::string& key) const {
    const auto found = given_.find(key);
    return found == given_.end() ? nullptr : &found->second;
  }
  bool Bad(const std::string& key) const { return Given(key) != nullptr && Given(key)->bad; }
  Place PlaceOf(const std::string& key) const {
    return Given(key) != nullptr ? Given(key)->place : Place{0, 0, path_};
  }
  // "place: key = value; rule", of a key that was given.
  void Refuse(const std::string& key, const std::string& rule) {
    problems_.Add(PlaceOf(key), fmt::format("{} = {}; {}", key, Given(key)->shown, rule));
  }
  // The values of data.train come one by one without end.
  bool Endless() const {
    const DataSourceConfig& train = config_.data.train;
    return train.format == DataFormat::kSynthetic && train.name == SyntheticName::kLinear && !train.rows;
  }

  const std::string path_;
  GivenKeys& given_;
  Problems& problems_;
  Config config_;
};

Config Rules::Run(const LoadOptions& options) {
  JoinAliases();
  config_ = ConfigOf(given_);
  DropOverridden();
  config_ = ConfigOf(given_);
  SetDefaults();
  for (const Field& field : Fields()) {
    CheckEffect(field);
    if (!options.cluster_optional || field.key.compare(0, 8, "cluster.") != 0) CheckRequired(field);
  }
  CheckEnd();
  CheckExitCode();
  CheckWorkers(options);
  CheckMode();
  CheckDevices();
  CheckAddresses();
  CheckFeed();
  CheckRows();
  CheckEvaluation();
  CheckCheckpoint();
  CheckOutputs();
  CheckTargets("data.train", config_.data.train);
  CheckTargets("data.test", config_.data.test);
  CheckCsv();
  if (options.placed) CheckHosts();
  return config_;
}

void Rules::JoinAliases() {
  for (const Field& field : Fields()) {
    if (!field.alias_of.empty() && Given(field.key) != nullptr) JoinAlias(field);
  }
}

// Leaves at most one of the two names.
void Rules::JoinAlias(const Field& alias) {
  const GivenKey second = *Given(alias.key);
  const GivenKey* first = Given(alias.alias_of);
  given_.erase(alias.key);
  const bool beaten = first != nullptr && first->place.flag() && !second.place.flag();
  if (beaten) return;
  const bool same_rank = first != nullptr && first->place.flag() == second.place.flag();
  if (same_rank && !first->bad && !second.bad && first->value != second.value) {
    problems_.Add(
        second.place,
        fmt::format("{} = {}; is another name for {}, which is {}. Leave one of them.", alias.key,
                    ValueText(alias, second.value), alias.alias_of, ValueText(alias, first->value)));
  }
  if (!same_rank) given_[alias.alias_of] = second;
}

// A flag that chooses another kind makes the file's settings of the old kind meaningless, not wrong.
void Rules::DropOverridden() {
  for (const Field& field : Fields()) {
    const GivenKey* entry = Given(field.key);
    if (entry == nullptr || entry->place.flag() || Applies(field, config_)) continue;
    const GivenKey* chooser = Given(field.only_key);
    if (chooser != nullptr && chooser->place.flag()) given_.erase(field.key);
  }
}

// Sets the defaults that another key decides.
void Rules::SetDefaults() {
  OptimizerConfig& optimizer = config_.train.optimizer;
  const bool adam = optimizer.kind == OptimizerKind::kAdam;
  if (adam && Given("train.optimizer.learning_rate") == nullptr) optimizer.learning_rate = kAdamLearningRate;
}

void Rules::CheckEffect(const Field& field) {
  if (Given(field.key) == nullptr || Bad(field.key) || Applies(field, config_) || Bad(field.only_key)) return;
  const Field& chooser = *FindField(field.only_key);
  Refuse(field.key, fmt::format("has no effect with {} = {}. Leave it out, or set {} to {}.", chooser.key,
                                ValueText(chooser, chooser.get(config_)), chooser.key,
                                ListText(field.only_values, "or")));
}

void Rules::CheckRequired(const Field& field) {
  if (!field.required || Given(field.key) != nullptr || !Applies(field, config_)) return;
  const size_t dot = field.key.rfind('.');
  const std::string example = field.example.empty() ? field.choices.front() : field.example;
  const Field* const chooser = FindField(field.only_key);
  const std::string why = chooser == nullptr ? RuleText(field)
                                             : fmt::format("{} = {} needs it", chooser->key,
                                                           ValueText(*chooser, chooser->get(config_)));
  const Place place = field.only_key.empty() ? PlaceOf(field.key) : PlaceOf(field.only_key);
  problems_.Add(place, fmt::format("{} is missing; {}. Write \"{}: {}\" under {}.", field.key, why,
                                   field.key.substr(dot + 1), example, field.key.substr(0, dot)));
}

void Rules::CheckEnd() {
  if (Given("train.steps") != nullptr || Bad("train.epochs")) return;
  if (Given("train.epochs") == nullptr) {
    problems_.Add(
        {0, 0, path_},
        "train.epochs or train.steps is missing; one of them ends the run. Write \"epochs: 5\" under "
        "train.");
  } else if (Endless() && !Bad("data.train.rows") && !Bad("data.train.name")) {
    Refuse("train.epochs",
           "data.train has no end (synthetic linear without rows). Set train.steps or "
           "data.train.rows.");
  }
}

// A supervisor knows by this code alone that a task ended because it lost a peer.
void Rules::CheckExitCode() {
  const int64_t code = config_.failure.peer_lost_exit;
  if (std::count(std::begin(kTakenExitCodes), std::end(kTakenExitCodes), code) == 0) return;
  Refuse("failure.peer_lost_exit", fmt::format("is the code of another ending, as {} are. Try 138, or 4.",
                                               fmt::join(kTakenExitCodes, ", ")));
}

void Rules::CheckWorkers(const LoadOptions& options) {
  const auto named = static_cast<int64_t>(config_.cluster.worker.size());
  const int64_t workers = options.workers.value_or(named > 0 ? named : options.default_workers);
  const char* const source = options.workers ? ", by --workers"
                             : named > 0     ? ""
                                             : ", those of dtrain local where cluster.worker is not set";
  for (const char* key : {"cluster.min_workers", "train.aggregate"}) {
    const GivenKey* const entry = Given(key);
    if (workers == 0 || entry == nullptr || entry->bad) continue;
    const int64_t given = std::get<int64_t>(entry->value);
    if (given <= workers) continue;
    Refuse(key, fmt::format("must be at most the number of workers ({}{}). Try {}{}.", workers, source,
                            workers, options.workers ? fmt::format(", or --workers {}", given) : ""));
  }
}

void Rules::CheckMode() {
  const TrainConfig& train = config_.train;
  if (train.in_flight > 1 && train.mode != TrainMode::kAsync && !Bad("train.in_flight")) {
    Refuse("train.in_flight", "must be 1 unless train.mode is async: others wait for each gradient. Try 1.");
  }
}

void Rules::CheckDevices() {
  if (Bad("device.ids")) return;
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
  if (device.towers() > 1 && device.threads > 1 && !Bad("device.threads")) {
    Refuse("device.threads",
           "must be 1 with several device.ids: products of several threads wait for each other. Try 1, and "
           "more device.ids.");
  }
}

void Rules::CheckAddresses() {
  std::map<std::string, std::string> owners;  // of each address
  for (const std::string role : {"ps", "worker"}) {
    const std::string key = "cluster." + role;
    const auto& addresses = role == "ps" ? config_.cluster.ps : config_.cluster.worker;
    for (size_t i = 0; i < addresses.size(); ++i) {
      const bool listens = role == "ps" || (i == 0 && FeedsOthers(config_));
      if (listens && !CanConnect(addresses[i])) {
        problems_.Add(PlaceOf(key),
                      fmt::format("{}[{}] = {}; must be where the other machines reach this {}. "
                                  "Name its host here; net.bind says where it listens.",
                                  key, i, addresses[i], role));
      }
      const std::string identity = AddressIdentity(addresses[i]);
      if (identity.empty()) continue;
      const auto [owner, is_new] = owners.emplace(identity, fmt::format("{} {}", role, i));
      if (is_new) continue;
      problems_.Add(PlaceOf(key),
                    fmt::format("{}[{}] = {}; is the address of {} too. Give each task its own.", key, i,
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
    problems_.Add(
        PlaceOf("launch.hosts"),
        fmt::format("launch.hosts.{}; no address of the cluster is on that machine. {}", name,
                    close.empty() ? "Leave it out, or write its name as cluster.ps or cluster.worker has it."
                                  : fmt::format("Did you mean {}?", close)));
  }
}

void Rules::CheckFeed() {
  if (config_.data.split != Split::kFeed) return;
  if (config_.eval.by == EvalBy::kAll) {
    Refuse("eval.by",
           "with data.split = feed only worker 0 has data. Try chief, or set data.split to shard or full.");
  }
  if (config_.data.cache == DataCache::kDevice) {
    Refuse("data.cache",
           "with data.split = feed only worker 0 has data, and sends rows. Try memory, or set data.split to "
           "shard or full.");
  }
}

void Rules::CheckRows() {
  const DataConfig& data = config_.data;
  if (config_.eval.on == EvalOn::kValidation && data.validation == 0 && !Bad("data.validation")) {
    Refuse("eval.on", "no rows are held out (data.validation = 0). Set data.validation, or eval.on to test.");
  }
  if (data.train.rows && data.validation >= *data.train.rows && data.train.format == DataFormat::kSynthetic) {
    Refuse("data.validation",
           fmt::format("must be < data.train.rows ({}): no row would be left to train on. Try 0.",
                       *data.train.rows));
  }
  const bool endless_test = data.test.format == DataFormat::kSynthetic &&
                            data.test.name == SyntheticName::kLinear && !data.test.rows;
  if (endless_test && Given("data.test.name") != nullptr && !Bad("data.test.name") &&
      !Bad("data.test.rows")) {
    Refuse("data.test.name", "a test set needs an end. Write \"rows: 10000\" under data.test.");
  }
}

void Rules::CheckEvaluation() {
  const EvalConfig& eval = config_.eval;
  const bool known = !Bad("eval.every_steps") && !Bad("eval.on") && !Bad("data.test.format");
  if (known && eval.every_steps > 0 && eval.on == EvalOn::kTest &&
      config_.data.test.format == DataFormat::kNone) {
    Refuse("eval.every_steps",
           "there is nothing to evaluate on (no data.test). Set data.test, or eval.on to validation and "
           "data.validation.");
  }
  if (eval.patience > 0 && eval.every_steps == 0 && !Bad("eval.every_steps") && !Bad("eval.patience")) {
    Refuse("eval.patience",
           "counts the evaluations of eval.every_steps, which is 0. Try eval.every_steps: 100.");
  }
}

void Rules::CheckCheckpoint() {
  if (!config_.eval.keep_best) return;
  if (config_.eval.every_steps == 0 && !Bad("eval.every_steps")) {
    Refuse("eval.keep_best",
           "is about the evaluations of eval.every_steps, which is 0. Try eval.every_steps: 100.");
  }
  if (config_.checkpoint.dir.empty() && !Bad("checkpoint.dir")) {
    Refuse("eval.keep_best", "needs checkpoint.dir. Try checkpoint.dir: run/ckpt.");
  }
}

void Rules::CheckOutputs() {
  if (!config_.model.outputs || Given("model.kind") == nullptr || Bad("model.kind")) return;
  const bool per_class = HasOutputPerClass(config_.model.kind);
  if (per_class && *config_.model.outputs < 2) {
    Refuse("model.outputs", "must be >= 2 (classes) for softmax and mlp. Try 10.");
  }
  if (!per_class && *config_.model.outputs > 1) {
    Refuse("model.outputs", "must be 1 for linear and logistic. Leave it out.");
  }
}

void Rules::CheckTargets(const std::string& section, const DataSourceConfig& source) {
  const bool synthetic = source.format == DataFormat::kSynthetic;
  const bool named = !synthetic || (Given(section + ".name") != nullptr && !Bad(section + ".name"));
  const bool kind_known = Given("model.kind") != nullptr && !Bad("model.kind");
  const bool labels_tell = source.format == DataFormat::kNone || source.format == DataFormat::kCsv;
  if (labels_tell || !named || !kind_known) return;
  const bool real_targets = synthetic && source.name == SyntheticName::kLinear;
  const ModelKind kind = config_.model.kind;
  if (kind == ModelKind::kLinear && !real_targets) {
    Refuse("model.kind", fmt::format("needs real targets, and {} has classes. Try softmax.", section));
  }
  if (kind != ModelKind::kLinear && real_targets) {
    Refuse("model.kind", fmt::format("needs classes, and {} has real targets. Try linear.", section));
  }
  if (kind == ModelKind::kLogistic && synthetic && source.name == SyntheticName::kDigits) {
    Refuse("model.kind",
           fmt::format("needs labels 0 and 1, and {} has {} classes. Try softmax.", section, kDigitClasses));
  }
}

// A ps reads no rows, so that only the config can tell it the number of classes.
void Rules::CheckCsv() {
  const DataConfig& data = config_.data;
  CheckLabelColumn("data.train", data.train);
  CheckLabelColumn("data.test", data.test);
  const bool train_csv = data.train.format == DataFormat::kCsv;
  const bool test_csv = data.test.format == DataFormat::kCsv;
  const bool both = data.train.format != DataFormat::kNone && data.test.format != DataFormat::kNone;
  if (both && train_csv != test_csv) {
    const Field& format = *FindField("data.train.format");
    Refuse("data.test.format",
           fmt::format("does not go with data.train.format = {}: csv is tested on csv. Use one for both.",
                       ValueText(format, format.get(config_))));
  }
  const bool classes = Given("model.kind") != nullptr && !Bad("model.kind") &&
                       config_.model.kind != ModelKind::kLinear && config_.model.kind != ModelKind::kLogistic;
  if (train_csv && classes && Given("model.outputs") == nullptr) {
    problems_.Add(PlaceOf("model.kind"),
                  "model.outputs is missing; data.train.format = csv needs it, the number of classes. Write "
                  "\"outputs: 3\" under model.");
  }
}

void Rules::CheckLabelColumn(const std::string& section, const DataSourceConfig& source) {
  const std::string key = section + ".label";
  if (source.format != DataFormat::kCsv || source.header || Given(key) == nullptr || Bad(key)) return;
  if (ColumnNumber(source.label).has_value()) return;
  Refuse(key,
         fmt::format("must be a column's number (the first is 0) with {}.header = false. Try 0.", section));
}

}  // namespace

Config ConfigOf(const GivenKeys& given) {
  Config config;
  for (const auto& [key, entry] : given) {
    if (!entry.bad) FindField(key)->set(entry.value, &config);
  }
  return config;
}

Config Resolve(const std::string& path, const LoadOptions& options, GivenKeys* given, Problems* problems) {
  return Rules(path, given, problems).Run(options);
}

void Problems::Add(const Place& place, const std::string& text) { lines_.push_back({place, text}); }

void Problems::ThrowIfAny() {
  if (lines_.empty()) return;
  const auto rank = [](const Line& line) {
    const bool nowhere = !line.place.flag() && line.place.line == 0;
    return std::make_tuple(nowhere, line.place.source, line.place.line);
  };
  std::stable_sort(lines_.begin(), lines_.end(),
                   [&](const Line& a, const Line& b) { return rank(a) < rank(b); });
  std::vector<std::string> report;
  for (const auto& [place, text] : lines_) {
    const std::string line = place.line > 0 ? fmt::format(":{}", place.line) : "";
    report.push_back(fmt::format("{}{}: {}", place.name, line, text));
  }
  throw UserError("{}", fmt::join(report, "\n"));
}

}  // namespace dtrain
