#include "cmd/models/models.h"

#include <fmt/core.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/names.h"
#include "base/signals.h"
#include "cmd/common/arguments.h"
#include "cmd/common/report.h"
#include "cmd/common/signal_pipe.h"
#include "cmd/models/checkpoint_model.h"
#include "cmd/models/evaluation.h"
#include "cmd/models/output_text.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_errors.h"
#include "trainer/checkpoint/checkpoint_names.h"
#include "trainer/config/config.h"
#include "trainer/config/load.h"
#include "trainer/export/output_file.h"
#include "trainer/order/held_out.h"
#include "trainer/order/positions.h"
#include "trainer/result/run_summary.h"
#include "trainer/summary/summary.h"

namespace dtrain {
namespace {

constexpr milliseconds kPollInterval{500};

// Thrown when a signal arrives during an evaluation.
struct Signalled {};

milliseconds Ms(double seconds) { return milliseconds(static_cast<int64_t>(seconds * 1000)); }

// Writes a table of the groups, with tabs. In their texts tabs, ends of lines and backslashes are escaped.
void WriteGroups(const GroupFigures& figures, const std::string& path) {
  OutputFile file(path);
  std::string text = "group\trows\tpositives\tauc\n";
  for (size_t i = 0; i < figures.groups.size(); ++i) {
    for (const char c : figures.names[i]) {
      const size_t escaped = std::string_view("\t\n\r\\").find(c);
      text += escaped == std::string_view::npos ? std::string(1, c) : std::string({'\\', "tnr\\"[escaped]});
    }
    const GroupRanking& group = figures.groups[i];
    text += fmt::format("\t{}\t{}\t{}\n", group.rows, group.positives,
                        group.auc ? fmt::format("{}", *group.auc) : "");
    if (text.size() < (1 << 16)) continue;
    file.Write(text);
    text.clear();
  }
  file.Write(text);
  file.Finish();
}

// Returns the settings that are known before there is a checkpoint.
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
  return LoadConfig(arguments.path, arguments.sets, LoadOptions::WithoutCluster());
}

// Evaluator: evaluates checkpoints as the arguments of dtrain eval ask, on the same devices each time.
class Evaluator {
 public:
  Evaluator(const EvalArguments& arguments, NewRuntime new_runtime, const ErrorLines& errors)
      : arguments_(arguments), new_runtime_(new_runtime), errors_(errors) {}

  Config ConfigOf(const CheckpointReader& checkpoint) const;
  // Evaluates on the set of eval.on. `between_batches` may throw.
  EvaluationOutcome Evaluate(const Config& config, CheckpointReader* checkpoint,
                             const std::function<void()>& between_batches);
  // Prints the figures on one set or on both; with --follow, on one line.
  // What was not used of the rows is told once, there and in the result.
  void Print(const std::vector<EvaluationOutcome>& outcomes, ResultFile* result);
  // Returns the summary for --result.
  RunSummary SummaryOf(const std::vector<EvaluationOutcome>& outcomes) const;

 private:
  void ChooseOnce(const Config& config);

  const EvalArguments& arguments_;
  const NewRuntime new_runtime_;
  const ErrorLines& errors_;
  std::unique_ptr<gpu::cuda::Runtime> runtime_;
  DeviceChoice devices_;
  std::set<std::string> warnings_{""};  // those that were told
};

Config Evaluator::ConfigOf(const CheckpointReader& checkpoint) const {
  Config config = ConfigFor(checkpoint, arguments_.config);
  EvaluateOn(arguments_.data, &config);
  return config;
}

void Evaluator::ChooseOnce(const Config& config) {
  if (runtime_ != nullptr) return;
  runtime_ = new_runtime_();
  devices_ = ChooseDevices(config, *runtime_);
  if (devices_.warn) errors_.Print(devices_.why_cpu);
}

EvaluationOutcome Evaluator::Evaluate(const Config& config, CheckpointReader* checkpoint,
                                      const std::function<void()>& between_batches) {
  ChooseOnce(config);
  if (config.eval.on == EvalOn::kValidation) {
    errors_.Print(OtherHeldOutLine(*checkpoint, config), LogLevel::kWarning);
  }
  return EvaluateCheckpoint(config, devices_, checkpoint, between_batches, arguments_.threshold,
                            arguments_.data.empty() ? "data.test" : "--data", arguments_.by);
}

void Evaluator::Print(const std::vector<EvaluationOutcome>& outcomes, ResultFile* result) {
  for (const EvaluationOutcome& outcome : outcomes) {
    if (!warnings_.insert(outcome.warning).second) continue;
    errors_.Print(outcome.warning, LogLevel::kWarning);
    result->Note([&](RunAccount& account) { account.AddWarning("eval", outcome.warning); });
  }
  if (!arguments_.groups.empty()) WriteGroups(*outcomes.front().groups, arguments_.groups);
  if (arguments_.result == kStandardOutput) return;
  fmt::print("{}", arguments_.json     ? EvaluationJson(outcomes)
                   : arguments_.follow ? EvaluationLine(outcomes.front())
                                       : EvaluationText(outcomes));
  if (std::fflush(stdout) != 0) throw OutputFailed(errno);
}

RunSummary Evaluator::SummaryOf(const std::vector<EvaluationOutcome>& outcomes) const {
  RunSummary summary = EvaluationSummary(outcomes);
  summary.device = DevicesName(devices_);
  summary.wall_s = SecondsSinceStart();
  return summary;
}

// CheckpointFollower: returns the checkpoints of a directory one after the other, as a run writes them. It
// polls names twice a second, because notifications of changes do not cross network file systems.
class CheckpointFollower {
 public:
  CheckpointFollower(const std::string& directory, SignalPipe& signals, const ErrorLines& errors)
      : directory_(directory), signals_(signals), errors_(errors) {}

