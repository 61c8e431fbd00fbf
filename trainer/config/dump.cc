#include "trainer/config/dump.h"

#include <fmt/core.h>

#include <map>

#include "trainer/config/fields.h"

namespace dtrain {
namespace {

Value EffectiveValue(const Field& field, const Config& config) {
  return Applies(field, config) ? field.get(config) : Value();
}

void DumpSection(const Config& config, const std::string& section, int depth, std::string* text) {
  const std::string indent(static_cast<size_t>(depth) * 2, ' ');
  for (const std::string& name : NamesIn(section)) {
    const std::string key = JoinKey(section, name);
    const Field* field = FindField(key);
    if (field == nullptr) {
      *text += fmt::format("{}{}:\n", indent, name);
      DumpSection(config, key, depth + 1, text);
    } else if (field->alias_of.empty()) {
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

Settings RunSettings(const Config& config) {
  Settings settings;
  for (const Field& field : Fields()) {
    if (field.scope != Scope::kRun || !field.alias_of.empty()) continue;
    settings.emplace_back(field.key, ValueText(field, EffectiveValue(field, config)));
  }
  return settings;
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

}  // namespace dtrain
