// What the logs of a run (log.format: json) tell of its checkpoints: how long each was written, and what the
// steps took meanwhile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::bench {

struct LoggedSave {
  int64_t step = 0;
  double begin = 0;  // seconds of one clock, as all here
  double end = 0;
  double held_ms = 0;
};

struct LoggedStep {
  int64_t step = 0;
  double begin = 0;
  double end = 0;
};

// From the log of ps 0.
std::vector<LoggedSave> SavesIn(const std::string& log);
// From the log of a worker with hooks.log_every_steps: 1.
std::vector<LoggedStep> StepsIn(const std::string& log);

// What saves do to the steps of one worker, in milliseconds.
struct StepCost {
  double usual = 0;             // the median of those without a save
  double slowest_usual = 0;     // how much longer than that the slowest one without a save was
  std::vector<double> slowest;  // the same of those that a save meets, by save
  std::vector<double> added;    // of all steps that a save meets together, by save
};

// Each save has to meet a step, and there has to be a step without one.
StepCost CostOf(const std::vector<LoggedSave>& saves, const std::vector<LoggedStep>& steps);

}  // namespace dtrain::bench
