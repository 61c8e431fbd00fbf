// The commands that run a cluster or look at a config: their options and their help.
#include <utility>

#include "base/error.h"
#include "cmd/grammar/command_grammar.h"

namespace dtrain {
namespace {

constexpr char kTaskFooter[] =
    R"(Examples:
  dtrain local configs/quickstart_digits.yaml                      a whole cluster on this machine
  dtrain --config cluster.yaml --role ps --index 0                 one task of a real one
  dtrain --config cluster.yaml --role worker --index 1 --set train.steps=1000
  srun dtrain --config x.yaml --from slurm --ps 1                  role, index and cluster as Slurm has them
  mpirun -np 3 dtrain --config x.yaml --from mpi --ps 1            the same with mpirun
  dtrain --config cluster.yaml --dump-config                       the file with all defaults filled in

Exit codes:
  0 done   1 internal error, local I/O, or ended by a signal with nothing saved
  2 usage, config or data   3 diverged   4 a peer was lost or a deadline passed
  130 SIGINT, 143 SIGTERM or SIGHUP: a checkpoint was saved, or with checkpoint.dir there was nothing to save yet,
      and the run ended; without checkpoint.dir that is 1

docs/config.md explains every key of the file, docs/schedulers.md --from.)";

Role ParseRole(const std::string& text) {
  if (text == "ps") return Role::kPs;
  if (text == "worker") return Role::kWorker;
  throw UserError("--role {}: must be ps or worker.", text);
}

class TaskGrammar : public CommandGrammar {
 public:
  explicit TaskGrammar(CLI::App* root) : CommandGrammar(root, kTaskFooter) {
    AddConfigOptions(app(), &task_.config);
    app()->add_option("--role", role_, "What this process is: ps or worker")->type_name("ps|worker");
    app()->add_option("--index", index_, "Which of them, from 0")->type_name("N");
    AddSchedulerOptions(app(), &scheduler_);
    AddRunOption(app(), &task_.config);
    AddResultOption(app(), &task_.result);
    AddQuietFlag(app(), &task_.quiet);
    app()->add_option("--listen-fd", task_.listening_fd)->group("");
    app()->add_option("--keys-fd", task_.keys_fd)->group("");
    app()->add_flag("--reports", task_.reports)->group("");
    app()->add_flag("--relay-live", task_.relay_live)->group("");
    app()->add_flag("--brief", task_.brief)->group("");
    app()->add_flag("--end-told", task_.end_told)->group("");
    app()->add_option("--status-dir", task_.status_directory)->group("");
    app()->add_option("--start-id", task_.start_id)->group("");
    app()->add_flag("--named-run", task_.named_run)->group("");
  }

  Arguments ToArguments() const override {
    RequireConfig(task_.config);
    TaskArguments task = task_;
    task.from = ParseSchedulerOptions(scheduler_);
    if (task.from) {
      RefuseBesideFrom();
      return task;
    }
    if (task_.config.dump && role_.empty() && index_.empty()) return task;
    if (role_.empty()) {
      throw UserError(
          "--role is missing: which task is this process? Add --role ps or --role worker, or run "
          "the whole cluster here: dtrain local --config {}.",
          task_.config.path);
    }
    if (index_.empty()) {
      throw UserError("--index is missing: which {} is this process? Add --index 0.", role_);
    }
    task.task = TaskId{ParseRole(role_), ParseNumber("--index", index_, 0, "0")};
    return task;
  }

 private:
  void RefuseBesideFrom() const {
    for (const auto& [option, text] : {std::pair("--role", role_), std::pair("--index", index_)}) {
      if (text.empty()) continue;
      throw UserError("{} {}: --from {} says which task this process is. Leave one of the two out.", option,
                      text, scheduler_.from);
    }
  }

