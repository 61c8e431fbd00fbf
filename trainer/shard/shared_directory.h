// SharedDirectory: finds out whether a ps sees the checkpoint.dir of ps 0. While ps 0 serves it has a
// temporary directory there whose name holds the random id of the run. A ps that finds this under its own
// checkpoint.dir, and can write there, reads and writes its part of checkpoints itself; any other exchanges
// pieces with ps 0.
// Owner: RemoteLeader; ps 0 calls ShowSharedDirectory(). Thread: the ps loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/config/cluster_config.h"
#include "trainer/peer/run_id.h"

namespace dtrain {

// The end of a temporary directory's name, a function of run and checkpoint that every ps can compute. Number
// 0 is the shown directory, not a checkpoint.
std::string SaveToken(RunId run, uint64_t number);

// On ps 0: prepares and claims the directory and shows it to the other ps for as long as the result lives.
// Throws UserError when it cannot be written or, of a new run, another one uses it; PeerLost when a run that
// goes on again finds that another process has taken it. A ps 0 that leads on in the place of a lost one
// takes it over. `run_directory`: as CheckpointDirectory::set_run().
enum class Claim { kNew, kAgain, kOver };
std::unique_ptr<CheckpointDirectory> ShowSharedDirectory(const Config& config, RunId run, Claim claim,
                                                         std::string run_directory = {});

// On any other ps.
class SharedDirectory {
 public:
  // `why_not`: why ps 0 must pull the pieces even if this ps sees the directory; empty: no reason.
  SharedDirectory(const Config& config, TaskId self, std::string why_not, Logger& log)
      : config_(config), self_(self), why_not_(std::move(why_not)), log_(log) {}

  // Whether this ps sees the directory of this run's ps 0; unset: not known yet, call again. Logs the answer.
  // `saves`: ps 0 has a directory.
  std::optional<bool> Seen(RunId run, bool saves);
  // The last answer of Seen(), or false.
  bool seen() const { return seen_.value_or(false); }

 private:
  std::optional<bool> Look();
  bool CanWriteIn(const std::string& shown) const;

  const Config& config_;
  const TaskId self_;
  const std::string why_not_;
  Logger& log_;
  RunId run_;
  std::optional<bool> seen_;  // of run_
  TimePoint asked_;           // the first question of run_
};

}  // namespace dtrain
