// The command line of dtrain: ParseCommandLine() makes Arguments of it, DescribeCommandLine() tells what it
// may have. Thread: any.
#pragma once

#include <string>
#include <vector>

#include "cmd/common/arguments.h"

namespace dtrain {

// Throws UserError with the remedy where the line cannot be understood. No arguments at all ask for help.
Arguments ParseCommandLine(int argc, const char* const* argv);

// What may stand behind an option, told by the name that the grammar gives its type.
enum class ValueKind {
  kNone,       // a flag
  kFile,       // FILE
  kDirectory,  // DIR
  kKey,        // KEY=VALUE
  kChoice,     // ps|worker
  kOther,
};

struct OptionText {
  std::string name;   // "--config"; an argument's is "path"
  std::string names;  // all that it has: "-h,--help"
  bool is_argument = false;
  std::string type;  // "FILE"
  std::string text;
  ValueKind kind = ValueKind::kNone;
  std::vector<std::string> choices;  // with kChoice
};

struct CommandText {
  std::string name;  // "local"
  std::string text;
  std::string footer;               // paragraphs behind the options in --help
  std::vector<OptionText> options;  // those that --help shows, in its order
};

// For the man page and the completions.
struct CommandLineText {
  CommandText root;                   // the form without a command
  std::vector<CommandText> commands;  // those for people, in the order of --help
};
CommandLineText DescribeCommandLine();

}  // namespace dtrain
