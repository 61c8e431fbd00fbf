#include "trainer/config/dump.h"

#include <fmt/core.h>

#include <map>
#include <type_traits>
#include <variant>

#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/config/fields.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

Value EffectiveValue(const Field& field, const Config& config) {
  return Applies(field, config) ? field.get(config) : Value();
}

// A second name is not, and of a part's optimizer only what it has of its own.
bool IsDumped(const Field& field, const Config& config) {
  return field.alias_of.empty() && (field.common_key.empty() || !IsNull(field.get(config)));
}

void DumpSection(const Config& config, const std::string& section, int depth, std::string* text) {
  const std::string indent(static_cast<size_t>(depth) * 2, ' ');
  for (const std::string& name : NamesIn(section)) {
    const std::string key = JoinKey(section, name);
    const Field* field = FindField(key);
    if (field == nullptr) {
      std::string under;
      DumpSection(config, key, depth + 1, &under);
      if (!under.empty()) *text += fmt::format("{}{}:\n{}", indent, name, under);
    } else if (IsDumped(*field, config)) {
      *text += fmt::format("{}{}: {}\n", indent, name, ValueText(*field, EffectiveValue(*field, config)));
    }
  }
}

}  // namespace

std::string DumpConfig(const Config& config) {
  std::string text;
  DumpSection(config, "", 0, &text);
  return text;
}

Config WithoutSecrets(Config config) {
  for (auto& [name, host] : config.launch.hosts) {
    for (auto& [variable, value] : host.environment) value.clear();
  }
  return config;
}

Json FlatConfig(const Config& config) {
  const Config shown = WithoutSecrets(config);
  Json flat = Json::object();
  for (const Field& field : Fields()) {
    if (!IsDumped(field, shown)) continue;
    const Value value = EffectiveValue(field, shown);
    flat[field.key] = std::visit(
        [&](const auto& given) -> Json {
          using Type = std::decay_t<decltype(given)>;
          if constexpr (std::is_same_v<Type, std::monostate>) {
            return nullptr;
          } else if constexpr (std::is_same_v<Type, LaunchHosts>) {
            return ValueText(field, value);
          } else if constexpr (std::is_same_v<Type, std::string>) {
            const bool is_flag = field.type == FieldType::kChoice && (given == "true" || given == "false");
            return is_flag ? Json(given == "true") : Json(given);
          } else {
            return given;
          }
        },
        value);
  }
  return flat;
}

Settings RunSettings(const Config& config) {
  Settings settings;
  for (const Field& field : Fields()) {
    if (field.scope != Scope::kRun || !field.alias_of.empty()) continue;
    settings.emplace_back(field.key, ValueText(field, EffectiveValue(field, config)));
  }
  return settings;
}

uint64_t SettingsHash(const Settings& settings) {
  std::string bytes;
  for (const auto& [key, value] : settings) bytes.append(key).append(1, '\0').append(value).append(1, '\0');
  return net::PayloadChecksum(bytes.data(), bytes.size());
}

std::string ConfigDigest(const Config& config) {
  return fmt::format("{:016x}", SettingsHash(RunSettings(config)));
}

std::optional<SettingDifference> FirstDifference(const Settings& ours, const Settings& theirs) {
  const std::map<std::string, std::string> our_values(ours.begin(), ours.end());
  const std::map<std::string, std::string> their_values(theirs.begin(), theirs.end());
  for (const auto& [key, value] : ours) {
    const auto found = their_values.find(key);
    if (found == their_values.end()) return SettingDifference{key, value, kMissingSetting};
    if (found->second != value) return SettingDifference{key, value, found->second};
  }
  for (const auto& [key, value] : theirs) {
    if (our_values.count(key) == 0) return SettingDifference{key, kMissingSetting, value};
  }
  return std::nullopt;
}

