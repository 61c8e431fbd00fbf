// The table's rows of how the tasks of a run work: placement, device, evaluation, hooks, failures,
// checkpoints, summaries, network, log and launch.
#include "base/log.h"
#include "trainer/config/field_row.h"

namespace dtrain {
namespace {

constexpr Scope kRun = Scope::kRun;
constexpr Scope kTask = Scope::kTask;
constexpr Limits kFromZero = {0};
constexpr Limits kFromOne = {1};
constexpr double kMaxSeconds = 1e6;
constexpr double kLargestDevice = 1023;

std::vector<Field> PlacementFields() {
  return {
      Choice(DT_KEY(placement.policy), kRun,
             {{"bytes", PlacementPolicy::kBytes},
              {"round_robin", PlacementPolicy::kRoundRobin},
              {"pin", PlacementPolicy::kPin}},
             "bytes: split so that every ps holds nearly the same; round_robin: whole variables in turn; "
             "pin: whole variables where placement.pin says."),
      Row(DT_KEY(placement.pin), FieldType::kPins, kRun,
          "Which ps holds a variable: \"weights/W1=0\"; \"biases/*=1\" stands for all names that begin so. "
          "The first that fits counts; the rest go to the ps with the fewest bytes.")
          .Try("[\"weights/W1=0\"]")
          .Required()
          .OnlyWith("placement.policy", {"pin"}),
      Flag(DT_KEY(placement.log), kTask,
           "Print at the start which ps holds what, and what of a step runs where."),
  };
}

std::vector<Field> DeviceFields() {
  return {
      Choice(DT_KEY(device.kind), kTask,
             {{"auto", DeviceKind::kAuto}, {"cpu", DeviceKind::kCpu}, {"cuda", DeviceKind::kCuda}},
             "What a worker computes on. auto: the GPUs of device.ids where all of them are there and cuBLAS "
             "is, else the processor; cuda: these GPUs. A ps in a process of its own never touches a GPU.")
          .OtherNames({{"gpu", "cuda"}}),
      Number(DT_KEY(device.ids), kTask, {0, kLargestDevice},
             "The devices of a worker: GPUs as CUDA numbers those that CUDA_VISIBLE_DEVICES leaves (dtrain "
             "devices lists them), or groups of threads of the processor. With several, each takes a batch "
             "of train.batch_size in every step, and the gradient is the mean over all their rows (towers, "
             "docs/training.md). Give all workers the same number.")
          .Unit("ids")
          .Try("[0, 1]"),
      Flag(DT_KEY(device.soft_placement), kTask,
           "Where device.kind is cuda and a GPU or cuBLAS is missing: true warns and takes the processor; "
           "false ends with exit code 2. auto never needs a GPU.")
          .OnlyWith("device.kind", {"cuda"}),
      Number(DT_KEY(device.memory_fraction), kTask, {0, 1, true},
             "The share of each GPU's memory that one worker may take at most; with --in-process all tasks "
             "together. cuBLAS and the CUDA runtime take some more.")
          .Unit("of the memory")
          .Try("0.5"),
      Flag(DT_KEY(device.tf32), kTask,
           "Products by the tensor cores of a GPU with 10 bits of mantissa: faster, and results agree with "
           "those of a processor to 3 digits only.")
          .OnlyWith("device.kind", {"auto", "cuda"}),
      Number(DT_KEY(device.threads), kTask, {1, 1024},
             "Threads of one task's arithmetic on its processor: a worker's products, and in sync mode a "
             "ps's sums "
             "of large gradients. Must be 1 where device.ids has several.")
          .Unit("threads"),
  };
}

std::vector<Field> RunningFields() {
  return {
      Choice(DT_KEY(eval.on), kRun, {{"test", EvalOn::kTest}, {"validation", EvalOn::kValidation}},
             "What eval.every_steps evaluates on. test: data.test; validation: the rows held out by "
             "data.validation, and the default where there are some. At the end both are evaluated."),
      Number(DT_KEY(eval.every_steps), kRun, kFromZero,
             "The worker of the lowest index that has the rows evaluates the weights that it has every N of "
             "its local steps; 0: not before the end.")
          .Unit("local steps"),
      Flag(DT_KEY(eval.at_end), kRun, "Evaluate when training is over."),
      Choice(DT_KEY(eval.by), kRun, {{"chief", EvalBy::kChief}, {"all", EvalBy::kAll}},
             "Who evaluates at the end: chief: the worker of the lowest index that has the rows; all: every "
             "worker besides, with the weights that it has."),
      Choice(DT_KEY(eval.metric), kRun,
             {{"loss", EvalMetric::kLoss},
              {"auc", EvalMetric::kAuc},
              {"accuracy", EvalMetric::kAccuracy},
              {"rmse", EvalMetric::kRmse},
              {"deviance", EvalMetric::kDeviance}},
             "What makes an evaluation better than another one, for eval.patience and eval.keep_best: a "
             "smaller loss, rmse or deviance (model.loss), or a larger auc or accuracy."),
      Number(
          DT_KEY(eval.patience), kRun, kFromZero,
          "After so many evaluations of eval.every_steps in a row that are not better (eval.metric) the run "
          "ends early; 0: never.")
          .Unit("evaluations"),
      Flag(DT_KEY(eval.keep_best), kRun,
           "Save the weights of each evaluation that is better than all before (eval.metric), exactly those "
           "that were evaluated, and keep the last of them beside checkpoint.keep."),
      Choice(
          DT_KEY(hooks.stop_on_nan), kRun,
          {{"true", NonFinite::kStop}, {"false", NonFinite::kApply}, {"skip", NonFinite::kSkip}},
          "Check every loss and every gradient, at the worker and at the ps, and, where one is not finite, "
          "end the run with exit code 3 (true), or leave out this gradient: its worker sends nothing of it, "
          "and its step counts as one of no rows (skip). false: do not check.")
          .OtherNames({{"yes", "true"}, {"on", "true"}, {"no", "false"}, {"off", "false"}}),
      Number(DT_KEY(hooks.skip_limit), kRun, kFromOne,
             "A worker leaves out so many gradients in a row; if the next is not finite either, the run ends "
             "with exit code 3.")
          .Unit("gradients")
          .OnlyWith("hooks.stop_on_nan", {"skip"}),
      Number(DT_KEY(hooks.log_every_secs), kTask, {0, kMaxSeconds},
             "A row of the table of training every so many seconds; 0: none by time. Where it is left out, "
             "rows go to the log file only while a terminal shows the live line.")
          .Unit("seconds")
          .Try("10")
          .Unset("10; none if log_every_steps or log_every_epochs is above 0"),
      Number(DT_KEY(hooks.log_every_steps), kTask, kFromZero, "A row every N local steps; 0: none by steps.")
          .Unit("local steps"),
      Number(DT_KEY(hooks.log_every_epochs), kTask, kFromZero, "A row every N epochs; 0: none by epochs.")
          .Unit("epochs"),
      Number(DT_KEY(hooks.count_every_steps), kTask, kFromZero,
             "A line with global and local steps a second every N local steps; 0: none.")
          .Unit("local steps"),
      Flag(DT_KEY(hooks.progressive), kTask,
           "Of ps 0: add up the loss of all rows, of each before the model has learnt from it, and log the "
           "mean each time the number of rows has doubled; true where it is left out with sparse rows."),
      Number("hooks.stop_at_step", DT_AT(train.steps), kRun, kFromOne, "Another name for train.steps.")
          .Unit("global steps")
          .Try("1000")
          .Unset("no limit")
          .AliasOf("train.steps"),
      Number(DT_KEY(failure.detect_s), kRun, {0.1, kMaxSeconds},
             "A task that has not been heard, or has done nothing, for so many seconds is lost.")
          .Unit("seconds"),
      Number(DT_KEY(failure.startup_timeout_s), kRun, {0, kMaxSeconds, true},
             "How many seconds the tasks wait for one another at the start.")
          .Unit("seconds"),
      Choice(DT_KEY(failure.worker_lost), kRun,
             {{"continue", WorkerLost::kContinue}, {"wait", WorkerLost::kWait}, {"fail", WorkerLost::kFail}},
             "When a worker is lost during the run. continue: it goes on without it; wait: it does not end, "
             "and sync has no round, until it is back; fail: the run ends with exit code 4. With data.split: "
             "feed the loss of worker 0 ends the run, and so does that of the last worker."),
      Choice(DT_KEY(failure.ps_lost), kRun, {{"wait", PsLost::kWait}, {"fail", PsLost::kFail}},
             "When a ps is lost during the run. wait: until it is back; then all go on from the newest "
             "checkpoint, which needs checkpoint.dir, unless it has a replica (failure.replicas); fail: the "
             "run ends with exit code 4."),
      Number(DT_KEY(failure.replicas), kRun, {0, 1},
             "1: what a ps has is also in the memory of the next ps. Any one task may be lost: a ps goes on "
             "from there when it is back, and no step is undone (docs/operations.md). It needs two ps or "
             "more, takes twice the memory, and slows each step.")
          .Unit("replicas"),
      Number(DT_KEY(failure.replica_check), kRun, kFromZero,
             "How many pieces of each replica are compared with the ps that it is of, a minute; a difference "
             "ends the run with exit code 1. 0: none.")
          .Unit("pieces a minute"),
      Number(DT_KEY(failure.wait_s), kRun, {0, kMaxSeconds, true},
             "How many seconds a run waits for a lost task before it ends with exit code 4.")
          .Unit("seconds"),
      Number(
          DT_KEY(failure.restarts), kTask, kFromZero,
          "How often `dtrain local` and `dtrain launch` start each task again that has failed or was lost. "
          "Where it is set, the run also does not end while a lost worker with steps left may still come.")
          .Unit("restarts"),
      Choice(DT_KEY(failure.on_sigterm), kTask,
             {{"save_and_end", OnSigterm::kSaveAndEnd}, {"leave", OnSigterm::kLeave}},
             "What SIGTERM and SIGHUP do. save_and_end: a checkpoint, and the whole run ends with exit code "
             "143; leave: only this task goes, if it is a worker other than worker 0."),
      Number(DT_KEY(failure.grace_s), kRun, {0, kMaxSeconds, true},
             "How many seconds a run has to save and end after SIGTERM, SIGHUP or SIGINT.")
          .Unit("seconds"),
      Number(DT_KEY(failure.peer_lost_exit), kTask, {1, 255},
             "The exit code for a lost peer or a deadline: another than 4 where a scheduler wants it. Those "
             "of other endings (1, 2, 3, 127, 128, 130, 137, 139, 143) are refused.")
          .Try("138"),
  };
}

std::vector<Field> RunDirectoryFields() {
  return {
      Row(DT_KEY(run.dir), FieldType::kOutputPath, kTask,
          "The directory of the run, on the host of ps 0 (docs/operations.md): checkpoints/, logs/, "
          "summaries/, result.json, config.yaml and run.json, where no key or flag names another place. "
          "none: there is none. `--run DIR` is the same.")
          .OrWord(kNoRunDirectory)
          .Try("runs/first")
          .Unset("runs/NAME-TIME, which dtrain makes"),
      Number(
          DT_KEY(run.keep), kTask, kFromOne,
          "When a run is done, so many directories of its config's name stay, of those that dtrain has named "
          "itself. The oldest are removed with their models, each with a line; none in use, and none that "
          "was renamed.")
          .Unit("directories")
          .Try("20")
          .Unset("all that have begun stay"),
      Row(DT_KEY(run.on_end), FieldType::kText, kTask,
          "A command that /bin/sh runs once when the run has ended, however it did: by `dtrain local`, "
          "`dtrain "
          "launch`, or a ps 0 that was started by hand. DTRAIN_STATUS, DTRAIN_EXIT_CODE, DTRAIN_ERROR, "
          "DTRAIN_RUN "
          "and DTRAIN_RESULT tell it how (docs/watching.md).")
          .Try("./tell_me.sh")
          .Unset("none"),
      Number(DT_KEY(run.on_end_timeout_s), kTask, {0, kMaxSeconds, true},
             "How many seconds that command has before it is killed.")
          .Unit("seconds"),
  };
}

std::vector<Field> CheckpointFields() {
  return {
      Row(DT_KEY(checkpoint.dir), FieldType::kOutputPath, kTask,
          "A directory for checkpoints (docs/checkpoint.md), of ps 0; another ps that sees it writes its "
          "part there itself. Without it a lost ps ends the run, unless it has a replica (failure.replicas), "
          "and so does a signal, with nothing saved.")
          .Try("run/ckpt")
          .Unset("checkpoints/ in run.dir; without run.dir none are written"),
      Number(DT_KEY(checkpoint.every_secs), kRun, {0, kMaxSeconds},
             "A checkpoint every N seconds; 0: not by time. One is written at the start, one at the end.")
          .Unit("seconds"),
      Number(DT_KEY(checkpoint.every_steps), kRun, kFromZero,
             "A checkpoint every N global steps; 0: not by steps.")
          .Unit("global steps"),
      Number(DT_KEY(checkpoint.timeout_s), kRun, {0, kMaxSeconds, true},
             "A checkpoint that is not complete after so many seconds is given up. Training goes on; without "
             "its first or its last one the run ends with exit code 1.")
          .Unit("seconds"),
      Number(DT_KEY(checkpoint.keep), kRun, kFromOne, "How many checkpoints are kept: the newest.")
          .Unit("checkpoints"),
      Number(DT_KEY(checkpoint.delta), kRun, kFromZero,
             "After a checkpoint of all rows of a table, so many that have the rows that changed since that "
             "one (docs/checkpoint.md), then one of all rows again; 0: all rows in each.")
          .Unit("checkpoints"),
      Row(DT_KEY(checkpoint.resume), FieldType::kText, kTask,
          "auto: a run begins with the newest complete checkpoint in checkpoint.dir, if there is one; never: "
          "with initial values, or those of checkpoint.start_from; a path: with that checkpoint, or the "
          "newest good one of that directory, or of that run's directory.")
          .Unit("auto, never or a path"),
      Row(DT_KEY(checkpoint.start_from), FieldType::kOutputPath, kTask,
          "A run without a checkpoint of its own begins with the weights and optimizer slots of this one, at "
          "global step 0 and the start of its data (docs/checkpoint.md), as ps 0 sees the path. Of a "
          "directory, of checkpoints or of a run, it is the best one, else the newest.")
          .Try("run/monday")
          .Unset("initial values"),
  };
}

std::vector<Field> SummaryFields() {
  return {
      Row(DT_KEY(summary.dir), FieldType::kOutputPath, kTask,
          "A directory for TensorBoard's event files: of worker 0, and below worker-1/, ..., ps-0/ "
          "(docs/summaries.md).")
          .Try("run/logs")
          .Unset("summaries/ in run.dir; without run.dir none"),
      Number(DT_KEY(summary.every_steps), kTask, kFromZero,
             "A point of each curve every N local steps of the task that writes it; after each 100,000 such "
             "points N doubles, so that files of long runs stay small. 0: not by steps.")
          .Unit("local steps"),
      Number(DT_KEY(summary.every_secs), kTask, {0, kMaxSeconds},
             "A point of each curve also every N seconds; 0: not by time.")
          .Unit("seconds"),
  };
}

std::vector<Field> MetricsFields() {
  return {
      Number(DT_KEY(metrics.port), kTask, {0, 65535},
             "ps 0 tells Prometheus what the run does, at http://BIND:PORT/metrics (docs/watching.md); 0: a "
             "free port, which the log names.")
          .Unit("port")
          .Unset("no port is opened"),
      Row(DT_KEY(metrics.bind), FieldType::kText, kTask,
          "The address of this machine that the port is opened at. One that other machines reach needs "
          "metrics.password, or security.insecure.")
          .Unit("address"),
      Row(DT_KEY(metrics.password), FieldType::kInputPath, kTask,
          "A file that only its owner can read (mode 0600), with the password of the user dtrain for the "
          "port.")
          .Try("metrics.password")
          .Unset("whoever reaches the port may read"),
      Row(DT_KEY(metrics.file), FieldType::kOutputPath, kTask,
          "A file that ps 0 replaces each second, for the textfile collector of node_exporter.")
          .Try("/var/lib/node_exporter/dtrain.prom")
          .Unset("none"),
  };
}

std::vector<Field> HostFields() {
  return {
      Row(DT_KEY(net.bind), FieldType::kAddress, kTask,
          "The address that this task binds, where the cluster's address leads here through a service or "
          "NAT: a ps, or worker 0 with data.split: feed.")
          .Try("\"0.0.0.0:9001\"")
          .Unset("the cluster's address"),
      Number(DT_KEY(net.timeout_ms), kRun, {1, kMaxSeconds * 1000}, "How long an answer may take.")
          .Unit("milliseconds"),
      Number(DT_KEY(net.max_message_mb), kTask, {1, 1e6}, "The largest message that is accepted.")
          .Unit("MiB"),
      Flag(DT_KEY(net.checksum), kRun, "Put a checksum on all tensors and verify it: for finding faults."),
      Choice(
          DT_KEY(net.compress.push), kRun,
          {{"none", net::Compression::kNone},
           {"bf16", net::Compression::kBf16},
           {"int8", net::Compression::kInt8},
           {"topk", net::Compression::kTopk}},
          "In which form gradients travel: bf16 takes half the bytes, int8 a quarter, topk, the 16 largest "
          "of 256 values, a twentieth, of tensors alone. What a form leaves out of a tensor is added to the "
          "worker's next gradient; rows of a table are rounded at random (docs/networks.md)."),
      Choice(DT_KEY(net.compress.pull), kRun,
             {{"none", net::Compression::kNone},
              {"bf16", net::Compression::kBf16},
              {"int8", net::Compression::kInt8}},
             "The same of the weights with which workers take their steps. Those that are evaluated at the "
             "end and saved are never rounded."),
      Row(DT_KEY(log.dir), FieldType::kOutputPath, kTask, "A directory: each task writes its log there too.")
          .Try("run/logs")
          .Unset("logs/ in run.dir; without run.dir no file"),
      Choice("log.format", DT_AT(log.json), kTask, {{"text", false}, {"json", true}},
             "Log lines as text, or as one JSON object each."),
      Choice(DT_KEY(log.level), kTask,
             {{"debug", static_cast<int>(LogLevel::kDebug)},
              {"info", static_cast<int>(LogLevel::kInfo)},
              {"warning", static_cast<int>(LogLevel::kWarning)},
              {"error", static_cast<int>(LogLevel::kError)}},
             "The least important lines that are written."),
      Flag(DT_KEY(security.insecure), kTask,
           "Allow a ps to bind an address that other hosts can reach, without encryption or authentication."),
      Row(DT_KEY(security.keys), FieldType::kInputPath, kTask,
          "The directory of the key files that `dtrain keygen` has made: cluster.keys and the secret key of "
          "this "
          "task. Tasks then prove who they are, and all that travels is encrypted (docs/security.md). auto: "
          "`dtrain launch` makes keys for the run, as it does without this key where tasks listen beyond "
          "this "
          "machine; `dtrain local` needs none.")
          .OrWord("auto")
          .Try("keys")
          .Unset("no keys"),
  };
}

std::vector<Field> LaunchFields() {
  return {
      Row(DT_KEY(launch.hosts), FieldType::kHosts, kTask,
          "For `dtrain launch`: by the name or number that stands in the cluster's addresses, how the tasks "
          "of that machine start (docs/launch.md). user and address: of ssh; directory: where they work; "
          "program: dtrain there; environment: variables; device: keys of `device` that differ there.")
          .Try("{node1: {user: ann, directory: /data/job}}")
          .Unset("as here"),
      Flag(DT_KEY(launch.copy), kTask,
           "`dtrain launch` copies dtrain, the libraries beside it and the config to each machine's "
           "directory first, unless they are there already, and runs that copy."),
      Row(DT_KEY(launch.ssh_config), FieldType::kInputPath, kTask,
          "A configuration file for ssh (ssh -F): ports, keys, jump hosts.")
          .Try("cluster.ssh")
          .Unset("the user's own"),
      Number(DT_KEY(launch.silence_s), kTask, {2, 3600},
             "The connection to a machine is lost after so many seconds of silence; its tasks then end by "
             "themselves within 2 s more.")
          .Unit("seconds"),
  };
}

}  // namespace

std::vector<Field> TaskFields() {
  return Joined({PlacementFields(), DeviceFields(), RunningFields(), RunDirectoryFields(), CheckpointFields(),
                 SummaryFields(), HostFields(), MetricsFields(), LaunchFields()});
}

}  // namespace dtrain
