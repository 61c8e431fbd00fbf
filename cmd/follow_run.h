// FollowRun: dtrain eval --follow: each checkpoint of a run evaluated as it comes, until the run's last one.
// Owner: RunEvalCommand. Thread: one.
#pragma once

#include <optional>
#include <string>

#include "base/error.h"
#include "cmd/arguments.h"
#include "cmd/checkpoint_follower.h"
#include "cmd/error_lines.h"
#include "cmd/evaluator.h"
#include "cmd/result_file.h"
#include "trainer/summary/summary.h"

namespace dtrain {

class FollowRun {
 public:
  // Throws UserError where the path is one checkpoint, or the arguments do not go with waiting for more.
  FollowRun(const EvalArguments& arguments, Evaluator* evaluator, const ErrorLines& errors,
            ResultFile* result);

  // Returns the exit code: 0, or that of a signal. Throws PeerLost where nothing new comes.
  int Run();

 private:
  void Evaluate(const std::string& path);
  void Skip(const std::string& path, const UserError& error) const;
  void Note(const Config& config, const Manifest& manifest);
  [[noreturn]] void GiveUp(milliseconds patience);
  int Stop();

  const EvalArguments& arguments_;
  const std::string directory_;
  Evaluator& evaluator_;
  const ErrorLines& errors_;
  ResultFile& result_;
  SignalPipe signals_;
  CheckpointFollower follower_;
  const Config first_;     // as it is known before there is a checkpoint
  FailureConfig failure_;  // of the last one
  std::optional<EvaluationCurves> curves_;
  // Of the last checkpoint that was evaluated; unset: none was.
  std::optional<RunSummary> summary_;
  milliseconds saved_{0};
  milliseconds longest_gap_{0};  // between two checkpoints
  bool over_ = false;            // it was the run's last one
};

}  // namespace dtrain