namespace {

constexpr const char* kIntroduction = R"(# The keys of the config file

This file is made from the table of keys in trainer/config: `bazel run //trainer/config:write_reference`.

One YAML file describes the whole run; every task reads the same file.

- **Required** are `cluster` (not for `dtrain local`, which makes its own), `model.kind`, `data.train`, and
  `train.epochs` or `train.steps`. All other keys have defaults; `null` stands for the default too.
- **Strict.** An unknown key, a wrong type and a value out of range are errors. All of them are listed at once,
  each as `file:line: key = value; rule. remedy`, and nothing starts. true and false are written so; whole
  numbers are plain digits (1000000, not 1e6 or 1_000_000).
- **`--set key.path=value`** overrides one key; it may be repeated, and a later one beats an earlier. The value is
  YAML: `--set train.steps=500`, `--set 'cluster.ps=[a:1, b:2]'`,
  `--set 'train.optimizer={kind: sgd, learning_rate: 0.5}'` (a map sets the keys that it names).
  `--set train.epochs=null` puts the default back. A flag beats the file, the file beats the default.
- **Short forms.** A kind alone may stand for its map: `model: softmax` is `model: {kind: softmax}`, and
  `optimizer: adam` is `optimizer: {kind: adam}`, with adam's default learning rate.
  `net.compress: int8` is `net.compress: {push: int8, pull: int8}`, and `net.compress: topk` is
  `net.compress: {push: topk, pull: int8}`.
- **Paths.** Input paths in the file are relative to the file. Output paths, and all paths in `--set`, are relative
  to the working directory. Data that are not where the file says are looked for below the directory that the
  environment's `DTRAIN_DATA` names: `mnist/x.gz` there, and of `../../shared/data/mnist/x.gz` what follows `shared/data/`.
- **Addresses** are `host:port`; IPv6 in brackets and quotes: `"[::1]:9001"`.
- **Scope.** `run`: must be equal in every task; a task that joins with another value is refused, with the key and
  both values. `task`: each task may have its own.
- `--dump-config` prints all keys with the values in effect; the output is a config file.
)";

const char* TypeName(FieldType type) {
  switch (type) {
    case FieldType::kBool:
      return "true or false";
    case FieldType::kInt:
      return "whole number";
    case FieldType::kDouble:
      return "number";
    case FieldType::kChoice:
      return "choice";
    case FieldType::kAddress:
      return "address";
    case FieldType::kAddresses:
      return "list of addresses";
    case FieldType::kInts:
      return "list of whole numbers";
    case FieldType::kPins:
      return "list of VARIABLE=PS";
    case FieldType::kTexts:
      return "list of texts";
    case FieldType::kColumn:
      return "column";
    case FieldType::kColumns:
      return "list of columns";
    case FieldType::kInputPath:
      return "input path";
    case FieldType::kInputPaths:
      return "input paths";
    case FieldType::kOutputPath:
      return "output path";
    case FieldType::kText:
      return "text";
    case FieldType::kHosts:
      return "map of machines";
  }
  return "";
}

std::string DefaultText(const Field& field, const Config& defaults) {
  if (field.required) return "required";
  const Value value = field.get(defaults);
  return IsNull(value) ? fmt::format("null ({})", field.unset) : ValueText(field, value);
}

// "see docs/wire.md" as a link of a page in docs/.
std::string WithLinks(std::string text) {
  const std::string folder = "docs/", ending = ".md";
  for (size_t at = 0; (at = text.find(folder, at)) != std::string::npos;) {
    const size_t end = text.find(ending, at) + ending.size();
    const std::string page = text.substr(at + folder.size(), end - at - folder.size());
    const std::string link = fmt::format("[{0}]({0})", page);
    text.replace(at, end - at, link);
    at += link.size();
  }
  return text;
}

std::string Meaning(const Field& field) {
  const std::string help = WithLinks(field.help);
  if (field.only_key.empty()) return help;
  return fmt::format("Only with `{}: {}`. {}", field.only_key, ListText(field.only_values, "or"), help);
}

// One row for all keys of a part's optimizer, of which `kind` is the first.
std::string PartRow(const Field& kind) {
  return fmt::format(
      "| `{}` | map | null ({}) |  | run | Only with `model.kind: {}`. The optimizer of this part of the "
      "model "
      "([models.md](models.md)): all keys of `train.optimizer` but `clip_norm`. What is not given here is as "
      "there. |\n",
      kind.key.substr(0, kind.key.rfind('.')), kind.unset, kind.only_model);
}

}  // namespace

std::string ConfigReference() {
  const Config defaults;
  std::string text = kIntroduction;
  for (const std::string& section : NamesIn("")) {
    text += fmt::format(
        "\n## {}\n\n| key | type | default | range | scope | meaning |\n|---|---|---|---|---|---|\n",
        section);
    for (const Field* field : FieldsIn(section)) {
      if (!field->common_key.empty()) {
        if (field->common_key == "train.optimizer.kind") text += PartRow(*field);
        continue;
      }
      text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", field->key, TypeName(field->type),
                          DefaultText(*field, defaults), LimitsText(*field),
                          field->scope == Scope::kRun ? "run" : "task", Meaning(*field));
    }
  }
  return text;
}

}  // namespace dtrain
