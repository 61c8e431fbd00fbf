// RunHistory: what one ps process remembers of its run from one rollback to the next. Plain data.
// Owner: PsRun. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/names.h"
#include "trainer/config/config.h"
#include "trainer/data/files/input_form.h"
#include "trainer/data/source.h"
#include "trainer/peer/known_checkpoint.h"
#include "trainer/peer/run_id.h"
#include "trainer/ps/patience.h"

namespace dtrain {

// Thrown inside a ps where the run has to go back to its newest checkpoint.
struct RolledBack {
  std::string why;
};

struct RunHistory {
  bool begun = false;  // the run had started: it goes on from its newest checkpoint
  // What follows is ps 0's.
  RunId run;
  int64_t first_step = -1;           // the global step at which this process began; -1: it has not yet
  int64_t first_examples = 0;        // of the gradients up to that
  int64_t first_nanos = 0;           // wall clock of then
  int64_t lost_step = 0;             // the global step when it was lost, as far as anybody knows
  TimePoint lost_since;              // when no step was applied any more; unset: nothing is lost
  std::vector<bool> here;            // by worker: took part then; empty: not known
  std::vector<bool> took_part;       // by worker: has been told to start, now or before a rollback
  bool peers_returned = false;       // its tasks had started before this process did
  bool disturbed = false;            // its weights are not those of an undisturbed run
  uint64_t last_save = 0;            // number of the latest checkpoint that was ordered
  std::string checkpoint;            // path of the newest complete one; empty: none yet
  int64_t checkpoint_step = 0;       // its global step
  bool from_initial = false;         // the run began with initial values, and has not gone back since
  std::optional<Patience> patience;  // with the evaluations so far; unset: there was none
  std::optional<InputForm> inputs;   // of the data, for checkpoints; unset: not known
  FittedScale scale;                 // of the data, for all workers; empty: not scaled, or not known
  DataFingerprint data;              // of the training rows of the lowest worker
  KnownCheckpoint known;             // the newest that this ps, or with ps 0 any task that returned, knows of
  std::string known_by;              // which task that is

  // The newest complete one as other tasks are told.
  KnownCheckpoint Newest() const {
    if (checkpoint.empty()) return {};
    return {HostName() + ":" + checkpoint, checkpoint_step};
  }
};

}  // namespace dtrain
