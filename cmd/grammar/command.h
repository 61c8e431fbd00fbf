// CommandGrammar: one command as the parser library knows it: its options, its help, and what they come to.
// One file for each (commands.h); the grammar of all is made of them (grammar.h).
// Owner: Grammar, which the app belongs to as well. Thread: one.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

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
  // Where the words after "--" go, as they are, before the library sees any; null: it sees them all.
  virtual std::vector<std::string>* rest() { return nullptr; }

 private:
  CLI::App* const app_;
};

}  // namespace dtrain
