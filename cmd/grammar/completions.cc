#include <fmt/core.h>

#include <map>
#include <string>
#include <vector>

#include "cmd/grammar/manual.h"
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

// All keys, each with a = behind it, with spaces between.
std::string KeyWords() {
  std::string words;
  for (const Field& field : Fields()) words += (words.empty() ? "" : " ") + field.key + "=";
  return words;
}

// The body of a shell's case over the key: where it is a choice, `echo` of its values; where it is a path,
// `files`.
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

constexpr const char* kBashHead = R"sh(# Completions of dtrain for bash. Made by cmd/grammar/write_manual.

# What may stand behind KEY= of --set.
_dtrain_values() {{
  case $1 in
{}  esac
}}

_dtrain_options() {{
  case $1 in
{}  esac
}}

# Behind an option of a command: KIND and words. None: a flag, or nothing that is known.
_dtrain_behind() {{
  case "$1 $2" in
{}  esac
}}

_dtrain_commands='{}'
_dtrain_keys='{}'
)sh";

// The line is split at blanks that no backslash precedes, because bash's own words end at = too.
constexpr const char* kBashBody = R"sh(
_dtrain_files() { # current, of which kind for compgen
  compopt -o filenames
  mapfile -t COMPREPLY < <(compgen "$2" -- "$1")
}

_dtrain_words() { # current, words
  mapfile -t COMPREPLY < <(compgen -W "$2" -- "$1")
}

_dtrain_set() { # current: a key, or KEY=VALUE
  if [[ $1 != *=* ]]; then
    compopt -o nospace
    _dtrain_words "$1" "$_dtrain_keys"
    return
  fi
  local values
  values=$(_dtrain_values "${1%%=*}")
  if [[ $values == /files ]]; then
    _dtrain_files "${1#*=}" -f
  else
    _dtrain_words "${1#*=}" "$values"
  fi
}

_dtrain() {
  local line=${COMP_LINE:0:COMP_POINT} current='' before command='' behind
  local -a words
  # shellcheck disable=SC2162  # a backslash joins what a blank would part
  read -a words <<<"$line"
  if [[ $line != *[[:space:]] ]]; then
    current=${words[-1]}
    unset 'words[-1]'
  fi
  before=${words[-1]}
  [[ " $_dtrain_commands " != *" ${words[1]:-/} "* ]] || command=${words[1]}
  if [[ $current == --*=* ]]; then
    before=${current%%=*}
    current=${current#*=}
  fi
  current=${current#[\'\"]}
  COMPREPLY=()
  behind=$(_dtrain_behind "$command" "$before")
  case $behind in
    file) _dtrain_files "$current" -f ;;
    directory) _dtrain_files "$current" -d ;;
    key) _dtrain_set "$current" ;;
    choice*) _dtrain_words "$current" "${behind#choice }" ;;
    other) ;;
    *)
      if [[ $current == -* ]]; then
        _dtrain_words "$current" "$(_dtrain_options "$command")"
      elif [[ ${#words[@]} -eq 1 ]]; then
        _dtrain_words "$current" "$_dtrain_commands"
      else
        _dtrain_files "$current" -f
      fi
      ;;
  esac
}
complete -F _dtrain dtrain
)sh";

std::string OptionWords(const CommandText& command) {
  std::string words;
  for (const OptionText& option : command.options) {
    if (!option.is_argument) words += (words.empty() ? "" : " ") + option.name;
  }
  return words;
}

// What may stand behind the option, as _dtrain_behind tells it.
std::string CompletionKind(const OptionText& option) {
  switch (option.kind) {
    case ValueKind::kNone:
      return std::string();
    case ValueKind::kFile:
      return "file";
    case ValueKind::kDirectory:
      return "directory";
    case ValueKind::kKey:
      return "key";
    case ValueKind::kChoice:
      return "choice " + Joined(option.choices, " ");
    case ValueKind::kOther:
      return "other";
  }
  return std::string();
}

std::string BehindCases(const std::string& name, const CommandText& command) {
  std::string cases;
  for (const OptionText& option : command.options) {
    const std::string behind = CompletionKind(option);
    if (option.is_argument || behind.empty()) continue;
    cases += fmt::format("    '{} {}') echo {} ;;\n", name, option.name, behind);
  }
  return cases;
}

constexpr const char* kZshHead = R"(#compdef dtrain
# Completions of dtrain for zsh. Made by cmd/grammar/write_manual.

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

std::string ZshAction(const OptionText& option) {
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
std::string ZshSpecs(const CommandText& command, const std::string& margin) {
  std::string specs;
  for (const OptionText& option : command.options) {
    const std::string text = Escaped(option.text, "[]:");
    if (option.is_argument) {
      specs += fmt::format("{}'1:{}:{}' \\\n", margin, text, ZshAction(option));
    } else if (option.kind == ValueKind::kNone) {
      specs += fmt::format("{}'{}[{}]' \\\n", margin, option.name, text);
    } else {
      const char* const repeats = option.kind == ValueKind::kKey ? "*" : "";
      specs += fmt::format("{}'{}{}[{}]:{}:{}' \\\n", margin, repeats, option.name, text,
                           Escaped(option.type, ":"), ZshAction(option));
    }
  }
  return specs;
}

std::string ZshCase(const CommandText& command) {
  return fmt::format("    {})\n      shift words\n      (( CURRENT-- ))\n      _arguments \\\n{}        ;;\n",
                     command.name, ZshSpecs(command, "        "));
}

}  // namespace

std::string BashCompletions(const CommandLineText& line) {
  std::string options, behind = BehindCases("", line.root);
  std::vector<std::string> commands;
  for (const CommandText& command : line.commands) {
    commands.push_back(command.name);
    options += fmt::format("    {}) echo {} ;;\n", command.name, OptionWords(command));
    behind += BehindCases(command.name, command);
  }
  options += fmt::format("    *) echo {} ;;\n", OptionWords(line.root));
  return fmt::format(kBashHead, KeyCases("echo /files"), options, behind, Joined(commands, " "), KeyWords()) +
         kBashBody;
}

std::string ZshCompletions(const CommandLineText& line) {
  std::string described, cases;
  for (const CommandText& command : line.commands) {
    described += fmt::format("    '{}:{}'\n", command.name, Escaped(command.text, ":"));
    cases += ZshCase(command);
  }
  return fmt::format(kZshHead, KeyCases("echo /files"), KeyWords(), described, cases,
                     ZshSpecs(line.root, "        "));
}

}  // namespace dtrain
