#include "trainer/config/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "trainer/config/config.h"
#include "trainer/config/user_text.h"

namespace dtrain {

namespace {

std::string TextListText(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back(Quoted(text));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

std::string HostText(const LaunchHost& host) {
  std::vector<std::string> parts;
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) parts.push_back(fmt::format("{}: {}", name, Quoted(text)));
  };
  add("user", host.user);
  add("address", host.address);
  add("directory", host.directory);
  add("program", host.program);
  std::vector<std::string> variables, device;
  for (const auto& [name, value] : host.environment) variables.push_back(name + ": " + Quoted(value));
  for (const auto& [name, value] : host.device) device.push_back(name + ": " + value);
  if (!variables.empty()) parts.push_back(fmt::format("environment: {{{}}}", fmt::join(variables, ", ")));
  if (!device.empty()) parts.push_back(fmt::format("device: {{{}}}", fmt::join(device, ", ")));
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

// As YAML on one line, which reads back the same.
std::string HostsText(const LaunchHosts& hosts) {
  std::vector<std::string> parts;
  for (const auto& [name, host] : hosts) parts.push_back(Quoted(name) + ": " + HostText(host));
  return fmt::format("{{{}}}", fmt::join(parts, ", "));
}

}  // namespace

const std::vector<Field>& Fields() {
  static const std::vector<Field> fields = [] {
    std::vector<Field> all = JobFields();
    std::vector<Field> task = TaskFields();
    all.insert(all.end(), std::make_move_iterator(task.begin()), std::make_move_iterator(task.end()));
    return all;
  }();
  return fields;
}

const Config& Defaults() {
  static const Config defaults;
  return defaults;
}

const Field* FindField(const std::string& key) {
  for (const Field& field : Fields()) {
    if (field.key == key) return &field;
  }
  return nullptr;
}

std::vector<const Field*> FieldsIn(const std::string& name) {
  std::vector<const Field*> found;
  for (const Field& field : Fields()) {
    const bool inside = name.empty() || field.key.compare(0, name.size() + 1, name + ".") == 0;
    if (inside || field.key == name) found.push_back(&field);
  }
  return found;
}

std::vector<std::string> NamesIn(const std::string& section) {
  const size_t begin = section.empty() ? 0 : section.size() + 1;
  std::vector<std::string> names;
  for (const Field* field : FieldsIn(section)) {
    if (field->key == section) return {};
    const std::string name = field->key.substr(begin, field->key.find('.', begin) - begin);
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return names;
}

std::string JoinKey(const std::string& section, const std::string& name) {
  return section.empty() ? name : section + "." + name;
}

Value ValueOrCommon(const Field& field, const Config& config) {
  const Value own = field.get(config);
  return field.common_key.empty() || !IsNull(own) ? own : FindField(field.common_key)->get(config);
}

bool Applies(const Field& field, const Config& config) {
  if (!field.only_model.empty() && FindField("model.kind")->get(config) != Value(field.only_model))
    return false;
  if (field.only_key.empty()) return true;
  const auto chosen_by = [&](const Field& chooser) {
    const Value chosen = ValueOrCommon(chooser, config);
    return std::any_of(field.only_values.begin(), field.only_values.end(),
                       [&](const std::string& value) { return chosen == Value(value); });
  };
  if (chosen_by(*FindField(field.only_key))) return true;
  return std::any_of(Fields().begin(), Fields().end(), [&](const Field& of_part) {
    return of_part.common_key == field.only_key && !IsNull(of_part.get(config)) && chosen_by(of_part);
  });
}

namespace {

std::string OtherText(const char* key, const std::string& now, const std::string& then) {
  return fmt::format("{} = {}; must be {}", key, now, then);
}

// How the rows of a table begin.
InitKind InitOf(const ModelConfig& model) { return model.init.kind.value_or(InitKind::kZeros); }

}  // namespace

std::optional<std::string> OtherMeaning(const Config& saved, const Config& config) {
  std::vector<const char*> keys = {
      "model.kind",       "model.activation",    "model.head",         "data.scale",      "data.ignore",
      "data.categories",  "data.dates",          "data.missing",       "model.factors",   "data.index_base",
      "data.hash",        "data.bags",           "data.crosses",       "model.embedding", "model.combine",
      "data.numbers",     "data.missing_values", "data.number_format", "model.loss",      "model.loss_delta",
      "model.loss_level", "model.loss_power"};
  // Rows of a table that were never updated are in no checkpoint.
  const InitKind init = InitOf(saved.model);
  if (UsesTable(saved)) {
    if (init != InitOf(config.model)) keys.push_back("model.init.kind");
    keys.insert(keys.end(), {"model.init.value", "model.init.stddev"});
    if (init == InitKind::kNormal || init == InitKind::kGlorot) keys.push_back("model.init.seed");
  }
  // Each format hashes in a way of its own.
  if (HashBits(saved.data) && HashBits(config.data)) keys.push_back("data.train.format");
  for (const char* key : keys) {
    const Field& field = *FindField(key);
    const Value now = field.get(config), then = field.get(saved);
    if (!Applies(field, saved) || now == then) continue;
    return OtherText(key, ValueText(field, now), ValueText(field, then));
  }
  // Of these a default means the same as its value.
  if (TableOf(saved) != TableOf(config)) {
    const auto name = [](TableKind kind) {
      return kind == TableKind::kNone ? "none" : kind == TableKind::kRange ? "range" : "hash";
    };
    return OtherText("model.table", name(TableOf(config)), name(TableOf(saved)));
  }
  if (HashBits(saved.data) != HashBits(config.data)) {
    const auto text = [](std::optional<int64_t> bits) { return bits ? fmt::format("{}", *bits) : "null"; };
    return OtherText("data.hash_bits", text(HashBits(config.data)), text(HashBits(saved.data)));
  }
  return std::nullopt;
}

namespace {

constexpr size_t kMaxElsewhere = 2;  // more keys of one name say nothing

// "optimizer" and "train.optimizer.kind" of every key "train.optimizer.kind": keys and sections.
std::vector<std::string> AllNames() {
  std::vector<std::string> names;
  for (const Field& field : Fields()) {
    if (!field.common_key.empty()) continue;  // all names of optimizers are there already
    for (size_t dot = field.key.find('.'); dot != std::string::npos; dot = field.key.find('.', dot + 1)) {
      names.push_back(field.key.substr(0, dot));
    }
    names.push_back(field.key);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string LastPart(const std::string& key) { return key.substr(key.rfind('.') + 1); }

// Full names whose last part is `name`, but for `slips`.
std::vector<std::string> NamesElsewhere(const std::string& name, int slips) {
  std::vector<std::string> found;
  for (const std::string& full : AllNames()) {
    if (EditDistance(name, LastPart(full)) <= slips) found.push_back(full);
  }
  return found;
}

// ForeignWord: what other tools call a key.
struct ForeignWord {
  const char* words;  // in small letters with "_", a blank between two
  const char* key;    // empty: dtrain has nothing of the kind
  const char* note;   // what else there is to know; empty: nothing
};
constexpr ForeignWord kForeignWords[] = {
    {"early_stopping early_stop early_stopping_rounds n_iter_no_change", "eval.patience",
     "It counts the evaluations of eval.every_steps"},
    {"lr eta eta0 learning_rate_init step_rate", "train.optimizer.learning_rate", ""},
    {"gamma decay decay_factor", "train.optimizer.schedule.decay_rate",
     "It is the factor of the learning rate for each schedule.decay_steps updates"},
    {"step_size t_max", "train.optimizer.schedule.decay_steps", "It counts updates, not epochs"},
    {"scheduler lr_scheduler lr_schedule lr_policy", "train.optimizer.schedule", ""},
    {"num_epochs n_epochs max_epochs nb_epoch num_train_epochs passes", "train.epochs", ""},
    {"max_iter n_iter max_steps num_steps iterations num_iterations num_boost_round", "train.steps", ""},
    {"batch bs minibatch_size mini_batch_size", "train.batch_size", ""},
    {"random_state random_seed", "data.seed", "The first weights are drawn by model.init.seed"},
    {"test_size validation_split validation_fraction val_split holdout", "data.validation", ""},
    {"l2_reg reg_lambda lambda alpha lambda_l2", "train.optimizer.l2", ""},
    {"l1_reg reg_alpha lambda_l1", "train.optimizer.l1", ""},
    {"eps", "train.optimizer.epsilon", ""},
    {"grad_clip gradient_clip clipnorm max_grad_norm", "train.optimizer.clip_norm", ""},
    {"loss loss_function objective criterion", "model.kind",
     "The kind decides the loss: logistic, softmax, or linear with squared errors"},
    {"hidden_units hidden_size hidden_layers hidden_layer_sizes layers", "model.hidden", ""},
    {"target target_column label_column y", "data.train.label", ""},
    {"sep separator", "data.delimiter", ""},
    {"quotechar escapechar quoting quote escape", "data.quotes", ""},
    {"na_values missing_values", "data.missing", ""},
    {"scaler normalize standardize", "data.scale", ""},
    {"output_dir save_dir out_dir", "run.dir", ""},
    {"eval_steps eval_every", "eval.every_steps", ""},
    {"save_steps save_every", "checkpoint.every_steps", ""},
    {"gpu gpus use_gpu cuda device", "device.kind", ""},
    {"dropout dropout_rate", "", "Against overfitting it has train.optimizer.l2 and eval.patience"},
    {"batch_norm batchnorm batch_normalization", "", "data.scale scales the features"},
    {"num_leaves max_depth n_estimators", "", "Its models have weights and layers, not trees"},
};

// Returns what `name`, in small letters, means in other tools; unset: it is no word of the table.
std::optional<Meant> MeantElsewhere(const std::string& section, const std::string& name) {
  std::string word = " " + name + " ";
  std::replace(word.begin(), word.end(), '-', '_');
  for (const auto& [words, key, note] : kForeignWords) {
    if (fmt::format(" {} ", words).find(word) == std::string::npos) continue;
    const std::string more = *note == '\0' ? "" : fmt::format(" {}.", note);
    if (*key == '\0') return Meant{{}, fmt::format("dtrain has no {}.{}", name, more)};
    const std::string last = LastPart(key);
    const std::string shown = JoinKey(section, last) == key ? last : key;
    return Meant{{key}, fmt::format("did you mean \"{}\"?{}", shown, more)};
  }
  return std::nullopt;
}

}  // namespace

Meant DidYouMean(const std::string& section, const std::string& written) {
  if (written.size() > kMaxNameBytes) return {};
  const std::string name = LowerCase(written);
  if (std::optional<Meant> meant = MeantElsewhere(section, name)) return *std::move(meant);
  const std::string here = ClosestName(name, NamesIn(section));
  if (!here.empty()) return {{JoinKey(section, here)}, fmt::format("did you mean \"{}\"?", here)};
  if (FindField(name) != nullptr) {
    const size_t dot = name.rfind('.');
    return {{name},
            fmt::format("did you mean \"{}\" in the map \"{}\"?", name.substr(dot + 1), name.substr(0, dot))};
  }
  std::vector<std::string> elsewhere = NamesElsewhere(name, 0);
  if (elsewhere.empty() && name.size() >= 6) elsewhere = NamesElsewhere(name, 1);
  if (elsewhere.empty() || elsewhere.size() > kMaxElsewhere) return {};
  std::vector<std::string> quoted;
  for (const std::string& full : elsewhere) quoted.push_back("\"" + full + "\"");
  return {elsewhere, fmt::format("did you mean {}?", ListText(quoted, "or"))};
}

namespace {

// A number without quotes; a name in quotes, also one of digits, which has them already.
std::string ColumnText(const std::string& column) {
  return ColumnNumber(column) || ColumnNameIn(column) != column ? column : Quoted(column);
}

std::string ColumnsText(const std::vector<std::string>& columns) {
  std::vector<std::string> texts;
  for (const std::string& column : columns) texts.push_back(ColumnText(column));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

}  // namespace

std::string ValueText(const Field& field, const Value& value) {
  if (IsNull(value)) return "null";
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<int64_t>(&value)) return fmt::format("{}", *whole);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) {
    if (field.type == FieldType::kColumns) return ColumnsText(*list);
    const bool one = field.type == FieldType::kInputPaths && list->size() == 1;
    return one ? Quoted(list->front()) : TextListText(*list);
  }
  if (const auto* sizes = std::get_if<std::vector<int64_t>>(&value)) {
    return fmt::format("[{}]", fmt::join(*sizes, ", "));
  }
  if (const auto* hosts = std::get_if<LaunchHosts>(&value)) return HostsText(*hosts);
  const std::string& text = std::get<std::string>(value);
  if (field.type == FieldType::kColumn) return ColumnText(text);
  return field.type == FieldType::kChoice || field.type == FieldType::kInt ? text : Quoted(text);
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
  const std::string from = fmt::format("{} {}", limits.above ? ">" : ">=", limits.min);
  if (limits.max == std::numeric_limits<double>::infinity()) return from;
  if (limits.above) return fmt::format("{}, <= {}", from, limits.max);
  const std::string word = field.choices.empty() ? "" : ", or " + field.choices.front();
  return fmt::format("{} to {}{}", limits.min, limits.max, word);
}

}  // namespace dtrain