  TaskArguments task_;
  SchedulerTexts scheduler_;
  std::string role_, index_;
};

constexpr char kLocalAbout[] = "Run the whole cluster on this machine, as child processes on free ports";

constexpr char kLocalFooter[] =
    R"(Examples:
  dtrain local configs/first_cluster.yaml
  dtrain local configs/quickstart_digits.yaml --ps 2 --workers 3 --result result.json
  dtrain local configs/quickstart_digits.yaml --in-process --set train.steps=20
  dtrain local configs/quickstart_digits.yaml -q --result - | jq .test_accuracy

The addresses in the file are not used. Model, logs, curves and result are in a new directory, runs/NAME-TIME, or where
--run says; the last line tells it, and how to evaluate the model or to go on.
A task that dies or hangs is started again up to failure.restarts times. After that the others are ended too, and
the last lines are where the logs are (log.dir), and which task failed first, how and why. The exit code is that
task's own; 4 when a signal killed it. Ctrl-C, SIGTERM and SIGHUP go to all tasks, which save and
end: 130 of Ctrl-C, otherwise 143, or 1 when nothing was saved. A second one ends all at once.)";

class LocalGrammar : public CommandGrammar {
 public:
  explicit LocalGrammar(CLI::App* root)
      : CommandGrammar(root->add_subcommand("local", kLocalAbout), kLocalFooter) {
    AddConfigOptions(app(), &local_.config);
    AddConfigArgument(app(), &local_.config);
    AddSizeOptions(app(), &size_);
    app()->add_flag("--in-process", local_.in_process, "Threads of one process in place of processes");
    AddRunOption(app(), &local_.config);
    AddResultOption(app(), &local_.result);
    AddQuietFlag(app(), &local_.quiet);
  }

  Arguments ToArguments() const override {
    RequireConfig(local_.config);
    LocalArguments local = local_;
    local.size = ParseSize(size_);
    return local;
  }

 private:
  LocalArguments local_;
  SizeTexts size_;
};

constexpr char kLaunchAbout[] = "Run the whole cluster, each task where its address says, over ssh";

constexpr char kLaunchFooter[] =
    R"(Examples:
  dtrain launch cluster.yaml --dry-run                   the commands that it would run, one for each task
  dtrain launch cluster.yaml --result result.json
  dtrain launch cluster.yaml --set launch.copy=true --set 'launch.hosts={node1: {directory: /data/job}}'

A task whose address is of this machine runs here, any other over ssh: with your keys, without questions, on hosts
whose keys are known. Output, restarts, signals and exit codes are those of dtrain local. When this command ends,
however, or the connection breaks, the tasks end too, wherever they are. docs/launch.md explains launch.* of the
file and what each message means.)";

class LaunchGrammar : public CommandGrammar {
 public:
  explicit LaunchGrammar(CLI::App* root)
      : CommandGrammar(root->add_subcommand("launch", kLaunchAbout), kLaunchFooter) {
    AddConfigOptions(app(), &launch_.config);
    AddConfigArgument(app(), &launch_.config);
    app()->add_flag("--dry-run", launch_.dry_run,
                    "Print what would be copied and the commands, and start nothing");
    AddRunOption(app(), &launch_.config);
    app()->add_flag("--fetch", launch_.fetch,
                    "Bring the checkpoints too into the run's directory here, at the end");
    AddResultOption(app(), &launch_.result);
    AddQuietFlag(app(), &launch_.quiet);
  }

  Arguments ToArguments() const override {
    RequireConfig(launch_.config);
    return launch_;
  }

 private:
  LaunchArguments launch_;
};

CLI::App* AddHidden(CLI::App* root, const char* name) {
  CLI::App* const app = root->add_subcommand(name, "Of dtrain launch");
  app->group("");
  return app;
}

class GuardGrammar : public CommandGrammar {
 public:
  explicit GuardGrammar(CLI::App* root) : CommandGrammar(AddHidden(root, "guard"), "") {
    app()->add_option("--directory", guard_.directory)->required();
    app()->add_option("--config", guard_.config)->required();
    app()->add_option("--silence-s", guard_.silence_s);
    app()->add_flag("--kept-alive", guard_.kept_alive);
    app()->add_flag("--keys", guard_.keys);
    app()->add_flag("--saves", guard_.saves);
  }

  Arguments ToArguments() const override { return guard_; }
  std::vector<std::string>* rest() override { return &guard_.task; }

 private:
  GuardArguments guard_;
};

