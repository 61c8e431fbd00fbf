#include "trainer/config/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "trainer/config/device_fields.h"
#include "trainer/config/field_row.h"
#include "trainer/config/host_map.h"
#include "trainer/config/launch_fields.h"
#include "trainer/config/model_fields.h"
#include "trainer/config/running_fields.h"
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
Field Field::OtherNames(std::map<std::string, std::string> names) const {
  Field field = *this;
  field.other_names = std::move(names);
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
  for (const auto& part :
       {ModelFields(), DataFields(), TrainFields(), PlacementFields(), DeviceFields(), RunningFields(),
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
