#include "cmd/grammar/grammar.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "cmd/grammar/commands.h"
#include "cmd/version.h"
#include "trainer/config/suggest.h"

namespace dtrain {
namespace {

constexpr char kAbout[] =
    "dtrain trains models with parameter servers (ps) and workers, as one YAML file describes them.\n"
    "This form runs one task of the cluster; the same file goes to every machine.";

// Every argument without an option is required; each command refuses its absence in words of its own.
class Usage : public CLI::Formatter {
  std::string make_option_usage(const CLI::Option* option) const override {
    return make_option_name(option, /*is_positional=*/true);
  }
};

// `dtrain local x.yaml`: of a command that has --config, and did not get it.
bool IsMeantAsConfig(const std::string& word, const CLI::App& command) {
  const CLI::Option* const config = command.get_option_no_throw("--config");
  if (config == nullptr || config->count() > 0) return false;
  const std::filesystem::path ending = std::filesystem::path(word).extension();
  return (ending == ".yaml" || ending == ".yml") && word.front() != '-';
}

}  // namespace

Grammar::Grammar() : root_(kAbout, "dtrain"), task_(NewTaskGrammar(&root_)) {
  root_.allow_extras();
  root_.formatter(std::make_shared<Usage>());  // before the commands, which take it over
  root_.require_subcommand(0, 1);
  root_.add_flag("--version", version_, "Print version, commit and libraries, and end");
  for (auto* const new_command : {NewLocalGrammar, NewLaunchGrammar, NewRelayGrammar, NewGuardGrammar,
                                  NewCheckGrammar, NewPlanGrammar, NewInspectGrammar, NewEvalGrammar,
                                  NewPredictGrammar, NewExportGrammar, NewImportGrammar, NewDevicesGrammar}) {
    commands_.push_back(new_command(&root_));
    commands_.back()->app()->allow_extras();
  }
}

Arguments Grammar::Parse(int argc, const char* const* argv) {
  if (argc <= 1) return ShowText{root_.help()};
  try {
    root_.parse(TakeRest(argc, argv), argv);
  } catch (const CLI::CallForHelp&) {
    return ShowText{Parsed() != nullptr ? Parsed()->app()->help("dtrain") : root_.help()};
  } catch (const CLI::ParseError& error) {
    throw UserError("{}. See dtrain --help.", error.what());
  }
  return Understand();
}

int Grammar::TakeRest(int argc, const char* const* argv) {
  for (const auto& command : commands_) {
    if (command->rest() == nullptr || command->app()->get_name() != argv[1]) continue;
    const auto* const mark = std::find(argv, argv + argc, std::string_view("--"));
    if (mark != argv + argc) command->rest()->assign(mark + 1, argv + argc);
    return static_cast<int>(mark - argv);
  }
  return argc;
}

std::vector<const CommandGrammar*> Grammar::commands() const {
  std::vector<const CommandGrammar*> commands;
  for (const auto& command : commands_) {
    if (!command->app()->get_group().empty()) commands.push_back(command.get());
  }
  return commands;
}

const CommandGrammar* Grammar::Parsed() const {
  for (const auto& command : commands_) {
    if (command->app()->parsed()) return command.get();
  }
  return nullptr;
}

Arguments Grammar::Understand() const {
  RefuseExtras();
  if (version_) return ShowText{VersionText()};
  RefuseMisplaced();
  return Parsed() != nullptr ? Parsed()->Understand() : task_->Understand();
}

void Grammar::RefuseExtras() const {
  const std::vector<std::string> extras = root_.remaining(/*recurse=*/true);
  if (extras.empty()) return;
  const CLI::App* const command = Parsed() != nullptr ? Parsed()->app() : &root_;
  if (IsMeantAsConfig(extras.front(), *command)) {
    throw UserError("{0}: a config file needs its option. Write --config {0}.", extras.front());
  }
  const std::string name = extras.front().substr(0, extras.front().find('='));
  std::vector<std::string> known;
  const bool is_option = name.compare(0, 1, "-") == 0;
  if (is_option) {
    for (const CLI::Option* option : command->get_options()) {
      if (!option->get_group().empty()) known.push_back(option->get_name());
    }
  } else {
    for (const CommandGrammar* each : commands()) known.push_back(each->app()->get_name());
  }
  const std::string close = ClosestName(name, known);
  const std::string hint = close.empty() ? "" : " Did you mean " + close + "?";
  const char* what = is_option ? "unknown option" : "unknown command or argument";
  throw UserError("{}: {}.{} See {} --help.", name, what, hint,
                  command == &root_ ? "dtrain" : "dtrain " + command->get_name());
}

// `dtrain --config F local` would silently lose F.
void Grammar::RefuseMisplaced() const {
  if (Parsed() == nullptr) return;
  const std::string command = Parsed()->app()->get_name();
  for (const CLI::Option* option : root_.get_options()) {
    if (option->count() == 0) continue;
    throw UserError("{}: stands before \"{}\". Write dtrain {} {} ...", option->get_name(), command, command,
                    option->get_name());
  }
}

}  // namespace dtrain
