#include "cmd/command_line.h"

#include <CLI/CLI.hpp>
#include <charconv>

#include "base/error.h"
#include "cmd/help_text.h"
#include "cmd/version.h"
#include "trainer/config/suggest.h"

namespace dtrain {
namespace {

// A whole number of at least `least`; `option` and `example` for the message.
int ParseNumber(const std::string& option, const std::string& text, int least, const char* example) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || value < least) {
    throw UserError("{} {}: must be a whole number >= {}. Try {} {}.", option, text, least, option, example);
  }
  return value;
}

Role ParseRole(const std::string& text) {
  if (text == "ps") return Role::kPs;
  if (text == "worker") return Role::kWorker;
  throw UserError("--role {}: must be ps or worker.", text);
}

const std::string& CheckpointPath(const char* command, const std::string& path) {
  if (!path.empty()) return path;
  throw UserError("{0}: which checkpoint? Name one, or a directory of them: dtrain {0} run/ckpt.", command);
}

// One command's options as the library fills them: numbers stay text, so that messages are ours.
struct Texts {
  ConfigArguments config;
  std::string role, index, ps, workers, result;
  int listening_fd = -1;
  int result_fd = -1;
  int lost_fd = -1;
  bool relay_live = false;
  bool in_process = false;
};

void AddConfigOptions(CLI::App* app, Texts* texts) {
  app->add_option("--config", texts->config.path, "The YAML file that describes model, data and cluster")
      ->type_name("FILE");
  // One at a time: the help of an option with a list would promise several behind one flag.
  app->add_option_function<std::string>(
         "--set", [texts](const std::string& set) { texts->config.sets.push_back(set); },
         "Beats the file's value; repeatable. VALUE is YAML")
      ->type_name("KEY=VALUE")
      ->trigger_on_parse();
  app->add_flag("--dump-config", texts->config.dump, "Print the effective YAML and end");
}

void AddResultOption(CLI::App* app, Texts* texts,
                     const char* what = "Write what the run came to, as JSON; at every ending") {
  app->add_option("--result", texts->result, what)->type_name("FILE");
}

void AddCheckpointArgument(CLI::App* app, std::string* path) {
  app->add_option("path", *path, "A checkpoint, or a directory of checkpoints")->type_name("");
}

// Builds the whole grammar; owns what the library fills.
class Grammar {
 public:
  Grammar();
  Arguments Parse(int argc, const char* const* argv);

 private:
  Arguments Understand();
  void RefuseExtras();
  void RefuseMisplaced();
  TaskArguments Task() const;
  LocalArguments Local() const;

  CLI::App app_{kAbout, "dtrain"};
  bool version_ = false;
  // The command that was given; null for the form without one.
  const CLI::App* Parsed() const {
    for (const CLI::App* command : commands_) {
      if (command->parsed()) return command;
    }
    return nullptr;
  }

  Texts task_, local_, check_, plan_, eval_;
  CLI::App* local_app_ = nullptr;
  CLI::App* check_app_ = nullptr;
  CLI::App* plan_app_ = nullptr;
  CLI::App* inspect_app_ = nullptr;
  CLI::App* eval_app_ = nullptr;
  CLI::App* devices_app_ = nullptr;
  std::string inspect_path_, eval_path_;
  bool devices_json_ = false;
  std::vector<CLI::App*> commands_;  // all above
};

Grammar::Grammar() {
  app_.footer(kMainFooter);
  app_.allow_extras();
  app_.require_subcommand(0, 1);
  AddConfigOptions(&app_, &task_);
  app_.add_option("--role", task_.role, "What this process is: ps or worker")->type_name("ROLE");
  app_.add_option("--index", task_.index, "Which of them, from 0")->type_name("N");
  AddResultOption(&app_, &task_);
  app_.add_option("--listen-fd", task_.listening_fd)->group("");
  app_.add_option("--result-fd", task_.result_fd)->group("");
  app_.add_option("--lost-fd", task_.lost_fd)->group("");
  app_.add_flag("--relay-live", task_.relay_live)->group("");
  app_.add_flag("--version", version_, "Print version, commit and libraries, and end");

  local_app_ = app_.add_subcommand("local", kLocalAbout);
  local_app_->footer(kLocalFooter);
  AddConfigOptions(local_app_, &local_);
  local_app_->add_option("--ps", local_.ps, "How many ps; as the file says, else 1")->type_name("N");
  local_app_->add_option("--workers", local_.workers, "How many workers; as the file says, else 2")
      ->type_name("N");
  local_app_->add_flag("--in-process", local_.in_process, "Threads of one process in place of processes");
  AddResultOption(local_app_, &local_);

  check_app_ = app_.add_subcommand("check", kCheckAbout);
  check_app_->footer(kCheckFooter);
  AddConfigOptions(check_app_, &check_);

  plan_app_ = app_.add_subcommand("plan", kPlanAbout);
  plan_app_->footer(kPlanFooter);
  AddConfigOptions(plan_app_, &plan_);

  inspect_app_ = app_.add_subcommand("inspect", kInspectAbout);
  inspect_app_->footer(kInspectFooter);
  AddCheckpointArgument(inspect_app_, &inspect_path_);

  eval_app_ = app_.add_subcommand("eval", kEvalAbout);
  eval_app_->footer(kEvalFooter);
  AddCheckpointArgument(eval_app_, &eval_path_);
  AddConfigOptions(eval_app_, &eval_);
  AddResultOption(eval_app_, &eval_, "Write loss, accuracy, step and model_crc, as JSON; at every ending");

  devices_app_ = app_.add_subcommand("devices", kDevicesAbout);
  devices_app_->footer(kDevicesFooter);
  devices_app_->add_flag("--json", devices_json_, "One JSON document in place of the table");
  commands_ = {local_app_, check_app_, plan_app_, inspect_app_, eval_app_, devices_app_};
  for (CLI::App* command : commands_) command->allow_extras();
}

