// Reads from the logs of a run (log.format: json) how long each checkpoint was written, and how long the
// steps took meanwhile. Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::bench {

struct LoggedSave {
  int64_t step = 0;
  double begin = 0;  // in seconds of one clock, as all times here
  double end = 0;
  double held_ms = 0;
};

struct LoggedStep {
  int64_t step = 0;
  double begin = 0;
  double end = 0;
};

// Returns the saves in the log of ps 0.
std::vector<LoggedSave> SavesIn(const std::string& log);
// Returns the steps in the log of a worker with hooks.log_every_steps: 1.
std::vector<LoggedStep> StepsIn(const std::string& log);

// StepCost: the effect of saves on the steps of one worker, in milliseconds.
struct StepCost {
  double usual = 0;             // the median of the steps without a save
  double slowest_usual = 0;     // the slowest step without a save, minus that median
  std::vector<double> slowest;  // the same for the slowest step during each save
  std::vector<double> added;    // the total delay of all steps during each save
};

// Each save must overlap a step, and there must be a step without a save.
StepCost CostOf(const std::vector<LoggedSave>& saves, const std::vector<LoggedStep>& steps);

}  // namespace dtrain::bench
