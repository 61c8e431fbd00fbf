// What the command line says, one struct for each command. cmd/grammar fills them and checks no value against
// the config; main() hands each to its command.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/env/assignment.h"

namespace dtrain::gpu::cuda {
class Runtime;
}  // namespace dtrain::gpu::cuda

namespace dtrain {

// How main() hands the runtime of GPUs to the commands that compute. A command makes it when it begins to
// compute and its end has a deadline; a ps never does.
using NewRuntime = std::unique_ptr<gpu::cuda::Runtime> (*)();

// Text to print, and nothing else to do: --help.
struct ShowText {
  std::string text;
};

// --version
struct ShowVersion {};

struct ConfigArguments {
  std::string path;
  std::vector<std::string> sets;  // "key.path=value", in order
  bool dump = false;              // print the effective YAML and end
};

// --from: the scheduler whose environment names the cluster and this process's task in it.
struct SchedulerArguments {
  Scheduler scheduler = Scheduler::kSlurm;
  SchedulerOptions options;
};

// dtrain --config F --role R --index I, or --from S in place of role and index
struct TaskArguments {
  ConfigArguments config;
  std::optional<SchedulerArguments> from;
  std::optional<TaskId> task;      // unset only with `from` and with config.dump
  std::vector<std::string> notes;  // lines for the log's beginning
  std::string result;              // --result; empty: none
  // From a parent of tasks to its children only.
  int listening_fd = -1;    // an open descriptor
  bool reports = false;     // standard output is the report to the parent (report.h)
  bool relay_live = false;  // the parent draws this task's live line
  bool end_told = false;    // the parent tells how the run ended, once for all
};

// --ps and --workers: the cluster that dtrain local makes, whatever the file says of it.
struct ClusterSize {
  std::optional<int> ps;
  std::optional<int> workers;
};

// dtrain local
struct LocalArguments {
  ConfigArguments config;
  ClusterSize size;
  bool in_process = false;
  std::string result;
};

// dtrain launch
struct LaunchArguments {
  ConfigArguments config;
  std::string result;
  bool dry_run = false;
};

// dtrain guard: from `dtrain launch` to a task's machine only
struct GuardArguments {
  std::string directory;
  std::string config;  // the path of the task's
  double silence_s = 5;
  bool kept_alive = false;        // lines say that somebody is there: their absence counts from the start
  bool saves = false;             // ps 0: it has the run saved when nobody is there any more
  std::vector<std::string> task;  // its other arguments
};

// dtrain check
struct CheckArguments {
  ConfigArguments config;
  ClusterSize size;  // not together with `from`
  std::optional<SchedulerArguments> from;
};

// dtrain plan
struct PlanArguments {
  ConfigArguments config;
  ClusterSize size;
};

// dtrain inspect
struct InspectArguments {
  std::string path;  // a checkpoint, or a directory of them
};

// dtrain eval
struct EvalArguments {
  std::string path;        // a checkpoint, or a directory of them
  ConfigArguments config;  // without a path: the file that was saved with the checkpoint
  std::string data;        // a path, a glob or "-"; empty: the set of eval.on
  std::string result;
  bool json = false;    // one JSON document in place of the tables
  bool follow = false;  // evaluates each new checkpoint until the run has ended
};

// dtrain predict
struct PredictArguments {
  std::string path;  // a checkpoint, or a directory of them
  ConfigArguments config;
  std::string data;    // a path, a glob or "-"
  std::string out;     // empty: standard output
  std::string format;  // csv or jsonl; empty: as the input
};

// dtrain export
struct ExportArguments {
  std::string path;  // a checkpoint, or a directory of them
  ConfigArguments config;
  std::string to;  // safetensors, npz or onnx; empty: as `out` ends
  std::string out;
};

// dtrain import
struct ImportArguments {
  std::string path;  // the tensor file
  ConfigArguments config;
  std::string out;                // a directory of checkpoints
  std::vector<std::string> maps;  // "theirs=ours", in order
  bool transpose = false;         // all matrices of the file are [outputs, inputs]
};

// dtrain devices
struct DevicesArguments {
  bool json = false;
};

using Arguments = std::variant<ShowText, ShowVersion, TaskArguments, LocalArguments, LaunchArguments,
                               GuardArguments, CheckArguments, PlanArguments, InspectArguments, EvalArguments,
                               PredictArguments, ExportArguments, ImportArguments, DevicesArguments>;

}  // namespace dtrain
