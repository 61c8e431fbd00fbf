// Grammar: all of dtrain's command line, as the parser library knows it. Who documents it walks through the
// apps (write_man, completions); command_line.h parses with it.
// Owner: whoever makes one. Thread: one.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "cmd/grammar/command.h"

namespace dtrain {

class Grammar {
 public:
  Grammar();

  // Throws UserError with the remedy.
  Arguments Parse(int argc, const char* const* argv);

  const CLI::App& root() const { return root_; }
  // Those that have a name and are for people, in the order of --help.
  std::vector<const CommandGrammar*> commands() const;

 private:
  const CommandGrammar* Parsed() const;  // null: the form without a command
  // How many words the library is to see.
  int TakeRest(int argc, const char* const* argv);
  Arguments Understand() const;
  void RefuseExtras() const;
  void RefuseMisplaced() const;

  CLI::App root_;
  bool version_ = false;
  std::unique_ptr<CommandGrammar> task_;
  std::vector<std::unique_ptr<CommandGrammar>> commands_;
};

}  // namespace dtrain
