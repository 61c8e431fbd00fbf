#include "cmd/grammar/command_line.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "cmd/common/program.h"
#include "cmd/grammar/command_grammar.h"
#include "trainer/config/fields.h"
#include "trainer/config/parse.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

constexpr int kLastPort = 65535;

Scheduler SchedulerNamed(const std::string& text) {
  std::vector<std::string> names;
  for (const Scheduler scheduler : {Scheduler::kSlurm, Scheduler::kTfConfig, Scheduler::kMpi}) {
    if (text == SchedulerName(scheduler)) return scheduler;
    names.push_back(SchedulerName(scheduler));
  }
  const std::string close = ClosestName(text, names);
  throw UserError("--from {}: must be {}.{}", text, ListText(names, "or"),
                  close.empty() ? "" : fmt::format(" Did you mean {}?", close));
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

ValueKind KindOf(const CLI::Option& option, const std::string& type) {
  if (option.get_positional()) return ValueKind::kFile;
  if (option.get_items_expected_max() == 0) return ValueKind::kNone;
  if (type == "FILE") return ValueKind::kFile;
  if (type == "DIR") return ValueKind::kDirectory;
  if (type == "KEY=VALUE") return ValueKind::kKey;
  return type.find('|') != std::string::npos ? ValueKind::kChoice : ValueKind::kOther;
}

std::vector<OptionText> OptionsOf(const CLI::App& app) {
  std::vector<OptionText> options;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    OptionText text;
    text.is_argument = option->get_positional();
    text.name = option->get_name(text.is_argument);
    text.names = text.is_argument ? text.name : option->get_name(false, /*all_options=*/true);
    text.text = option->get_description();
    text.kind = KindOf(*option, option->get_type_name());
    if (text.kind != ValueKind::kNone) text.type = option->get_type_name();
    if (text.kind == ValueKind::kChoice) text.choices = Split(text.type, '|');
    options.push_back(text);
  }
  return options;
}

CommandText TextOf(const CLI::App& app) {
  return {app.get_name(), app.get_description(), app.get_footer(), OptionsOf(app)};
}

constexpr char kAbout[] =
    "dtrain trains models with parameter servers (ps) and workers, as one YAML file describes them.\n"
    "This form runs one task of the cluster; the same file goes to every machine.";

// Usage: help texts in which every positional argument is shown as required, although the library is not
// told so: each command reports a missing one in its own words.
class Usage : public CLI::Formatter {
  std::string make_option_usage(const CLI::Option* option) const override {
    return make_option_name(option, /*is_positional=*/true);
  }
};

// Whether `word` is a config without --config, as in `dtrain eval run/ckpt x.yaml`.
bool IsMeantAsConfig(const std::string& word, const CLI::App& command) {
  const CLI::Option* const config = command.get_option_no_throw("--config");
  const auto options = command.get_options([](const CLI::Option* each) { return each->get_positional(); });
  const bool takes_one = std::any_of(options.begin(), options.end(), [](const CLI::Option* each) {
    return each->get_name(/*positional=*/true) == "config";
  });
  return config != nullptr && config->count() == 0 && !takes_one && IsConfigName(word);
}

// What other tools call a command; empty: the word is none of theirs.
std::string CommandMeantBy(const std::string& word) {
  static const std::map<std::string, std::vector<std::string>> words = {
      {"local", {"train", "fit", "run", "start", "resume"}},
      {"eval", {"test", "score", "validate", "benchmark"}},
      {"predict", {"infer", "inference", "serve", "transform"}},
      {"init", {"new", "create", "setup", "configure"}},
      {"report", {"plot", "tensorboard", "visualize"}},
      {"status", {"top"}},
      {"status runs", {"runs", "ls", "list", "history"}},
      {"export", {"convert"}},
      {"check", {"lint", "verify", "describe"}}};
  for (const auto& [command, others] : words) {
    if (std::count(others.begin(), others.end(), LowerCase(word)) > 0) return command;
  }
  return "";
}

