#include <fmt/core.h>

#include "cmd/manual/completions.h"
#include "cmd/manual/key_values.h"
#include "cmd/manual/option_text.h"

namespace dtrain {
namespace {

constexpr const char* kHead = R"(#compdef dtrain
# Completions of dtrain for zsh. Made by cmd/manual/write_manual.

# What may stand behind KEY= of --set.
_dtrain_values() {{
  case $1 in
{}  esac
}}

_dtrain_set() {{
  local values
  if compset -P '*='; then
    values=$(_dtrain_values ${{IPREFIX%=}})
    if [[ $values == /files ]]; then
      _files
    else
      compadd -- ${{=values}}
    fi
  else
    compadd -S '' -- {}
  fi
}}

_dtrain_commands() {{
  local -a commands
  commands=(
{}  )
  _describe command commands
}}

_dtrain() {{
  local command=
  (( CURRENT > 2 )) && command=$words[2]
  case $command in
{}    *)
      _arguments \
{}        '1: :_dtrain_commands' ;;
  esac
}}

_dtrain "$@"
)";

// In single quotes; `special` are the signs that mean something there.
std::string Escaped(const std::string& text, const char* special) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\'') {
      escaped += "'\\''";
      continue;
    }
    if (std::string(special).find(c) != std::string::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string Action(const OptionText& option) {
  switch (option.kind) {
    case ValueKind::kFile:
      return "_files";
    case ValueKind::kDirectory:
      return "_files -/";
    case ValueKind::kKey:
      return "_dtrain_set";
    case ValueKind::kChoice:
      return "(" + Joined(option.choices, " ") + ")";
    default:
      return " ";
  }
}

// For _arguments.
std::string Specs(const CLI::App& app, const std::string& margin) {
  std::string specs;
  for (const OptionText& option : OptionsOf(app)) {
    const std::string text = Escaped(option.text, "[]:");
    if (option.is_argument) {
      specs += fmt::format("{}'1:{}:{}' \\\n", margin, text, Action(option));
    } else if (option.kind == ValueKind::kNone) {
      specs += fmt::format("{}'{}[{}]' \\\n", margin, option.name, text);
    } else {
      const char* const repeats = option.kind == ValueKind::kKey ? "*" : "";
      specs += fmt::format("{}'{}{}[{}]:{}:{}' \\\n", margin, repeats, option.name, text,
                           Escaped(option.type, ":"), Action(option));
    }
  }
  return specs;
}

std::string CommandCase(const CLI::App& app) {
  return fmt::format("    {})\n      shift words\n      (( CURRENT-- ))\n      _arguments \\\n{}        ;;\n",
                     app.get_name(), Specs(app, "        "));
}

}  // namespace

std::string ZshCompletions(const Grammar& grammar) {
  std::string described, cases;
  for (const CommandGrammar* command : grammar.commands()) {
    const CLI::App& app = *command->app();
    described += fmt::format("    '{}:{}'\n", app.get_name(), Escaped(app.get_description(), ":"));
    cases += CommandCase(app);
  }
  return fmt::format(kHead, KeyCases("echo /files"), KeyWords(), described, cases,
                     Specs(grammar.root(), "        "));
}

}  // namespace dtrain
