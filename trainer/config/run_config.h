// What a run keeps, measures and shows: run, checkpoint, eval, hooks, summary, log and metrics of the YAML
// file. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/config/choices.h"

namespace dtrain {

// The value of run.dir with which a run has no directory.
constexpr char kNoRunDirectory[] = "none";

// The directory of a run (cmd/common/run_directory.h).
struct RunConfig {
  std::string dir;              // empty: dtrain makes one; kNoRunDirectory: there is none
  std::optional<int64_t> keep;  // how many of a config, of those that dtrain has named, stay; unset: all
  std::string on_end;           // a command for /bin/sh; empty: none
  double on_end_timeout_s = 30;

  bool has_directory() const { return !dir.empty() && dir != kNoRunDirectory; }
};

struct CheckpointConfig {
  std::string dir;              // empty: none are written; loading a file: in run.dir, if there is one
  double every_secs = 600;      // 0: not by time
  int64_t every_steps = 0;      // global steps; 0: not by steps
  double timeout_s = 1800;      // for one of them, from its cut to its name
  int64_t keep = 5;             // the newest ones
  int64_t delta = 0;            // after one of all rows, so many of those that have changed since; 0: none
  std::string resume = "auto";  // auto, never, or the path of a checkpoint or of a directory of them
  std::string start_from;       // a checkpoint, or a directory of them; empty: initial values
};

struct EvalConfig {
  EvalOn on = EvalOn::kTest;
  int64_t every_steps = 0;  // local steps of the chief; 0: none
  bool at_end = true;
  EvalBy by = EvalBy::kChief;
  EvalMetric metric = EvalMetric::kLoss;  // what makes an evaluation better
  int64_t patience = 0;    // evaluations that are not better, after which the run ends; 0: never
  bool keep_best = false;  // the checkpoint of the best evaluation
};

// "auc".
const char* MetricName(EvalMetric metric);
// What evaluations are compared by: the smaller, the better. Its own inverse.
inline double ScoreOf(EvalMetric metric, double figure) {
  const bool larger_is_better = metric == EvalMetric::kAuc || metric == EvalMetric::kAccuracy;
  return larger_is_better ? -figure : figure;
}

constexpr double kLogEverySecs = 10;

struct HooksConfig {
  NonFinite stop_on_nan = NonFinite::kStop;
  int64_t skip_limit = 100;              // of a worker, in a row
  std::optional<double> log_every_secs;  // 0: none; unset: LogEverySecs()
  int64_t log_every_steps = 0;           // local steps; 0: none
  int64_t log_every_epochs = 0;
  int64_t count_every_steps = 0;  // local steps; 0: none
  bool progressive = false;       // loading a file: true for sparse rows

  bool checks_finite() const { return stop_on_nan != NonFinite::kApply; }
  bool skips() const { return stop_on_nan == NonFinite::kSkip; }
  // Whether the user has not said when rows are logged.
  bool HasDefaultRows() const { return !log_every_secs && log_every_steps == 0 && log_every_epochs == 0; }
  // Seconds between rows; 0: none by time.
  double LogEverySecs() const { return HasDefaultRows() ? kLogEverySecs : log_every_secs.value_or(0); }
};

struct SummaryConfig {
  std::string dir;            // empty: no event files
  int64_t every_steps = 100;  // local steps of the task that writes; 0: not by steps
  double every_secs = 0;      // 0: not by time
};

struct LogConfig {
  std::string dir;
  bool json = false;
  int level = 1;  // LogLevel
};

// What ps 0 tells Prometheus (docs/watching.md).
struct MetricsConfig {
  std::optional<int64_t> port;     // unset: none is opened; 0: a free one
  std::string bind = "127.0.0.1";  // the address that the port is opened at
  std::string password;            // a file with the password that readers must have; empty: they need none
  std::string file;                // for the textfile collector of node_exporter; empty: none
};

}  // namespace dtrain
