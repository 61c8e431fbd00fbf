// KnownCheckpoint: the newest complete checkpoint of a run, as a task knows it from ps 0, so that ps 0 never
// begins anew in silence where its own disk has lost it. Plain data.
#pragma once

#include <cstdint>
#include <string>

#include "net/codec.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/peer/short_text.h"

namespace dtrain {

struct KnownCheckpoint {
  std::string where;  // "HOST:PATH"; empty: none is known
  int64_t step = 0;   // global

  // As a message says it; one that says none changes nothing.
  void Learn(const flatbuffers::String* said, uint64_t said_step) {
    if (said == nullptr || said->size() == 0) return;
    where = ShortText(said->str());
    step = static_cast<int64_t>(said_step & kMostSteps);
  }
  std::string name() const { return where.substr(where.rfind('/') + 1); }
};

}  // namespace dtrain