  // Treats the present checkpoints as another run's. Returns their number.
  int64_t SkipExisting();
  // Waits for the oldest checkpoint that is newer than the last one, or that a new run has written into an
  // emptied directory. Returns its path; nothing if `timeout` has passed or a signal has arrived. Warns of
  // each checkpoint that cannot be read, and skips those that were removed to make room.
  std::optional<std::string> Next(milliseconds timeout);
  // Returns the signal that has arrived; 0 if none has.
  int signal();

 private:
  std::optional<ListedCheckpoint> OldestNew();
  std::vector<ListedCheckpoint> List();

  CheckpointDirectory directory_;
  SignalPipe& signals_;
  const ErrorLines& errors_;
  int signal_ = 0;
  int64_t last_ = 0;                // sequence number of the last one
  std::vector<std::string> names_;  // the names when there was nothing new
  std::set<std::string> warned_;    // the warnings printed so far
};

int CheckpointFollower::signal() {
  if (signal_ == 0) signal_ = signals_.Take();
  return signal_;
}

int64_t CheckpointFollower::SkipExisting() {
  const std::vector<ListedCheckpoint> listed = List();
  if (!listed.empty()) last_ = listed.front().sequence;
  return static_cast<int64_t>(listed.size());
}

std::optional<std::string> CheckpointFollower::Next(milliseconds timeout) {
  const TimePoint deadline = Clock::now() + timeout;
  while (signal() == 0) {
    if (const std::optional<ListedCheckpoint> next = OldestNew()) {
      last_ = next->sequence;
      return directory_.PathOf(next->name);
    }
    const TimePoint now = Clock::now();
    if (now >= deadline) break;
    pollfd wake{signals_.fd(), POLLIN, 0};
    poll(&wake, 1, PollTimeout(std::min(deadline, now + kPollInterval)));
  }
  return std::nullopt;
}

std::optional<ListedCheckpoint> CheckpointFollower::OldestNew() {
  std::vector<std::string> names = directory_.Names();
  if (names == names_) return std::nullopt;
  std::optional<ListedCheckpoint> oldest;
  for (const ListedCheckpoint& each : List()) {  // newest first
    if (each.sequence > last_ && !IsReplacedName(each.name)) oldest = each;
  }
  if (!oldest) names_ = std::move(names);
  return oldest;
}

std::vector<ListedCheckpoint> CheckpointFollower::List() {
  std::vector<std::string> unreadable;
  std::vector<ListedCheckpoint> listed = directory_.List(&unreadable);
  for (const std::string& line : unreadable) {
    const std::string warning = fmt::format("warning: {}/{}; skipped", directory_.path(), line);
    if (warned_.insert(warning).second) errors_.Print(warning);
  }
  // The newest checkpoint is never removed alone. So all were removed, and a new run counts from 1.
  if (unreadable.empty() && !listed.empty() && listed.front().sequence < last_) last_ = 0;
  return listed;
}

// FollowRun: dtrain eval --follow: evaluates each checkpoint of a run as it is written, until the run's last
// one.
class FollowRun {
 public:
  // Throws UserError if the path is a single checkpoint, or if the arguments do not make sense with --follow.
  FollowRun(const EvalArguments& arguments, Evaluator* evaluator, const ErrorLines& errors,
            ResultFile* result);

