// PsTask: the arguments of one ps. Plain data.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "net/channel.h"
#include "trainer/config/cluster_config.h"
#include "trainer/device/device_store.h"
#include "trainer/model/layout.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

class PsSummary;

// Everything here outlives the ps.
struct PsTask {
  const Config& config;
  TaskId self;  // ps 0 leads the run; any other ps joins it
  const Layout& layout;
  net::Channel& channel;  // already bound
  net::Transport& transport;
  ExitHooks& hooks;
  Logger& log;
  std::function<void(TaskId, const std::string& why)>
      on_lost;  // called with each task that is given up; may be empty
  // ps i > 0: the run has failed or was stopped; may be empty.
  std::function<void(ExitCode, const std::string& why)> on_abort;
  // ps 0: called when the workers start; may be empty.
  std::function<void(const RunIdentity&)> on_begun;
  const StopRequest* stop = nullptr;  // null: nobody asks this task to stop
  DeviceStore* store = nullptr;       // the parameters stay on this device; null: in host memory
  std::string status_token = {};      // ps 0, without keys: lets an operator ask; empty: nobody may
  // ps 0: called each second with StatusJson(); may be empty.
  std::function<void(std::string)> on_status = {};
  // Who leads: called as often with what the run has reached, once it has begun; may be empty.
  std::function<void(const RunSummary&)> on_reached = {};
  // A ps: returns the tasks whose processes its parent has seen killed since the last call, and how. Called
  // with each tick; may be empty.
  std::function<std::vector<std::pair<TaskId, std::string>>()> take_killed = {};
  // ps 0: where checkpoints go if checkpoint.dir is gone and cannot be made anew; empty: nowhere.
  std::string run_directory = {};
  // A supervisor has started all tasks, and signals all of them.
  bool supervised = false;
  PsSummary* summary = nullptr;  // ps 0 with summary.dir: its curves
};

}  // namespace dtrain
