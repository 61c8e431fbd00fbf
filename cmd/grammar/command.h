// CommandGrammar: one command as the parser library knows it: its options, its help, and what they come to.
// One file for each (commands.h); the grammar of all is made of them (grammar.h).
// Owner: Grammar, which the app belongs to as well. Thread: one.
#pragma once

#include <CLI/CLI.hpp>

#include "cmd/arguments.h"

namespace dtrain {

class CommandGrammar {
 public:
  CommandGrammar(CLI::App* app, const char* footer) : app_(app) { app->footer(footer); }
  virtual ~CommandGrammar() = default;
  CommandGrammar(const CommandGrammar&) = delete;
  CommandGrammar& operator=(const CommandGrammar&) = delete;

  // After the library has filled what the options belong to. Throws UserError with the remedy.
  virtual Arguments Understand() const = 0;
  CLI::App* app() const { return app_; }

 private:
  CLI::App* const app_;
};

}  // namespace dtrain