Arguments Grammar::Parse(int argc, const char* const* argv) {
  if (argc <= 1) return ShowText{app_.help()};
  try {
    app_.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return ShowText{Parsed() != nullptr ? Parsed()->help("dtrain") : app_.help()};
  } catch (const CLI::ParseError& error) {
    throw UserError("{}. See dtrain --help.", error.what());
  }
  return Understand();
}

Arguments Grammar::Understand() {
  RefuseExtras();
  if (version_) return ShowText{VersionText()};
  RefuseMisplaced();
  if (devices_app_->parsed()) return DevicesArguments{devices_json_};
  if (inspect_app_->parsed()) return InspectArguments{CheckpointPath("inspect", inspect_path_)};
  if (eval_app_->parsed()) {
    return EvalArguments{CheckpointPath("eval", eval_path_), eval_.config, eval_.result};
  }
  const Texts& texts = local_app_->parsed()   ? local_
                       : check_app_->parsed() ? check_
                       : plan_app_->parsed()  ? plan_
                                              : task_;
  if (texts.config.path.empty()) {
    throw UserError(
        "--config is missing: no YAML file to read. Try --config configs/quickstart_digits.yaml.");
  }
  if (local_app_->parsed()) return Local();
  if (check_app_->parsed()) return CheckArguments{check_.config};
  if (plan_app_->parsed()) return PlanArguments{plan_.config};
  return Task();
}

void Grammar::RefuseExtras() {
  const std::vector<std::string> extras = app_.remaining(/*recurse=*/true);
  if (extras.empty()) return;
  const CLI::App* command = Parsed() != nullptr ? Parsed() : &app_;
  const std::string name = extras.front().substr(0, extras.front().find('='));
  std::vector<std::string> known;
  const bool is_option = name.compare(0, 1, "-") == 0;
  if (is_option) {
    for (const CLI::Option* option : command->get_options()) {
      if (!option->get_group().empty()) known.push_back(option->get_name());
    }
  } else {
    for (const CLI::App* each : commands_) known.push_back(each->get_name());
  }
  const std::string close = ClosestName(name, known);
  const std::string hint = close.empty() ? "" : " Did you mean " + close + "?";
  const char* what = is_option ? "unknown option" : "unknown command or argument";
  throw UserError("{}: {}.{} See {} --help.", name, what, hint,
                  command == &app_ ? "dtrain" : "dtrain " + command->get_name());
}

// `dtrain --config F local` would silently lose F.
void Grammar::RefuseMisplaced() {
  if (Parsed() == nullptr) return;
  const std::string command = Parsed()->get_name();
  for (const CLI::Option* option : app_.get_options()) {
    if (option->count() == 0) continue;
    throw UserError("{}: stands before \"{}\". Write dtrain {} {} ...", option->get_name(), command, command,
                    option->get_name());
  }
}

TaskArguments Grammar::Task() const {
  TaskArguments arguments;
  arguments.config = task_.config;
  arguments.result = task_.result;
  arguments.listening_fd = task_.listening_fd;
  arguments.result_fd = task_.result_fd;
  arguments.lost_fd = task_.lost_fd;
  arguments.relay_live = task_.relay_live;
  if (task_.config.dump && task_.role.empty() && task_.index.empty()) return arguments;
  if (task_.role.empty()) {
    throw UserError(
        "--role is missing: which task is this process? Add --role ps or --role worker, or run "
        "the whole cluster here: dtrain local --config {}.",
        task_.config.path);
  }
  if (task_.index.empty()) {
    throw UserError("--index is missing: which {} is this process? Add --index 0.", task_.role);
  }
  arguments.task = TaskId{ParseRole(task_.role), ParseNumber("--index", task_.index, 0, "0")};
  return arguments;
}

LocalArguments Grammar::Local() const {
  LocalArguments arguments;
  arguments.config = local_.config;
  arguments.in_process = local_.in_process;
  arguments.result = local_.result;
  if (!local_.ps.empty()) arguments.ps = ParseNumber("--ps", local_.ps, 1, "1");
  if (!local_.workers.empty()) arguments.workers = ParseNumber("--workers", local_.workers, 1, "2");
  return arguments;
}

}  // namespace

Arguments ParseCommandLine(int argc, const char* const* argv) { return Grammar().Parse(argc, argv); }

}  // namespace dtrain
