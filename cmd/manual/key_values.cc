#include "cmd/manual/key_values.h"

#include <fmt/core.h>

#include <map>
#include <vector>

#include "cmd/manual/option_text.h"
#include "trainer/config/fields.h"

namespace dtrain {
namespace {

std::string ActionFor(const Field& field, const std::string& files) {
  switch (field.type) {
    case FieldType::kBool:
      return "echo true false";
    case FieldType::kChoice:
      return "echo " + Joined(field.choices, " ");
    case FieldType::kInputPath:
    case FieldType::kOutputPath:
      return files;
    default:
      return std::string();
  }
}

}  // namespace

std::string KeyWords() {
  std::string words;
  for (const Field& field : Fields()) words += (words.empty() ? "" : " ") + field.key + "=";
  return words;
}

std::string KeyCases(const std::string& files) {
  std::map<std::string, std::vector<std::string>> keys_of;  // by what is done for them
  for (const Field& field : Fields()) {
    const std::string action = ActionFor(field, files);
    if (!action.empty()) keys_of[action].push_back(field.key);
  }
  std::string cases;
  for (const auto& [action, keys] : keys_of) {
    cases += fmt::format("    {})\n      {} ;;\n", Joined(keys, " | "), action);
  }
  return cases;
}

}  // namespace dtrain
