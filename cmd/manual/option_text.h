// What of an option the man page and the completions show. Thread: any.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace dtrain {

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
  std::string name;   // "--config"; of an argument "path"
  std::string names;  // all that it has: "-h,--help"
  bool is_argument = false;
  std::string type;  // "FILE"
  std::string text;
  ValueKind kind = ValueKind::kNone;
  std::vector<std::string> choices;  // of kChoice
};

// Those that --help shows, in its order.
std::vector<OptionText> OptionsOf(const CLI::App& app);

// The same with `separator` between the items.
std::string Joined(const std::vector<std::string>& items, const std::string& separator);

}  // namespace dtrain
