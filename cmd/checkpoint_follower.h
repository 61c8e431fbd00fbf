// CheckpointFollower: the checkpoints of a directory one after the other, as they come. It looks at names
// twice a second: notices of changes do not cross a network's file system. Owner: RunEvalCommand. Thread:
// one.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cmd/error_lines.h"
#include "cmd/signal_pipe.h"
#include "trainer/checkpoint/checkpoint_directory.h"

namespace dtrain {

class CheckpointFollower {
 public:
  CheckpointFollower(const std::string& directory, SignalPipe& signals, const ErrorLines& errors)
      : directory_(directory), signals_(signals), errors_(errors) {}

  // Those that are there now count as another run's: how many.
  int64_t PassOver();
  // The path of the oldest that is newer than the one before, or that a new run has written in an emptied
  // directory; waits for it. Unset: `patience` has passed, or a signal has come. Warns of each that cannot be
  // read, and leaves out what has made room for another.
  std::optional<std::string> Next(milliseconds patience);
  // Looks whether one has come; 0: none.
  int signal();

 private:
  std::optional<ListedCheckpoint> OldestNew();
  std::vector<ListedCheckpoint> List();

  CheckpointDirectory directory_;
  SignalPipe& signals_;
  const ErrorLines& errors_;
  int signal_ = 0;
  int64_t last_ = 0;                // sequence of the one before
  std::vector<std::string> names_;  // that were there when nothing new was
  std::set<std::string> told_;      // warnings
};

}  // namespace dtrain
