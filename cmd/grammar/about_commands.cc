// The commands about dtrain itself: help and version.
#include "base/error.h"
#include "cmd/grammar/command_grammar.h"
#include "cmd/grammar/command_line.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

class HelpGrammar : public CommandGrammar {
 public:
  explicit HelpGrammar(CLI::App* root)
      : CommandGrammar(root->add_subcommand("help", "Print the help of a command"),
                       "Examples:\n  dtrain help\n  dtrain help local"),
        root_(root) {
    app()->add_option("command", command_, "A command; without one, what there is")->type_name("");
  }

  Arguments ToArguments() const override {
    if (command_.empty()) {
      const char* const words[] = {"dtrain"};  // the library's own help() is that of the command given
      return ParseCommandLine(1, words);
    }
    std::vector<std::string> known;
    for (const CLI::App* command : root_->get_subcommands([](const CLI::App*) { return true; })) {
      if (command->get_name() == command_) return ShowText{command->help("dtrain")};
      if (!command->get_group().empty()) known.push_back(command->get_name());
    }
    const std::string close = ClosestName(command_, known);
    throw UserError("{}: unknown command.{} See dtrain --help.", command_,
                    close.empty() ? "" : " Did you mean " + close + "?");
  }

 private:
  const CLI::App* const root_;
  std::string command_;
};

class VersionGrammar : public CommandGrammar {
 public:
  explicit VersionGrammar(CLI::App* root)
      : CommandGrammar(root->add_subcommand("version", "Print version, commit and libraries"), "") {}

  Arguments ToArguments() const override { return ShowVersion{}; }
};

}  // namespace

std::unique_ptr<CommandGrammar> NewHelpGrammar(CLI::App* root) { return std::make_unique<HelpGrammar>(root); }

std::unique_ptr<CommandGrammar> NewVersionGrammar(CLI::App* root) {
  return std::make_unique<VersionGrammar>(root);
}

}  // namespace dtrain