constexpr char kCheckAbout[] = "Check the file and the data without running, and show what they come to";

constexpr char kCheckFooter[] =
    R"(Examples:
  dtrain check table.csv                       a first look at a table: columns, faults, and a config for it
  dtrain check table.csv --label churned
  dtrain check cluster.yaml
  dtrain check cluster.yaml --set 'cluster.ps=[a:9001, b:9001]'
  dtrain check cluster.yaml --ps 1 --workers 4
  srun dtrain check x.yaml --from slurm --ps 1

With a table, one pass shows the type, gaps and values of each column, every kind of fault with its first place and
how often it is there, and the YAML that would train on it (dtrain init writes it). Exit code 0, with faults too.

With a config it reads the file and all data. Exit code 0 when both are good, else 2: of the file every error is told,
of the data the first. With --ps and --workers it is about the cluster that dtrain local makes with them; with --from
it shows the cluster, and the place that this process would have in it.)";

class CheckGrammar : public CommandGrammar {
 public:
  explicit CheckGrammar(CLI::App* root)
      : CommandGrammar(root->add_subcommand("check", kCheckAbout), kCheckFooter) {
    AddTableOptions(app(), &table_.path, &table_.label);
    AddConfigOptions(app(), &check_.config);
    AddSchedulerOptions(app(), &scheduler_, "How many ps; with --from slurm or mpi: of the first ranks");
    AddWorkersOption(app(), &workers_);
    AddJsonFlag(app(), &check_.json, "the lines");
  }

  Arguments ToArguments() const override {
    CheckArguments check = check_;
    if (IsConfigName(table_.path)) {
      TakeConfig(table_.path, &check.config);
    } else if (!table_.path.empty()) {
      return ToTable();
    }
    if (!table_.label.empty()) {
      throw UserError("--label {}: goes with a table. Write dtrain check table.csv --label {}.", table_.label,
                      table_.label);
    }
    if (check.config.path.empty()) {
      throw UserError(
          "check: what? Name a YAML file, or for a first look a table: dtrain check x.yaml, dtrain check "
          "table.csv.");
    }
    SchedulerTexts scheduler = scheduler_;
    if (scheduler.from.empty()) {
      check.size = ParseSize({std::exchange(scheduler.ps, ""), workers_});
    } else if (!workers_.empty()) {
      throw UserError("--workers {}: has no effect with --from, which says how many there are. Leave it out.",
                      workers_);
    }
    check.from = ParseSchedulerOptions(scheduler);
    return check;
  }

 private:
  Arguments ToTable() const {
    for (const CLI::Option* option : app()->get_options()) {
      const std::string name = option->get_name();
      if (option->count() == 0 || option->get_positional() || name == "--label" || name == "--json") continue;
      throw UserError("{}: unknown command or argument beside {}, which is about a config.",
                      table_.path.substr(0, table_.path.find('=')), name);
    }
    CheckTableArguments table = table_;
    table.json = check_.json;
    return table;
  }

  CheckTableArguments table_;
  CheckArguments check_;
  SchedulerTexts scheduler_;
  std::string workers_;
};

constexpr char kPlanAbout[] = "Show which ps will hold what, in bytes, and what will travel to and from it";

constexpr char kPlanFooter[] =
    R"(Examples:
  dtrain plan cluster.yaml
  dtrain plan cluster.yaml --set placement.policy=round_robin
  dtrain plan cluster.yaml --ps 16 --workers 64

Reads no more of the data than their shape.)";

class PlanGrammar : public CommandGrammar {
 public:
  explicit PlanGrammar(CLI::App* root)
      : CommandGrammar(root->add_subcommand("plan", kPlanAbout), kPlanFooter) {
    AddConfigOptions(app(), &plan_.config);
    AddConfigArgument(app(), &plan_.config);
    AddSizeOptions(app(), &size_);
    AddJsonFlag(app(), &plan_.json, "the tables");
  }

  Arguments ToArguments() const override {
    RequireConfig(plan_.config);
    PlanArguments plan = plan_;
    plan.size = ParseSize(size_);
    return plan;
  }

