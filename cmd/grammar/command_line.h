// The command line of dtrain: ParseCommandLine() reads it, DescribeCommandLine() describes it. Thread: any.
#pragma once

#include <string>
#include <vector>

#include "cmd/common/arguments.h"

namespace dtrain {

// Parses the command line. Throws UserError with the remedy. Without arguments it returns the help text.
Arguments ParseCommandLine(int argc, const char* const* argv);

// ValueKind: what kind of value an option takes, for completions.
enum class ValueKind {
  kNone,       // a flag
  kFile,       // FILE
  kDirectory,  // DIR
  kKey,        // KEY=VALUE
  kChoice,     // ps|worker
  kOther,
};

struct OptionText {
  std::string name;   // "--config"; "path" for a positional argument
  std::string names;  // all names: "-h,--help"
  bool is_argument = false;
  std::string type;  // "FILE"
  std::string text;
  ValueKind kind = ValueKind::kNone;
  std::vector<std::string> choices;  // with kChoice
};

struct CommandText {
  std::string name;  // "local"
  std::string text;
  std::string footer;               // paragraphs after the options in --help
  std::vector<OptionText> options;  // the options in --help, in its order
};

// CommandLineText: the description for the man page and the completions.
struct CommandLineText {
  CommandText root;                   // the form without a command
  std::vector<CommandText> commands;  // the commands in --help, in its order
};
CommandLineText DescribeCommandLine();

}  // namespace dtrain