// " It is a key of the config: --set train.epochs=3", of an option that other tools have in place of a key,
// or what else its name may mean. Empty: nothing is known of it. `words`: the option and what follows it.
std::string KeyHint(const std::string& option, const std::vector<std::string>& words) {
  std::string name = option.substr(std::min(option.find_first_not_of('-'), option.size()));
  std::replace(name.begin(), name.end(), '-', '_');
  const Meant meant = DidYouMean("", name);
  const Field* const field = meant.names.size() == 1 ? FindField(meant.names[0]) : nullptr;
  if (field == nullptr) return meant.question.empty() ? "" : " " + meant.question;
  std::string value = ExampleOf(*field);
  const size_t equals = words[0].find('=');
  if (equals != std::string::npos) {
    value = words[0].substr(equals + 1);
  } else if (words.size() > 1 && words[1].find_first_not_of("0123456789.") == std::string::npos) {
    value = words[1];
  }
  return fmt::format(" It is a key of the config: --set {}={}.", meant.names[0],
                     value.empty() ? "VALUE" : value);
}

// Grammar: the whole command line of dtrain, built with the parser library.
class Grammar {
 public:
  Grammar();

  // Throws UserError with the remedy.
  Arguments Parse(int argc, const char* const* argv);
  CommandLineText Describe() const;

 private:
  // Returns the commands in --help, in its order.
  std::vector<const CommandGrammar*> ShownCommands() const;
  const CommandGrammar* Parsed() const;  // null: the form without a command
  // Moves the words after "--" aside. Returns how many words the library is to parse.
  int TakeRest(int argc, const char* const* argv);
  Arguments ToArguments() const;
  ShowGenerated ToGenerated() const;
  void RefuseExtras() const;
  void RefuseMisplaced() const;

  CLI::App root_;
  bool version_ = false;
  std::string generate_;
  std::unique_ptr<CommandGrammar> task_;
  std::vector<std::unique_ptr<CommandGrammar>> commands_;
};

