// RunId: which run a message belongs to, and how often that had gone back to a checkpoint when it was sent.
// KnownCheckpoint: the newest complete checkpoint of a run, as a task knows it from ps 0, so that ps 0 never
// begins anew in silence where its own disk has lost it. Plain data.
#pragma once

#include <cstdint>
#include <string>

#include "net/codec.h"
#include "trainer/peer/peer_limits.h"

namespace dtrain {

struct RunId {
  uint64_t id = 0;     // random, of ps 0's process; 0: not known
  uint32_t epoch = 0;  // one more for each rollback

  bool known() const { return id != 0; }
  bool operator==(const RunId& other) const { return id == other.id && epoch == other.epoch; }
  bool operator!=(const RunId& other) const { return !(*this == other); }
  net::Envelope Envelope(uint64_t request) const { return {id, epoch, request}; }
};

struct KnownCheckpoint {
  std::string where;  // "HOST:PATH"; empty: none is known
  int64_t step = 0;   // global

  // As a message says it; one that says none changes nothing.
  void Learn(const flatbuffers::String* said, uint64_t said_step) {
    if (said == nullptr || said->size() == 0) return;
    where = ShortText(said->str());
    step = static_cast<int64_t>(said_step & kMaxSteps);
  }
  std::string name() const { return where.substr(where.rfind('/') + 1); }
};

// Thrown inside a task where it has to join the run anew: a ps is lost or was restarted, or the run goes back
// to its newest checkpoint.
struct RolledBack {
  std::string why;
};

inline RunId RunIdOf(const wire::Envelope& envelope) { return {envelope.run_id(), envelope.run_epoch()}; }

}  // namespace dtrain
