// RunId: the run of a message, and how often the run had gone back to a checkpoint. KnownCheckpoint: the
// newest complete checkpoint that a task knows from ps 0; with it a ps 0 whose own disk has lost the
// checkpoint does not silently start anew. Plain data.
#pragma once

#include <cstdint>
#include <string>

#include "net/codec.h"
#include "trainer/peer/peer_limits.h"

namespace dtrain {

struct RunId {
  uint64_t id = 0;     // random, made by the process of ps 0; 0: unknown
  uint32_t epoch = 0;  // the number of rollbacks

  bool known() const { return id != 0; }
  bool operator==(const RunId& other) const { return id == other.id && epoch == other.epoch; }
  bool operator!=(const RunId& other) const { return !(*this == other); }
  net::Envelope Envelope(uint64_t request) const { return {id, epoch, request}; }
};

struct KnownCheckpoint {
  std::string where;  // "HOST:PATH"; empty: none
  int64_t step = 0;   // global

  // Takes the checkpoint in a message, if there is one.
  void Learn(const flatbuffers::String* said, uint64_t said_step) {
    if (said == nullptr || said->size() == 0) return;
    where = ShortText(said->str());
    step = static_cast<int64_t>(said_step & kMaxSteps);
  }
  template <typename Archive>
  void State(Archive& archive) {
    archive(where, step);
  }
  std::string name() const { return where.substr(where.rfind('/') + 1); }
};

// Thrown when a task must join the run anew: a ps is lost or was restarted, or the run goes back to a
// checkpoint.
struct RolledBack {
  std::string why;
  bool ps_lost = false;  // this task has seen that a ps was lost
};

inline RunId RunIdOf(const wire::Envelope& envelope) { return {envelope.run_id(), envelope.run_epoch()}; }

}  // namespace dtrain
