#include "cmd/follow_run.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

#include "base/error.h"
#include "base/names.h"
#include "base/signals.h"
#include "cmd/checkpoint_argument.h"
#include "trainer/checkpoint/bad_checkpoint.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/config/load.h"
#include "trainer/data/positions.h"

namespace dtrain {
namespace {

// A signal has come in the middle of an evaluation.
struct Signalled {};

milliseconds Ms(double seconds) { return milliseconds(static_cast<int64_t>(seconds * 1000)); }

// What is to be known before there is a checkpoint.
Config FirstConfig(const ConfigArguments& arguments) {
  if (arguments.path.empty()) {
    for (const std::string& set : arguments.sets) {
      if (set.find("startup_timeout_s") == std::string::npos) continue;
      throw UserError(
          "--set {}: is for the wait for the first checkpoint, and the run's config is known only with that "
          "one. Name it with --config.",
          set);
    }
    return Config();
  }
  LoadOptions options;
  options.cluster_optional = true;
  return LoadConfig(arguments.path, arguments.sets, options);
}

}  // namespace

FollowRun::FollowRun(const EvalArguments& arguments, Evaluator* evaluator, const ErrorLines& errors,
                     ResultFile* result)
    : arguments_(arguments),
      directory_(WithoutSlashes(arguments.path)),
      evaluator_(*evaluator),
      errors_(errors),
      result_(*result),
      signals_({SIGINT, SIGTERM, SIGHUP}),
      follower_(directory_, signals_, errors),
      first_(FirstConfig(arguments.config)),
      failure_(first_.failure) {
  if (arguments.data == "-") {
    throw UserError("--data -: standard input is read once, and --follow evaluates many times. Name a file.");
  }
  if (!IsOneCheckpoint(directory_)) return;
  throw UserError("{}: one checkpoint, and --follow waits for new ones. Name checkpoint.dir of the run.",
                  directory_);
}

int FollowRun::Run() {
  milliseconds patience = Ms(failure_.startup_timeout_s);
  errors_.Print(fmt::format("follows {}: waits up to {:g} s for the first checkpoint", directory_,
                            failure_.startup_timeout_s));
  if (first_.checkpoint.resume == "never") {
    if (const int64_t others = follower_.PassOver()) {
      errors_.Print(fmt::format("checkpoint.resume is never: {} here already, not evaluated",
                                Plural(others, "checkpoint")));
    }
  }
  while (true) {
    // The last one of a run that has gone on since then is not the last.
    const std::optional<std::string> path = follower_.Next(over_ ? milliseconds(0) : patience);
    if (follower_.signal() != 0) return Stop();
    if (!path && over_) break;
    if (!path) GiveUp(patience);
    try {
      Evaluate(*path);
    } catch (const Signalled&) {
      return Stop();
    } catch (const UserError& error) {
      Skip(*path, error);
    }
    if (summary_) patience = Ms(failure_.wait_s) + 2 * longest_gap_;
  }
  result_.Write(*summary_);
  return 0;
}

// One that is not there any more was too many for checkpoint.keep.
void FollowRun::Skip(const std::string& path, const UserError& error) const {
  if (IsGone(path)) return;
  if (dynamic_cast<const BadCheckpoint*>(&error) == nullptr) throw;
  errors_.Print(fmt::format("warning: {}; skipped", error.what()));
}

void FollowRun::Evaluate(const std::string& path) {
  CheckpointReader checkpoint(path);
  const Config config = evaluator_.ConfigOf(checkpoint);
  failure_ = config.failure;
  const EvaluationOutcome outcome = evaluator_.Evaluate(config, &checkpoint, /*line=*/true, [this] {
    if (follower_.signal() != 0) throw Signalled();
  });
  Note(config, checkpoint.manifest());
  summary_ = evaluator_.SummaryOf(outcome);
  if (!curves_ && !config.summary.dir.empty()) curves_.emplace(config.summary.dir + "/eval");
  if (curves_) curves_->Add(outcome.global_step, outcome.evaluation, outcome.auc);
}

// When the next one is due, and whether there will be one.
void FollowRun::Note(const Config& config, const Manifest& manifest) {
  const milliseconds saved(manifest.saved_unix_ms);
  longest_gap_ = std::max(longest_gap_, Ms(config.checkpoint.every_secs));
  if (summary_) longest_gap_ = std::max(longest_gap_, saved - saved_);
  saved_ = saved;
  Positions positions;
  over_ = (config.train.steps && manifest.step >= *config.train.steps) ||
          (FromJson(manifest.positions, &positions) && AllEpochsTaken(positions, config));
}

void FollowRun::GiveUp(milliseconds patience) {
  const double seconds = static_cast<double>(patience.count()) / 1000;
  if (!summary_) {
    throw PeerLost(
        "{}: no new checkpoint in {:g} s (failure.startup_timeout_s). Has the run begun, with this "
        "checkpoint.dir?",
        directory_, seconds);
  }
  summary_->status = StatusOf(ExitCode::kPeerLost);
  result_.WriteEnding(*summary_);
  throw PeerLost(
      "{}, global step {}: no newer checkpoint in {:g} s (failure.wait_s, and twice the time between two), "
      "and the run was not at its end. See its log, and start this again when it goes on.",
      directory_, summary_->global_step, seconds);
}

int FollowRun::Stop() {
  if (summary_) {
    summary_->status = "stopped";
    result_.WriteEnding(*summary_);
  } else {
    result_.WriteEnding("stopped");
  }
  errors_.Print(fmt::format("ended by {}", SignalName(follower_.signal())));
  return static_cast<int>(StopExitCode(follower_.signal()));
}

}  // namespace dtrain
