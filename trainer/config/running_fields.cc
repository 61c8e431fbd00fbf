#include "trainer/config/running_fields.h"

#include "trainer/config/field_row.h"

namespace dtrain {
namespace {

constexpr Scope kRun = Scope::kRun;
constexpr Scope kTask = Scope::kTask;
constexpr Limits kFromZero = {0};
constexpr Limits kFromOne = {1};
constexpr double kMostSeconds = 1e6;

}  // namespace

std::vector<Field> RunningFields() {
  return {
      Choice(DT_KEY(eval.on), kRun, {{"test", EvalOn::kTest}, {"validation", EvalOn::kValidation}},
             "test: data.test; validation: the rows held out by data.validation."),
      Number(DT_KEY(eval.every_steps), kRun, kFromZero,
             "The chief evaluates the weights that it has every N of its local steps; 0: not before the end.")
          .Unit("local steps"),
      Flag(DT_KEY(eval.at_end), kRun, "Evaluate when training is over."),
      Choice(DT_KEY(eval.by), kRun, {{"chief", EvalBy::kChief}, {"all", EvalBy::kAll}},
             "Who evaluates; all: every worker, with the weights that it has."),
      Number(DT_KEY(eval.patience), kRun, kFromZero,
             "After so many evaluations of eval.every_steps in a row without a smaller loss the run ends "
             "early; 0: never.")
          .Unit("evaluations"),
      Flag(DT_KEY(eval.keep_best), kRun,
           "Write a checkpoint after each evaluation of eval.every_steps with the smallest loss so far, and "
           "keep the last of those beside checkpoint.keep."),
      Flag(DT_KEY(hooks.stop_on_nan), kRun,
           "Check every loss and every gradient, at the worker and at the ps, and end the run with "
           "exit code 3 where one is not finite."),
      Number(DT_KEY(hooks.log_every_steps), kTask, kFromZero, "A line every N local steps; 0: none.")
          .Unit("local steps"),
      Number(DT_KEY(hooks.log_every_epochs), kTask, kFromZero, "A line every N epochs; 0: none.")
          .Unit("epochs"),
      Number(DT_KEY(hooks.count_every_steps), kTask, kFromZero,
             "A line with global and local steps a second every N local steps; 0: none.")
          .Unit("local steps"),
      Number(
          "hooks.stop_at_step", [](auto& config) -> auto& { return config.train.steps; }, kRun, kFromOne,
          "Another name for train.steps.")
          .Unit("global steps")
          .Try("1000")
          .Unset("no limit")
          .AliasOf("train.steps"),
      Number(DT_KEY(failure.detect_s), kRun, {0.1, kMostSeconds},
             "A task that has not been heard, or has done nothing, for so many seconds is lost.")
          .Unit("seconds"),
      Number(DT_KEY(failure.startup_timeout_s), kRun, {0, kMostSeconds, true},
             "How many seconds the tasks wait for one another at the start.")
          .Unit("seconds"),
      Choice(
          DT_KEY(failure.worker_lost), kRun,
          {{"continue", WorkerLost::kContinue}, {"wait", WorkerLost::kWait}, {"fail", WorkerLost::kFail}},
          "When a worker is lost during the run. continue: it goes on without it; wait: it does not end, and "
          "sync has no round, until it is back; fail: the run ends with exit code 4. Where the chief is "
          "lost, "
          "continue makes the worker of the lowest index the chief; with data.split: feed the run ends."),
      Choice(DT_KEY(failure.ps_lost), kRun, {{"wait", PsLost::kWait}, {"fail", PsLost::kFail}},
             "When a ps is lost during the run. wait: until it is back; then all go on from the newest "
             "checkpoint, which needs checkpoint.dir; fail: the run ends with exit code 4."),
      Number(DT_KEY(failure.wait_s), kRun, {0, kMostSeconds, true},
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
      Number(DT_KEY(failure.grace_s), kRun, {0, kMostSeconds, true},
             "How many seconds a run has to save and end after SIGTERM, SIGHUP or SIGINT.")
          .Unit("seconds"),
      Number(
          DT_KEY(failure.peer_lost_exit), kTask, {1, 255},
          "The exit code for a lost peer or a deadline: another than 4 where a scheduler wants it. Those of "
          "other endings (1, 2, 3, 127, 128, 130, 137, 139, 143) are refused.")
          .Try("138"),
  };
}

std::vector<Field> CheckpointFields() {
  return {
      Row(DT_KEY(checkpoint.dir), FieldType::kOutputPath, kTask,
          "A directory for checkpoints (docs/checkpoint.md), of ps 0; another ps that sees it writes its "
          "part "
          "there itself. Without it a lost ps ends the run, and so does a signal, with nothing saved.")
          .Try("run/ckpt")
          .Unset("none are written"),
      Number(DT_KEY(checkpoint.every_secs), kRun, {0, kMostSeconds},
             "A checkpoint every N seconds; 0: not by time. One is written at the start, one at the end.")
          .Unit("seconds"),
      Number(DT_KEY(checkpoint.every_steps), kRun, kFromZero,
             "A checkpoint every N global steps; 0: not by steps.")
          .Unit("global steps"),
      Number(DT_KEY(checkpoint.timeout_s), kRun, {0, kMostSeconds, true},
             "A checkpoint that is not complete after so many seconds is given up. Training goes on; without "
             "its first or its last one the run ends with exit code 1.")
          .Unit("seconds"),
      Number(DT_KEY(checkpoint.keep), kRun, kFromOne, "How many checkpoints are kept: the newest.")
          .Unit("checkpoints"),
      Row(DT_KEY(checkpoint.resume), FieldType::kText, kTask,
          "auto: a run begins with the newest complete checkpoint in checkpoint.dir, if there is one; never: "
          "with initial values; a path: with that checkpoint.")
          .Unit("auto, never or a path"),
  };
}

std::vector<Field> SummaryFields() {
  return {
      Row(DT_KEY(summary.dir), FieldType::kOutputPath, kTask,
          "A directory for TensorBoard's event files: chief/, worker-1/, ..., ps-0/ (docs/summaries.md).")
          .Try("run/logs")
          .Unset("none"),
      Number(DT_KEY(summary.every_steps), kTask, kFromZero,
             "A point of each curve every N local steps of the task that writes it; 0: not by steps.")
          .Unit("local steps"),
      Number(DT_KEY(summary.every_secs), kTask, {0, kMostSeconds},
             "A point of each curve also every N seconds; 0: not by time.")
          .Unit("seconds"),
  };
}

}  // namespace dtrain
