#include "cmd/grammar/manual.h"

#include <fmt/core.h>

#include <cctype>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "cmd/grammar/command_line.h"
#include "trainer/config/config.h"
#include "trainer/config/fields.h"
#include "trainer/version.h"

namespace dtrain {
namespace {

// Returns the items with `separator` between them.
std::string Joined(const std::vector<std::string>& items, const std::string& separator) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : separator) + item;
  return text;
}

// Escapes a text for roff: no line is a request, and a minus stays a minus that can be copied.
std::string Roff(const std::string& text) {
  std::string roff;
  bool line_begins = true;
  for (const char c : text) {
    if (line_begins && (c == '.' || c == '\'')) roff += "\\&";
    line_begins = c == '\n';
    if (c == '`') continue;  // Markdown's mark for code
    if (c == '\\') {
      roff += "\\e";
    } else if (c == '-') {
      roff += "\\-";
    } else {
      roff += c;
    }
  }
  return roff;
}

std::string Paragraph(const std::string& text) { return ".PP\n" + Roff(text) + "\n"; }

// Formats a text line by line, unfilled.
std::string Block(const std::string& text) { return ".PP\n.nf\n.RS 2\n" + Roff(text) + "\n.RE\n.fi\n"; }

std::string Item(const std::string& name, const std::string& type, const std::string& text) {
  const std::string value = type.empty() ? "" : fmt::format(" \\fI{}\\fR", Roff(type));
  return fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", Roff(name), value, Roff(text));
}

std::string Options(const CommandText& command) {
  std::string roff;
  for (const OptionText& option : command.options) roff += Item(option.names, option.type, option.text);
  return roff;
}

// Formats a footer of --help. Paragraphs that begin with "Examples:" or a similar word become a heading, made
// by `heading`, and an unfilled block.
template <typename Heading>
std::string Footer(const std::string& footer, Heading heading) {
  std::string roff;
  for (size_t begin = 0; begin < footer.size();) {
    const size_t end = std::min(footer.find("\n\n", begin), footer.size());
    const std::string paragraph = footer.substr(begin, end - begin);
    begin = end + 2;
    const size_t line_end = paragraph.find('\n');
    if (line_end != std::string::npos && paragraph[line_end - 1] == ':') {
      roff += heading(paragraph.substr(0, line_end - 1)) + Block(paragraph.substr(line_end + 1));
    } else {
      roff += Paragraph(paragraph);
    }
  }
  return roff;
}

std::string Capitals(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string Synopsis(const std::string& name, const CommandText& command) {
  std::string roff = fmt::format(".PP\n\\fB{}\\fR", Roff(name));
  for (const OptionText& option : command.options) {
    if (option.is_argument) roff += fmt::format(" \\fI{}\\fR", Roff(option.name));
  }
  return roff + " [\\fIoptions\\fR]\n";
}

std::string Commands(const std::vector<CommandText>& commands) {
  std::string roff;
  for (const CommandText& command : commands) {
    const std::string name = "dtrain " + command.name;
    roff += fmt::format(".SS {}\n", Roff(name)) + Synopsis(name, command) + Paragraph(command.text + ".");
    roff += Options(command);
    roff += Footer(command.footer, [](const std::string& word) { return Paragraph(word + ":"); });
  }
  return roff;
}

// Returns ">= 1; default: 100".
std::string ValueOf(const Field& field) {
  static const Config defaults;
  const Value value = field.get(defaults);
  const std::string limits = LimitsText(field);
  const std::string without = IsNull(value) ? field.unset : ValueText(field, value);
  return (limits.empty() ? "" : limits + "; ") + (field.required ? "required" : "default: " + without);
}

std::string Keys() {
  std::string roff;
  for (const Field& field : Fields()) {
    const std::string only = field.only_key.empty() ? ""
                                                    : fmt::format("With {}: {}. ", field.only_key,
                                                                  Joined(field.only_values, ", "));
    roff += Item(field.key, ValueOf(field), only + field.help);
  }
  return roff;
}

constexpr const char* kConfig =
    R"(One YAML file describes the whole run, and every task reads the same one. --set KEY=VALUE beats the file, and the
file beats the default. An unknown key, a wrong type and a value out of range are errors, all told at once. Input paths
in the file are relative to the file; output paths, and all paths in --set, to the working directory.)";

std::string Variables() {
  return Item("CUDA_VISIBLE_DEVICES", "",
              "The GPUs that there are for this process, as CUDA understands it. Set to nothing: none.") +
         Item("LD_LIBRARY_PATH", "", "Where cuBLAS is looked for besides the system's own folders.") +
         Item("TF_CONFIG; SLURM_...; PMI_..., PMIX_..., OMPI_...", "",
              "With --from alone: the cluster, and the place of this process in it.");
}

std::string Places() {
  return Item("checkpoint.dir/step-000012000/", "",
              "A checkpoint, complete under this name, with the config.yaml of its run.") +
         Item("checkpoint.dir/replaced-step-000012000-7/", "",
              "A complete one that made room when its step was saved again.") +
         Item("checkpoint.dir/best", "",
              "The name of the checkpoint with the best evaluation (eval.keep_best).") +
         Item("checkpoint.dir/.in-use", "", "Whose run writes there.") +
         Item("log.dir/", "", "The log of each task, appended to.") +
         Item("summary.dir/, and in it worker-1/, ps-0/, eval/", "",
              "Event files for TensorBoard: of worker 0 and the run, and of others; eval/ is of dtrain eval "
              "--follow.") +
         Item("--result FILE", "", "One JSON document, written at every ending.");
}

