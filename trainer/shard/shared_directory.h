// SharedDirectory: how a ps finds out whether it sees the checkpoint.dir of ps 0: ps 0 has a temporary
// directory there for as long as it serves, whose name holds the random id of its run. A ps that finds it
// under its own checkpoint.dir, and can write there, reads and writes its part of checkpoints itself; with
// any other ps 0 exchanges pieces.
// Owner: PsServer on ps 0, Uplink elsewhere. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/config/config.h"
#include "trainer/peer/run_id.h"

namespace dtrain {

// The end of a temporary directory's name: a function of the run and the save, so that all ps know it. Number
// 0 is of no save.
std::string SaveToken(RunId run, uint64_t number);

// ps 0: prepares and claims the directory and shows it to the others; what shows it goes with the object.
// UserError where nothing can be written there, or, of a run that `begins`, where another run does; PeerLost
// where the run goes on and another process has taken the directory.
std::unique_ptr<CheckpointDirectory> ShowSharedDirectory(const Config& config, RunId run, bool begins);

// Another ps.
class SharedDirectory {
 public:
  // `why_not`: why ps 0 is to have the pieces even so; empty: nothing.
  SharedDirectory(const Config& config, TaskId self, std::string why_not, Logger& log)
      : config_(config), self_(self), why_not_(std::move(why_not)), log_(log) {}

  // Whether this ps sees the directory of the ps 0 of this run; unset: not known yet, ask again. Logged when
  // it is known. `saves`: ps 0 has a directory.
  std::optional<bool> Seen(RunId run, bool saves);
  // As it was known last.
  bool seen() const { return seen_.value_or(false); }

 private:
  std::optional<bool> Look();
  bool CanWriteIn(const std::string& shown) const;

  const Config& config_;
  const TaskId self_;
  const std::string why_not_;
  Logger& log_;
  RunId run_;
  std::optional<bool> seen_;  // of that run
  TimePoint asked_;           // first
};

}  // namespace dtrain