 private:
  PlanArguments plan_;
  SizeTexts size_;
};

constexpr char kKeygenAbout[] = "Make the keys of a cluster, so that nobody else can join or listen";

constexpr char kKeygenFooter[] =
    R"(Examples:
  dtrain keygen --config cluster.yaml --out keys
  dtrain keygen --config x.yaml --ps 1 --workers 4 --out keys     a cluster that a scheduler makes
  dtrain keygen --config cluster.yaml --out keys --replace "worker 1"

Makes a key pair for each task of the cluster, one for any other worker and one for status, and the list of their
public keys; prints which machine needs which file. Run again it adds what is missing and leaves the rest.
docs/security.md explains who holds which key and how to change one while a run goes on.)";

class KeygenGrammar : public CommandGrammar {
 public:
  explicit KeygenGrammar(CLI::App* root)
      : CommandGrammar(root->add_subcommand("keygen", kKeygenAbout), kKeygenFooter) {
    AddConfigOptions(app(), &keygen_.config);
    AddSizeOptions(app(), &size_);
    app()->add_option("--out", keygen_.out, "The directory of the keys; it is made")->type_name("DIR");
    app()
        ->add_option_function<std::string>(
            "--replace", [this](const std::string& name) { keygen_.replace.push_back(name); },
            "Make a new key for \"worker 1\", and list it beside the old one; repeatable")
        ->type_name("NAME")
        ->trigger_on_parse();
  }

  Arguments ToArguments() const override {
    RequireConfig(keygen_.config);
    KeygenArguments keygen = keygen_;
    keygen.size = ParseSize(size_);
    if (keygen.out.empty() && !keygen.config.dump) {
      throw UserError("--out is missing: where do the keys go? Try --out keys.");
    }
    return keygen;
  }

 private:
  KeygenArguments keygen_;
  SizeTexts size_;
};

constexpr char kDevicesAbout[] = "Show the processor and the GPUs that a worker can compute on here";

constexpr char kDevicesFooter[] =
    R"(Examples:
  dtrain devices
  dtrain devices --json
  CUDA_VISIBLE_DEVICES=2,3 dtrain devices      only these two, which are then 0 and 1

The number of a GPU is what device.ids takes: CUDA's own, among those that CUDA_VISIBLE_DEVICES leaves; an empty
CUDA_VISIBLE_DEVICES leaves none. Where there is no GPU, or none can be used, a line says why. Exit code 0 with and
without a GPU.)";

class DevicesGrammar : public CommandGrammar {
 public:
  explicit DevicesGrammar(CLI::App* root)
      : CommandGrammar(root->add_subcommand("devices", kDevicesAbout), kDevicesFooter) {
    AddJsonFlag(app(), &devices_.json, "the table");
  }

  Arguments ToArguments() const override { return devices_; }

 private:
  DevicesArguments devices_;
};

}  // namespace

std::unique_ptr<CommandGrammar> NewTaskGrammar(CLI::App* root) { return std::make_unique<TaskGrammar>(root); }

std::unique_ptr<CommandGrammar> NewLocalGrammar(CLI::App* root) {
  return std::make_unique<LocalGrammar>(root);
}

std::unique_ptr<CommandGrammar> NewLaunchGrammar(CLI::App* root) {
  return std::make_unique<LaunchGrammar>(root);
}

std::unique_ptr<CommandGrammar> NewGuardGrammar(CLI::App* root) {
  return std::make_unique<GuardGrammar>(root);
}

std::unique_ptr<CommandGrammar> NewCheckGrammar(CLI::App* root) {
  return std::make_unique<CheckGrammar>(root);
}

std::unique_ptr<CommandGrammar> NewPlanGrammar(CLI::App* root) { return std::make_unique<PlanGrammar>(root); }

std::unique_ptr<CommandGrammar> NewKeygenGrammar(CLI::App* root) {
  return std::make_unique<KeygenGrammar>(root);
}

std::unique_ptr<CommandGrammar> NewDevicesGrammar(CLI::App* root) {
  return std::make_unique<DevicesGrammar>(root);
}

}  // namespace dtrain