  // Returns the exit code: 0, or that of a signal. Throws PeerLost if no new checkpoint arrives in time.
  int Run();

 private:
  void Evaluate(const std::string& path);
  void Skip(const std::string& path, const UserError& error) const;
  void Note(const Config& config, const Manifest& manifest);
  [[noreturn]] void GiveUp(milliseconds timeout);
  int Stop();

  const EvalArguments& arguments_;
  const std::string directory_;
  Evaluator& evaluator_;
  const ErrorLines& errors_;
  ResultFile& result_;
  SignalPipe signals_;
  CheckpointFollower follower_;
  const Config first_;     // the settings known before there is a checkpoint
  FailureConfig failure_;  // of the last checkpoint
  std::optional<EvaluationCurves> curves_;
  std::optional<RunSummary> summary_;  // of the last evaluated checkpoint; unset: there was none
  milliseconds saved_{0};
  milliseconds longest_gap_{0};  // between two checkpoints
  bool over_ = false;            // the last checkpoint was the run's last
};

FollowRun::FollowRun(const EvalArguments& arguments, Evaluator* evaluator, const ErrorLines& errors,
                     ResultFile* result)
    : arguments_(arguments),
      directory_(CheckpointsOf(arguments.checkpoint.path)),
      evaluator_(*evaluator),
      errors_(errors),
      result_(*result),
      signals_({SIGINT, SIGTERM, SIGHUP}),
      follower_(directory_, signals_, errors),
      first_(FirstConfig(arguments.config)),
      failure_(first_.failure) {
  if (!arguments.data.empty() && IsStandardInput(arguments.data[0])) {
    throw UserError("--data -: standard input is read once, and --follow evaluates many times. Name a file.");
  }
  if (arguments.checkpoint.best || arguments.checkpoint.newest) {
    throw UserError("--{}: --follow evaluates each checkpoint as it comes. Leave one of them out.",
                    arguments.checkpoint.best ? "best" : "newest");
  }
  if (!IsOneCheckpoint(directory_)) return;
  throw UserError("{}: one checkpoint, and --follow waits for new ones. Name checkpoint.dir of the run.",
                  directory_);
}

int FollowRun::Run() {
  milliseconds timeout = Ms(failure_.startup_timeout_s);
  errors_.Print(fmt::format("follows {}: waits up to {:g} s for the first checkpoint", directory_,
                            failure_.startup_timeout_s));
  if (first_.checkpoint.resume == "never") {
    if (const int64_t others = follower_.SkipExisting()) {
      errors_.Print(fmt::format("checkpoint.resume is never: {} here already, not evaluated",
                                Plural(others, "checkpoint")));
    }
  }
  while (true) {
    // The last checkpoint of a run that was resumed since is not its last one.
    const std::optional<std::string> path = follower_.Next(over_ ? milliseconds(0) : timeout);
    if (follower_.signal() != 0) return Stop();
    if (!path && over_) break;
    if (!path) GiveUp(timeout);
    try {
      Evaluate(*path);
    } catch (const Signalled&) {
      return Stop();
    } catch (const UserError& error) {
      Skip(*path, error);
    }
    if (summary_) timeout = Ms(failure_.wait_s) + 2 * longest_gap_;
  }
  return static_cast<int>(result_.Write(*summary_) ? ExitCode::kOk : ExitCode::kInternal);
}

// A checkpoint that is gone was removed because of checkpoint.keep.
void FollowRun::Skip(const std::string& path, const UserError& error) const {
  if (IsGone(path)) return;
  if (dynamic_cast<const BadCheckpoint*>(&error) == nullptr) throw;
  errors_.Print(fmt::format("warning: {}; skipped", error.what()));
}

void FollowRun::Evaluate(const std::string& path) {
  CheckpointReader checkpoint(path);
  const Config config = evaluator_.ConfigOf(checkpoint);
  failure_ = config.failure;
  std::vector<EvaluationOutcome> outcomes;
  outcomes.push_back(evaluator_.Evaluate(config, &checkpoint, [this] {
    if (follower_.signal() != 0) throw Signalled();
  }));
  const EvaluationOutcome& outcome = outcomes.front();
  evaluator_.Print(outcomes, &result_);
  Note(config, checkpoint.manifest());
  summary_ = evaluator_.SummaryOf(outcomes);
  if (!curves_ && !config.summary.dir.empty()) curves_.emplace(config.summary.dir + "/eval");
  if (curves_) curves_->Add(outcome.set, outcome.global_step, outcome.reported);
}

// Notes when the next checkpoint is due, and whether there will be one.
void FollowRun::Note(const Config& config, const Manifest& manifest) {
  const milliseconds saved(manifest.saved_unix_ms);
  longest_gap_ = std::max(longest_gap_, Ms(config.checkpoint.every_secs));
  if (summary_) longest_gap_ = std::max(longest_gap_, saved - saved_);
  saved_ = saved;
  Positions positions;
  over_ = (config.train.steps && manifest.step >= *config.train.steps) ||
          (FromJson(manifest.positions, &positions) && AllEpochsTaken(positions, config));
}

void FollowRun::GiveUp(milliseconds timeout) {
  const double seconds = static_cast<double>(timeout.count()) / 1000;
  if (!summary_) {
    throw PeerLost(
        "{}: no new checkpoint in {:g} s (failure.startup_timeout_s). Has the run begun, with this "
        "checkpoint.dir?",
        directory_, seconds);
  }
  const PeerLost lost(
      "{}, global step {}: no newer checkpoint in {:g} s (failure.wait_s, and twice the time between two), "
      "and the run was not at its end. See its log, and start this again when it goes on.",
      directory_, summary_->global_step, seconds);
  result_.WriteEnding(EndingOf(lost), *summary_);
  throw lost;
}

int FollowRun::Stop() {
  const int exit_code = static_cast<int>(StopExitCode(follower_.signal()));
  result_.WriteEnding({"stopped", exit_code, {}}, summary_.value_or(RunSummary()));
  errors_.Print(fmt::format("ended by {}", SignalName(follower_.signal())));
  return exit_code;
}

// Whether the user asks for one set.
bool NamesSet(const EvalArguments& arguments) {
  const std::vector<std::string>& sets = arguments.config.sets;
  return !arguments.data.empty() || std::any_of(sets.begin(), sets.end(), [](const std::string& set) {
    return set.compare(0, 8, "eval.on=") == 0;
  });
}

// Adds the outcome on the set that eval.on does not name, if there is one and its rows can be read.
void EvaluateOther(Config config, CheckpointReader* checkpoint, Evaluator* evaluator,
                   const ErrorLines& errors, std::vector<EvaluationOutcome>* outcomes) {
  const bool test = config.eval.on == EvalOn::kValidation;
  config.eval.on = test ? EvalOn::kTest : EvalOn::kValidation;
  if (test ? config.data.test.format == DataFormat::kNone : !HoldsOut(config.data)) return;
  try {
    outcomes->push_back(evaluator->Evaluate(config, checkpoint, [] {}));
  } catch (const UserError& error) {
    errors.Print(fmt::format("not evaluated on the {} rows: {}", test ? "test" : "held-out", error.what()));
  }
}

int EvaluateOne(const EvalArguments& arguments, Evaluator* evaluator, const ErrorLines& errors,
                ResultFile* result) {
  bool is_kept = true;
  const int code = WithModel(arguments.checkpoint, arguments.config, errors,
                             [&](CheckpointReader* checkpoint, Config config) {
                               EvaluateOn(arguments.data, &config);
                               std::vector<EvaluationOutcome> outcomes;
                               outcomes.push_back(evaluator->Evaluate(config, checkpoint, [] {}));
                               if (!NamesSet(arguments) && arguments.by.empty())
                                 EvaluateOther(config, checkpoint, evaluator, errors, &outcomes);
                               evaluator->Print(outcomes, result);
                               is_kept = result->Write(evaluator->SummaryOf(outcomes));
                             });
  return is_kept ? code : static_cast<int>(ExitCode::kInternal);
}

}  // namespace

int RunEvalCommand(const EvalArguments& arguments, NewRuntime new_runtime, ErrorLines& errors) {
  ResultFile result(arguments.result, errors);
  try {
    Evaluator evaluator(arguments, new_runtime, errors);
    const bool follow = arguments.follow && !arguments.config.dump;
    return follow ? FollowRun(arguments, &evaluator, errors, &result).Run()
                  : EvaluateOne(arguments, &evaluator, errors, &result);
  } catch (const Failure& failure) {
    result.WriteEnding(EndingOf(failure));
    throw;
  }
}

}  // namespace dtrain
