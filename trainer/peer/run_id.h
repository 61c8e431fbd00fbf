// RunId: which run a message belongs to, and how often that had gone back to a checkpoint when it was sent.
#pragma once

#include <cstdint>

#include "net/codec.h"

namespace dtrain {

struct RunId {
  uint64_t id = 0;     // random, of ps 0's process; 0: not known
  uint32_t epoch = 0;  // one more for each rollback

  bool known() const { return id != 0; }
  bool operator==(const RunId& other) const { return id == other.id && epoch == other.epoch; }
  bool operator!=(const RunId& other) const { return !(*this == other); }
  net::Envelope Envelope(uint64_t request) const { return {id, epoch, request}; }
};

inline RunId RunIdOf(const wire::Envelope& envelope) { return {envelope.run_id(), envelope.run_epoch()}; }

}  // namespace dtrain
