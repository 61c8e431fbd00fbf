#include "base/error.h"
#include "cmd/grammar/commands.h"
#include "cmd/grammar/options.h"
#include "cmd/grammar/scheduler_options.h"

namespace dtrain {
namespace {

constexpr char kFooter[] =
    R"(Examples:
  dtrain local --config configs/quickstart_digits.yaml             a whole cluster on this machine
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
  explicit TaskGrammar(CLI::App* root) : CommandGrammar(root, kFooter) {
    AddConfigOptions(app(), &task_.config);
    app()->add_option("--role", role_, "What this process is: ps or worker")->type_name("ps|worker");
    app()->add_option("--index", index_, "Which of them, from 0")->type_name("N");
    AddSchedulerOptions(app(), &scheduler_);
    AddResultOption(app(), &task_.result);
    app()->add_option("--listen-fd", task_.listening_fd)->group("");
    app()->add_option("--result-fd", task_.result_fd)->group("");
    app()->add_option("--lost-fd", task_.lost_fd)->group("");
    app()->add_flag("--relay-live", task_.relay_live)->group("");
    app()->add_flag("--end-told", task_.end_told)->group("");
  }

  Arguments Understand() const override {
    RequireConfig(task_.config);
    TaskArguments task = task_;
    task.from = UnderstandScheduler(scheduler_);
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

}  // namespace

std::unique_ptr<CommandGrammar> NewTaskGrammar(CLI::App* root) { return std::make_unique<TaskGrammar>(root); }

}  // namespace dtrain
