// RunEvents: what happened in a run and when, from the log files of its tasks, text or JSON, and from its
// result. Thread: any; free functions.
#pragma once

#include <string>
#include <vector>

#include "cmd/common/run_files.h"

namespace dtrain {

enum class RunEventKind { kStart, kCheckpoint, kWarning, kLoss, kRecovery, kError, kEnd };

struct RunEvent {
  double wall_s = 0;  // seconds since 1970
  RunEventKind kind = RunEventKind::kStart;
  std::string task;
  std::string text;
};

// "checkpoints": the name of a lane of the time line.
const char* LaneName(RunEventKind kind);

struct RunEvents {
  static constexpr size_t kMaxEvents = 1000;

  std::vector<RunEvent> events;       // by time; what several tasks say in the same words is there once
  std::vector<std::string> problems;  // sentences on what was left out
};

RunEvents EventsOf(const RunFiles& run);

// The event of a line of a log file. Returns false if it is not one.
bool EventOfLine(const std::string& line, RunEvent* event);

}  // namespace dtrain
