// Arguments: the parsed command line, one struct for each command. cmd/grammar fills them without looking at
// the config; main() passes each to its command.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "trainer/config/cluster_config.h"
#include "trainer/env/assignment.h"

namespace dtrain::gpu::cuda {
class Runtime;
}  // namespace dtrain::gpu::cuda

namespace dtrain {

// NewRuntime: makes the runtime for GPUs. main() passes it to the commands that compute. A command calls it
// when it begins to compute, under a deadline; a ps never calls it.
using NewRuntime = std::unique_ptr<gpu::cuda::Runtime> (*)();

// ShowText: prints a text and does nothing else; for --help.
struct ShowText {
  std::string text;
};

// ShowVersion: --version
struct ShowVersion {};

// ShowGenerated: --generate
struct ShowGenerated {
  std::string what;  // man, bash, zsh or fish
};

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

// TaskArguments: dtrain --config F --role R --index I, or --from S in place of role and index
struct TaskArguments {
  ConfigArguments config;
  std::optional<SchedulerArguments> from;
  std::optional<TaskId> task;      // unset only with `from` and with config.dump
  std::vector<std::string> notes;  // the first lines of the log
  std::string result;              // --result; empty: none; "-": standard output
  bool quiet = false;              // standard error gets errors only
  // These are set by a parent of tasks only.
  int listening_fd = -1;         // an open descriptor
  int keys_fd = -1;              // an open descriptor with the keys of this task
  bool reports = false;          // standard output carries the report to the parent (report.h)
  bool relay_live = false;       // the parent draws a live line, which worker 0 tells it
  bool brief = false;            // standard error gets no details; the log file has them
  bool end_told = false;         // the parent tells how the run ended, once for all tasks
  std::string status_directory;  // of a ps 0: the run's, which the parent has made; empty: none
  std::string start_id;          // RunDirectory::Writer
  bool named_run = false;        // dtrain has made up the name of the run's directory
};

// ClusterSize: --ps and --workers. They override the cluster of the file.
struct ClusterSize {
  std::optional<int> ps;
  std::optional<int> workers;
};

// LocalArguments: dtrain local
struct LocalArguments {
  ConfigArguments config;
  ClusterSize size;
  bool in_process = false;
  std::string result;
  bool quiet = false;
};

// LaunchArguments: dtrain launch
struct LaunchArguments {
  ConfigArguments config;
  std::string result;
  bool dry_run = false;
  bool fetch = false;  // the checkpoints are brought here at the end
  bool quiet = false;
};

// GuardArguments: dtrain guard, which only `dtrain launch` runs, on a task's machine
struct GuardArguments {
  std::string directory;
  std::string config;  // the path of the task's config
  double silence_s = 5;
  bool kept_alive = false;        // a launcher sends alive lines, so silence counts from the start
  bool keys = false;              // the launcher sends the keys of the task first
  bool saves = false;             // ps 0: when the launcher is gone, the run is saved first
  std::vector<std::string> task;  // the other arguments of the task
};

// CheckArguments: dtrain check
struct CheckArguments {
  ConfigArguments config;
  ClusterSize size;  // not together with `from`
  std::optional<SchedulerArguments> from;
  bool json = false;
};

// CheckTableArguments: dtrain check TABLE
struct CheckTableArguments {
  std::string path;   // a table of text, or "-"
  std::string label;  // a column's name or number; empty: the command chooses
  bool json = false;
};

// InitArguments: dtrain init
struct InitArguments {
  std::string path;   // a table of text
  std::string label;  // a column's name or number; empty: the command chooses
  std::string test;   // a table of other rows; empty: a share of the rows is held out
  std::string out;    // the config to write; "-": standard output; empty: by the table's name
};

// SynthArguments: dtrain synth
struct SynthArguments {
  std::string name;  // linear, digits, criteo, libsvm or vw
  int64_t rows = 0;
  int64_t first = 0;  // the number of the first row
  uint64_t seed = 1;
  std::string out;          // empty: standard output
  int64_t features = 1;     // linear; libsvm and vw: of a row
  int64_t width = 1000000;  // libsvm, vw: of all rows
  bool header = false;      // criteo: CSV with names
  bool tfrecord = false;    // criteo: records
  bool truth = false;       // criteo, libsvm, vw: the true model's figures on standard error
};

// PlanArguments: dtrain plan
struct PlanArguments {
  ConfigArguments config;
  ClusterSize size;
  bool json = false;
};

// KeygenArguments: dtrain keygen
struct KeygenArguments {
  ConfigArguments config;
  ClusterSize size;
  std::string out;                   // the directory of the keys
  std::vector<std::string> replace;  // "worker 1": whose keys get a successor
};

// InspectArguments: dtrain inspect
struct InspectArguments {
  std::string path;  // a checkpoint, or a directory of them
  bool json = false;
  int64_t weights = 0;            // so many of the largest, in place of all that is in it
  std::vector<std::string> data;  // rows with the texts of their features; empty: data.train
};

// CheckpointArguments: which checkpoint a command takes. In a directory that is the best one if a run kept it
// (eval.keep_best), else the newest.
struct CheckpointArguments {
  std::string path;     // a checkpoint, or a directory of them
  bool best = false;    // the best one, or an error
  bool newest = false;  // the newest one in any case
};

// EvalArguments: dtrain eval
struct EvalArguments {
  CheckpointArguments checkpoint;
  ConfigArguments config;         // without a path: the config that was saved with the checkpoint
  std::vector<std::string> data;  // the user's own paths, as data.test.path; empty: the rows of the run
  std::string result;
  bool json = false;                // one JSON document in place of the tables
  bool follow = false;              // evaluates each new checkpoint until the run has ended
  std::optional<double> threshold;  // class 1 of two from this probability on
  std::string by;                   // a column; empty: there is no AUC by group
  std::string groups;               // the file of its groups; empty: none
};

// PredictArguments: dtrain predict
struct PredictArguments {
  CheckpointArguments checkpoint;
  ConfigArguments config;
  std::vector<std::string> data;    // the user's own paths, as data.test.path
  std::string out;                  // empty: standard output
  std::vector<std::string> keep;    // columns that go through to the predictions
  int64_t skip_bad = 0;             // rows that may be left out
  std::string format;               // csv or jsonl; empty: the format of the input
  bool raw = false;                 // the model's outputs in place of classes and probabilities
  int64_t why = 0;                  // so many of the largest contributions of each row
  std::optional<double> threshold;  // as for eval
};

// ExportArguments: dtrain export
struct ExportArguments {
  CheckpointArguments checkpoint;
  ConfigArguments config;
  std::string to;  // safetensors, npz, onnx, tf, tsv or liblinear; empty: by the ending of `out`
  std::string out;
  bool dense = false;    // a table as safetensors with all its rows
  bool numeric = false;  // an ONNX graph begins with features, and not with the table's columns
  int64_t parts = 1;     // of a table as safetensors: so many files
  std::string since;     // of a table: what has changed since this checkpoint, a path, a name or a step
  std::vector<std::string> maps;          // of a checkpoint of TensorFlow: "theirs=ours", in order
  std::string maps_file;                  // with more of them, as YAML; empty: none
  std::vector<std::string> vocabularies;  // of a checkpoint of TensorFlow: "column=file"
  std::string inputs;  // columns in the order of the first layer there: "age,color"; empty: by its name
};

// ImportArguments: dtrain import
struct ImportArguments {
  std::string path;  // the tensor file
  ConfigArguments config;
  std::string out;                        // a directory of checkpoints
  std::vector<std::string> maps;          // "theirs=ours", in order
  std::string maps_file;                  // with more of them, as YAML; empty: none
  std::vector<std::string> vocabularies;  // "column=file"
  std::string inputs;      // columns in the order of the first layer there: "age,color"; empty: by its name
  bool transpose = false;  // all matrices of the file are [outputs, inputs]
};

// DevicesArguments: dtrain devices
struct DevicesArguments {
  bool json = false;
};

// StatusArguments: dtrain status
struct StatusArguments {
  std::string run;    // the directory of a run or of runs, or the address of a ps 0
  std::string token;  // the file of the token, for an address; empty: none
  std::string keys;   // the directory with the status key; empty: the run has no keys, or its config names it
  bool json = false;
  bool watch = false;  // shows it again each second, until the run ends
};

// ReportArguments: dtrain report
struct ReportArguments {
  std::vector<std::string> runs;  // directories of runs, or of such directories
  std::string out;                // the file to write; "-": standard output; empty: by what is written
  std::string by;                 // the figure that makes a run the best one; empty: the command chooses
  bool csv = false;               // the table of the runs in place of a page
  bool json = false;              // the same as a JSON document
};

using Arguments =
    std::variant<ShowText, ShowVersion, ShowGenerated, TaskArguments, LocalArguments, LaunchArguments,
                 GuardArguments, CheckArguments, CheckTableArguments, InitArguments, SynthArguments,
                 PlanArguments, KeygenArguments, InspectArguments, EvalArguments, PredictArguments,
                 ExportArguments, ImportArguments, DevicesArguments, StatusArguments, ReportArguments>;

}  // namespace dtrain
