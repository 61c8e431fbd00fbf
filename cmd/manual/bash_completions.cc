#include <fmt/core.h>

#include "cmd/manual/completions.h"
#include "cmd/manual/key_values.h"
#include "cmd/manual/option_text.h"

namespace dtrain {
namespace {

constexpr const char* kHead = R"sh(# Completions of dtrain for bash. Made by cmd/manual/write_manual.

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
constexpr const char* kBody = R"sh(
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

std::string OptionWords(const CLI::App& app) {
  std::string words;
  for (const OptionText& option : OptionsOf(app)) {
    if (!option.is_argument) words += (words.empty() ? "" : " ") + option.name;
  }
  return words;
}

std::string BehindOf(const OptionText& option) {
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

std::string BehindCases(const std::string& command, const CLI::App& app) {
  std::string cases;
  for (const OptionText& option : OptionsOf(app)) {
    const std::string behind = BehindOf(option);
    if (option.is_argument || behind.empty()) continue;
    cases += fmt::format("    '{} {}') echo {} ;;\n", command, option.name, behind);
  }
  return cases;
}

}  // namespace

std::string BashCompletions(const Grammar& grammar) {
  std::string options, behind = BehindCases("", grammar.root());
  std::vector<std::string> commands;
  for (const CommandGrammar* command : grammar.commands()) {
    const CLI::App& app = *command->app();
    commands.push_back(app.get_name());
    options += fmt::format("    {}) echo {} ;;\n", app.get_name(), OptionWords(app));
    behind += BehindCases(app.get_name(), app);
  }
  options += fmt::format("    *) echo {} ;;\n", OptionWords(grammar.root()));
  return fmt::format(kHead, KeyCases("echo /files"), options, behind, Joined(commands, " "), KeyWords()) +
         kBody;
}

}  // namespace dtrain
