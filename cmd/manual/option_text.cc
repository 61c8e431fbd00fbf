#include "cmd/manual/option_text.h"

namespace dtrain {
namespace {

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

ValueKind KindOf(const CLI::Option& option, const std::string& type) {
  if (option.get_positional()) return ValueKind::kFile;
  if (option.get_items_expected_max() == 0) return ValueKind::kNone;
  if (type == "FILE") return ValueKind::kFile;
  if (type == "DIR") return ValueKind::kDirectory;
  if (type == "KEY=VALUE") return ValueKind::kKey;
  return type.find('|') != std::string::npos ? ValueKind::kChoice : ValueKind::kOther;
}

}  // namespace

std::vector<OptionText> OptionsOf(const CLI::App& app) {
  std::vector<OptionText> options;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    OptionText text;
    text.is_argument = option->get_positional();
    text.name = option->get_name(text.is_argument);
    text.names = text.is_argument ? text.name : option->get_name(false, /*all_options=*/true);
    text.text = option->get_description();
    text.kind = KindOf(*option, option->get_type_name());
    if (text.kind != ValueKind::kNone) text.type = option->get_type_name();
    if (text.kind == ValueKind::kChoice) text.choices = Split(text.type, '|');
    options.push_back(text);
  }
  return options;
}

std::string Joined(const std::vector<std::string>& items, const std::string& separator) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : separator) + item;
  return text;
}

}  // namespace dtrain