Grammar::Grammar() : root_(kAbout, "dtrain"), task_(NewTaskGrammar(&root_)) {
  root_.allow_extras();
  root_.formatter(std::make_shared<Usage>());  // before the commands are added: they inherit it
  root_.require_subcommand(0, 1);
  root_.add_flag("-V,--version", version_, "Print version, commit and libraries, and end");
  root_.add_option("--generate", generate_, "Print the man page, or completions for a shell, and end")
      ->type_name("man|bash|zsh|fish");
  for (auto* const new_command :
       {NewLocalGrammar, NewLaunchGrammar, NewGuardGrammar, NewCheckGrammar, NewInitGrammar, NewPlanGrammar,
        NewKeygenGrammar, NewStatusGrammar, NewReportGrammar, NewInspectGrammar, NewEvalGrammar,
        NewPredictGrammar, NewExportGrammar, NewImportGrammar, NewSynthGrammar, NewDevicesGrammar,
        NewHelpGrammar, NewVersionGrammar}) {
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
  return ToArguments();
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

std::vector<const CommandGrammar*> Grammar::ShownCommands() const {
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

Arguments Grammar::ToArguments() const {
  RefuseExtras();
  if (version_) return ShowVersion{};
  RefuseMisplaced();
  if (!generate_.empty()) return ToGenerated();
  return Parsed() != nullptr ? Parsed()->ToArguments() : task_->ToArguments();
}

ShowGenerated Grammar::ToGenerated() const {
  const std::vector<std::string> known = {"man", "bash", "zsh", "fish"};
  if (std::count(known.begin(), known.end(), generate_) > 0) return {generate_};
  throw UserError("--generate {}: must be {}.", generate_, ListText(known, "or"));
}

void Grammar::RefuseExtras() const {
  const std::vector<std::string> extras = root_.remaining(/*recurse=*/true);
  if (extras.empty()) return;
  const CLI::App* const command = Parsed() != nullptr ? Parsed()->app() : &root_;
  if (IsMeantAsConfig(extras.front(), *command)) {
    throw UserError("{0}: a config file needs its option here. Write --config {0}{1}.", extras.front(),
                    command == &root_ ? ", or dtrain local " + extras.front() : "");
  }
  if (std::filesystem::is_regular_file(extras.front()) && command->get_option_no_throw("--data") != nullptr) {
    throw UserError("{0}: a table needs its option here. Write --data {0}.", extras.front());
  }
  const std::string name = extras.front().substr(0, extras.front().find('='));
  std::vector<std::string> known;
  const bool is_option = name.compare(0, 1, "-") == 0;
  if (is_option) {
    for (const CLI::Option* option : command->get_options()) {
      if (!option->get_group().empty()) known.push_back(option->get_name());
    }
  } else {
    for (const CommandGrammar* each : ShownCommands()) known.push_back(each->app()->get_name());
  }
  const bool is_command = !is_option && command == &root_;
  std::string close = is_command ? CommandMeantBy(name) : "";
  if (close.empty()) close = ClosestName(name, known);
  std::string hint;
  if (is_option && command->get_option_no_throw("--set") != nullptr &&
      (close.empty() || EditDistance(name, close) > 1)) {
    hint = KeyHint(name, extras);
  } else if (is_command && close.empty() && std::filesystem::is_regular_file(extras.front())) {
    hint = fmt::format(" If it is a table, dtrain init {} writes a config for it.", extras.front());
  }
  if (hint.empty() && !close.empty()) hint = " Did you mean " + close + "?";
  const char* what = is_option ? "unknown option" : "unknown command or argument";
  throw UserError("{}: {}.{} See {} --help.", name, what, hint,
                  command == &root_ ? "dtrain" : "dtrain " + command->get_name());
}

// Without this, `dtrain --config F local` would silently drop F.
void Grammar::RefuseMisplaced() const {
  if (Parsed() == nullptr) return;
  const std::string command = Parsed()->app()->get_name();
  for (const CLI::Option* option : root_.get_options()) {
    if (option->count() == 0) continue;
    throw UserError("{}: stands before \"{}\". Write dtrain {} {} ...", option->get_name(), command, command,
                    option->get_name());
  }
}

CommandLineText Grammar::Describe() const {
  CommandLineText text{TextOf(root_), {}};
  for (const CommandGrammar* command : ShownCommands()) text.commands.push_back(TextOf(*command->app()));
  return text;
}

}  // namespace

bool IsConfigName(const std::string& word) {
  const std::filesystem::path ending = std::filesystem::path(word).extension();
  return (ending == ".yaml" || ending == ".yml") && word.front() != '-';
}

void TakeConfig(const std::string& path, ConfigArguments* config) {
  if (!config->path.empty()) {
    throw UserError("{}: a second config file, beside {}. Leave one of them out.", path, config->path);
  }
  config->path = path;
}

void AddConfigArgument(CLI::App* app, ConfigArguments* config) {
  app->add_option_function<std::string>(
         "config", [config](const std::string& path) { TakeConfig(path, config); },
         "The YAML file, as with --config")
      ->type_name("");
}

void AddQuietFlag(CLI::App* app, bool* quiet) {
  app->add_flag("-q,--quiet", *quiet, "Print errors only, and not the result either");
}

void AddJsonFlag(CLI::App* app, bool* json, const char* in_place_of) {
  app->add_flag("--json", *json, fmt::format("One JSON document in place of {}", in_place_of));
}

void AddTableOptions(CLI::App* app, std::string* path, std::string* label) {
  app->add_option("table", *path, "A table of text: CSV or with other delimiters, plain or gzip")
      ->type_name("");
  app->add_option("--label", *label, "The column to predict: its name, or its number from 0")
      ->type_name("COLUMN");
}

void AddConfigOptions(CLI::App* app, ConfigArguments* config) {
  app->add_option("-c,--config", config->path, "The YAML file that describes model, data and cluster")
      ->type_name("FILE");
  // One value per flag: the help of a list option would promise several.
  app->add_option_function<std::string>(
         "--set", [config](const std::string& set) { config->sets.push_back(set); },
         "Beats the file's value; repeatable. VALUE is YAML")
      ->type_name("KEY=VALUE")
      ->trigger_on_parse();
  app->add_flag("--dump-config", config->dump, "Print the effective YAML and end");
}

void AddResultOption(CLI::App* app, std::string* path, const char* what) {
  app->add_option("--result", *path, what)->type_name("FILE");
}

void AddRunOption(CLI::App* app, ConfigArguments* config) {
  app->add_option_function<std::string>(
         "--run", [config](const std::string& path) { config->sets.push_back(SetText("run.dir", path)); },
         "The directory of the run, for its model, logs, curves and result; none: there is none")
      ->type_name("DIR");
}

void AddWorkersOption(CLI::App* app, std::string* text) {
  app->add_option("--workers", *text, "How many workers; as the file says, else 2")->type_name("N");
}

void AddSizeOptions(CLI::App* app, SizeTexts* texts) {
  app->add_option("--ps", texts->ps, "How many ps; as the file says, else 1")->type_name("N");
  AddWorkersOption(app, &texts->workers);
}

ClusterSize ParseSize(const SizeTexts& texts) {
  ClusterSize size;
  if (!texts.ps.empty()) size.ps = ParseNumber("--ps", texts.ps, 1, "1");
  if (!texts.workers.empty()) size.workers = ParseNumber("--workers", texts.workers, 1, "2");
  return size;
}

void AddCheckpointArgument(CLI::App* app, std::string* path) {
  app->add_option("path", *path, "A checkpoint, or a directory of checkpoints")->type_name("");
}

void AddCheckpointOptions(CLI::App* app, CheckpointArguments* checkpoint) {
  AddCheckpointArgument(app, &checkpoint->path);
  app->add_flag("--best", checkpoint->best,
                "The directory's best one, which eval.keep_best kept; the default if there is one");
  app->add_flag("--newest", checkpoint->newest, "The directory's newest one, also if there is a best one");
}

void RequireConfig(const ConfigArguments& config) {
  if (!config.path.empty()) return;
  throw UserError("--config is missing: no YAML file to read. Try --config configs/quickstart_digits.yaml.");
}

const std::string& RequireCheckpoint(const char* command, const std::string& path) {
  const bool names_best = std::filesystem::path(path).filename() == "best";  // a checkpoint.dir's
  const bool config = IsConfigName(path);
  const bool may_be_foreign = std::string_view(command) == "inspect" && !config;  // the command looks into it
  if (std::filesystem::is_regular_file(path) && !names_best && !may_be_foreign) {
    throw UserError(
        "{0} {1}: a {2}, and {0} takes a model: the directory of a run, such as runs/NAME, or a checkpoint. "
        "dtrain {3} {1} {4}.",
        command, path, config ? "config" : "file", config ? "local" : "check",
        config ? "trains one" : "shows what is in a table");
  }
  if (!path.empty()) return path;
  throw UserError("{0}: which checkpoint? Name one, or a directory of them: dtrain {0} run/ckpt.", command);
}

namespace {

template <typename Number>
Number ParseAs(const std::string& option, const std::string& text, Number min, const char* example) {
  Number value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || value < min) {
    throw UserError("{} {}: must be a whole number >= {}. Try {} {}.", option, text, min, option, example);
  }
  return value;
}

}  // namespace

int ParseNumber(const std::string& option, const std::string& text, int min, const char* example) {
  return ParseAs(option, text, min, example);
}

int64_t ParseCount(const std::string& option, const std::string& text, int64_t min, const char* example) {
  return ParseAs(option, text, min, example);
}

void AddSchedulerOptions(CLI::App* app, SchedulerTexts* texts, const char* ps) {
  app->add_option("--from", texts->from, "Where the cluster and this task's place in it come from")
      ->type_name("slurm|tf_config|mpi");
  app->add_option("--ps", texts->ps, ps)->type_name("N");
  app->add_option("--base-port", texts->base_port,
                  "With --from slurm or mpi: the port of the first process of each host; 9000")
      ->type_name("PORT");
}

std::optional<SchedulerArguments> ParseSchedulerOptions(const SchedulerTexts& texts) {
  if (texts.from.empty()) {
    for (const auto& [option, text] :
         {std::pair("--ps", texts.ps), std::pair("--base-port", texts.base_port)}) {
      if (text.empty()) continue;
      throw UserError("{} {}: goes with --from slurm and --from mpi. Add one of them, or leave it out.",
                      option, text);
    }
    return std::nullopt;
  }
  SchedulerArguments from;
  from.scheduler = SchedulerNamed(texts.from);
  if (from.scheduler == Scheduler::kTfConfig && !(texts.ps + texts.base_port).empty()) {
    throw UserError(
        "{}: has no effect with --from tf_config, where TF_CONFIG has all addresses. Leave it out.",
        texts.ps.empty() ? "--base-port" : "--ps");
  }
  if (!texts.ps.empty()) from.options.ps = ParseNumber("--ps", texts.ps, 1, "1");
  if (!texts.base_port.empty()) {
    from.options.base_port = ParseNumber("--base-port", texts.base_port, 1, "9000");
    if (*from.options.base_port > kLastPort) {
      throw UserError("--base-port {}: must be at most {}. Try --base-port {}.", texts.base_port, kLastPort,
                      kDefaultBasePort);
    }
  }
  return from;
}

Arguments ParseCommandLine(int argc, const char* const* argv) { return Grammar().Parse(argc, argv); }

CommandLineText DescribeCommandLine() { return Grammar().Describe(); }

}  // namespace dtrain
