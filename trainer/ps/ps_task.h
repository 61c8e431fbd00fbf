// PsTask: what one ps process is given. Plain data.
#pragma once

#include <functional>

#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "net/channel.h"
#include "trainer/config/config.h"
#include "trainer/device/device_store.h"
#include "trainer/model/layout.h"

namespace dtrain {

// All of it outlives the ps.
struct PsTask {
  const Config& config;
  TaskId self;  // index 0 coordinates, others join ps 0
  const Layout& layout;
  net::Channel& channel;  // bound already
  net::Transport& transport;
  ExitHooks& hooks;
  Logger& log;
  std::function<void(TaskId)> on_lost;     // called with each task that is given up; may be empty
  std::function<void(ExitCode)> on_abort;  // of a ps i > 0: the run has failed or was stopped; may be empty
  std::function<void()> on_begun;          // of ps 0: called when the workers start; may be empty
  const StopRequest* stop = nullptr;       // null: nobody asks this task to stop
  DeviceStore* store = nullptr;            // where the parameters stay on a device; null: here
};

}  // namespace dtrain