std::string ManPage(const CommandLineText& line) {
  const CommandText& root = line.root;
  std::string roff = fmt::format(
      ".\\\" Made by dtrain --generate man.\n.TH DTRAIN 1 \"\" \"dtrain {}\"\n.nh\n.ad l\n", kVersion);
  roff += ".SH NAME\ndtrain \\- trains models with parameter servers and workers, as a YAML file says\n";
  roff += ".SH SYNOPSIS\n" + Synopsis("dtrain", root);
  for (const CommandText& command : line.commands) roff += Synopsis("dtrain " + command.name, command);
  roff += ".SH DESCRIPTION\n" + Paragraph(root.text);
  roff += ".SH OPTIONS\n" + Paragraph("Of the form without a command:") + Options(root);
  roff += ".SH COMMANDS\n" + Commands(line.commands);
  roff += Footer(root.footer, [](const std::string& word) { return ".SH " + Capitals(word) + "\n"; });
  roff += ".SH CONFIG FILE\n" + Paragraph(kConfig) + Keys();
  return roff + ".SH ENVIRONMENT\n" + Variables() + ".SH FILES\n" + Places();
}

std::string ActionFor(const Field& field, const std::string& files) {
  switch (field.type) {
    case FieldType::kBool:
      return "echo true false";
    case FieldType::kChoice:
      return "echo " + Joined(field.choices, " ");
    case FieldType::kInputPath:
    case FieldType::kInputPaths:
    case FieldType::kOutputPath:
      return files;
    default:
      return std::string();
  }
}

// Returns all keys, each followed by "=", separated by spaces.
std::string KeyWords() {
  std::string words;
  for (const Field& field : Fields()) words += (words.empty() ? "" : " ") + field.key + "=";
  return words;
}

// Returns the body of a shell's case over keys: `echo` of the values for a key with choices, `files` for a
// key with a path.
std::string KeyCases(const std::string& files) {
  std::map<std::string, std::vector<std::string>> keys_of;  // by the command that completes them
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

constexpr const char* kBashHead = R"sh(# Completions of dtrain for bash. Made by dtrain --generate bash.

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

// The line is split at blanks without a backslash before them, because bash's own words end at "=" too.
constexpr const char* kBashBody = R"sh(
_dtrain_files() { # the current word, the kind of files for compgen
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

// Returns what kind of value completes the option, in the words of _dtrain_behind.
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
# Completions of dtrain for zsh. Made by dtrain --generate zsh.

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

// Escapes `special` characters, for a text in single quotes.
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

// Returns the option specifications for zsh's _arguments.
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

constexpr const char* kFishHead = R"(# Completions of dtrain for fish. Made by dtrain --generate fish.

# What may stand behind KEY= of --set.
function __dtrain_values
  switch $argv[1]
{}  end
end

# A key, or KEY=VALUE.
function __dtrain_set
  set -l parts (string split -m 1 = -- (commandline -ct))
  if test (count $parts) -lt 2
    printf '%s\n' {}
    return
  end
  set -l values (__dtrain_values $parts[1])
  if test "$values" = /files
    set values (__fish_complete_path $parts[2])
  end
  test -n "$values"; and printf "$parts[1]=%s\n" $values
end

complete -c dtrain -f
)";

// Returns what completes the value of an option, in the words of fish's `complete`.
std::string FishValue(const OptionText& option) {
  switch (option.kind) {
    case ValueKind::kNone:
      return "";
    case ValueKind::kFile:
      return " -r -F";
    case ValueKind::kDirectory:
      return " -x -a '(__fish_complete_directories)'";
    case ValueKind::kKey:
      return " -x -a '(__dtrain_set)'";
    case ValueKind::kChoice:
      return fmt::format(" -x -a '{}'", Joined(option.choices, " "));
    case ValueKind::kOther:
      return " -x";
  }
  return "";
}

// Returns the `complete` lines of a command's options. `condition`: when they are offered.
std::string FishOptions(const CommandText& command, const std::string& condition) {
  std::string lines;
  for (const OptionText& option : command.options) {
    const std::string begin = fmt::format("complete -c dtrain -n '{}'", condition);
    if (option.is_argument) {
      lines += begin + " -F\n";
    } else {
      lines += fmt::format("{} -l {}{} -d '{}'\n", begin, option.name.substr(2), FishValue(option),
                           Escaped(option.text, ""));
    }
  }
  return lines;
}

std::string FishCompletions(const CommandLineText& line) {
  std::string cases;
  for (const Field& field : Fields()) {
    const std::string action = ActionFor(field, "echo /files");
    if (!action.empty())
      cases += fmt::format("    case {}\n      string split ' ' -- ({})\n", field.key, action);
  }
  std::string text = fmt::format(kFishHead, cases, KeyWords());
  for (const CommandText& command : line.commands) {
    text += fmt::format("complete -c dtrain -n __fish_use_subcommand -a {} -d '{}'\n", command.name,
                        Escaped(command.text, ""));
    text += FishOptions(command, "__fish_seen_subcommand_from " + command.name);
  }
  return text + FishOptions(line.root, "__fish_use_subcommand");
}

}  // namespace

std::string Generated(const std::string& what) {
  const CommandLineText line = DescribeCommandLine();
  if (what == "man") return ManPage(line);
  if (what == "bash") return BashCompletions(line);
  return what == "zsh" ? ZshCompletions(line) : FishCompletions(line);
}

}  // namespace dtrain
