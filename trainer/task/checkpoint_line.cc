#include "trainer/task/checkpoint_line.h"

#include <fmt/format.h>

#include "base/names.h"

namespace dtrain {
namespace {

std::string WhenText(const CheckpointConfig& config) {
  const std::string by_time = config.every_secs > 0 ? fmt::format(" every {} s", config.every_secs) : "";
  const std::string by_steps =
      config.every_steps > 0 ? fmt::format(" every {}", Plural(config.every_steps, "global step")) : "";
  if (by_time.empty() && by_steps.empty()) return " at the start and at the end";
  return by_time + (by_time.empty() || by_steps.empty() ? "" : " and") + by_steps;
}

}  // namespace

std::string CheckpointLine(const Config& config) {
  const CheckpointConfig& checkpoint = config.checkpoint;
  if (checkpoint.dir.empty()) {
    return "no checkpoint.dir: a lost ps or a signal ends the run with nothing saved";
  }
  return fmt::format("checkpoints: {}{}, the newest {}{} kept", checkpoint.dir, WhenText(checkpoint),
                     checkpoint.keep == 1 ? "one" : fmt::format("{}", checkpoint.keep),
                     config.eval.keep_best  ? " and the best are"
                     : checkpoint.keep == 1 ? " is"
                                            : " are");
}

}  // namespace dtrain
