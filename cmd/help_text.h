// The prose of --help. The lists of options come from the options themselves (command_line.cc).
#pragma once

namespace dtrain {

constexpr char kAbout[] =
    "dtrain trains models with parameter servers (ps) and workers, as one YAML file describes them.\n"
    "This form runs one task of the cluster; the same file goes to every machine.";

constexpr char kMainFooter[] =
    R"(Examples:
  dtrain local --config configs/quickstart_digits.yaml             a whole cluster on this machine
  dtrain --config cluster.yaml --role ps --index 0                 one task of a real one
  dtrain --config cluster.yaml --role worker --index 1 --set train.steps=1000
  dtrain --config cluster.yaml --dump-config                       the file with all defaults filled in

Exit codes:
  0 done   1 internal error, local I/O, or ended by a signal with nothing saved
  2 usage, config or data   3 diverged   4 a peer was lost or a deadline passed
  130 SIGINT, 143 SIGTERM: a checkpoint was saved, and the whole run ended

docs/config.md explains every key of the file.)";

constexpr char kLocalAbout[] = "Run the whole cluster on this machine, as child processes on free ports";

constexpr char kLocalFooter[] =
    R"(Examples:
  dtrain local --config configs/first_cluster.yaml
  dtrain local --config configs/quickstart_digits.yaml --ps 2 --workers 3 --result result.json
  dtrain local --config configs/quickstart_digits.yaml --in-process --set train.steps=20

The addresses in the file are not used.
A task that dies or hangs is started again up to failure.restarts times. After that the others are ended too, and
the last lines are what the first that failed said last, the logs (log.dir), and who it was and why it ended. The
exit code is that task's own; 4 when a signal killed it. Ctrl-C and SIGTERM go to all tasks, which save and end: 130
and 143, or 1 when nothing was saved. A second one ends all at once.)";

constexpr char kCheckAbout[] = "Check the file and the data without running, and show what they come to";

constexpr char kCheckFooter[] =
    R"(Examples:
  dtrain check --config cluster.yaml
  dtrain check --config cluster.yaml --set 'cluster.ps=[a:9001, b:9001]'

Reads the file and all data. Exit code 0 when both are good, else 2: of the file every error is told, of
the data the first.)";

constexpr char kPlanAbout[] = "Show which ps will hold what, in bytes, and what will travel to and from it";

constexpr char kPlanFooter[] =
    R"(Examples:
  dtrain plan --config cluster.yaml
  dtrain plan --config cluster.yaml --set placement.policy=round_robin

Reads no more of the data than their shape.)";

constexpr char kInspectAbout[] = "Verify checkpoints, and show what is in them";

constexpr char kInspectFooter[] =
    R"(Examples:
  dtrain inspect run/ckpt                      all that are in checkpoint.dir, and the newest good one in full
  dtrain inspect run/ckpt/step-000012000       one of them

Reads every byte. Exit code 0 when all that was named is good; 2 when it is damaged, or no checkpoint.)";

constexpr char kEvalAbout[] = "Evaluate a checkpoint on the data of its run, or on others, without a cluster";

constexpr char kEvalFooter[] =
    R"(Examples:
  dtrain eval run/ckpt                         the newest good one that is in checkpoint.dir
  dtrain eval run/ckpt/step-000012000          one of them
  dtrain eval run/ckpt --set data.test.path=more.csv --result eval.json

Without --config the file is the config.yaml that was saved with the checkpoint. Evaluates on the set of eval.on as
the chief does at the end of a run. Exit code 2 when the checkpoint is damaged, or of another model.)";

constexpr char kDevicesAbout[] = "Show the processor and the GPUs that a worker can compute on here";

constexpr char kDevicesFooter[] =
    R"(Examples:
  dtrain devices
  dtrain devices --json
  CUDA_VISIBLE_DEVICES=2,3 dtrain devices      only these two, which are then 0 and 1

The number of a GPU is what device.ids takes: CUDA's own, among those that CUDA_VISIBLE_DEVICES leaves; an empty
CUDA_VISIBLE_DEVICES leaves none. Where there is no GPU, or none can be used, a line says why. Exit code 0 with and
without a GPU.)";

}  // namespace dtrain
