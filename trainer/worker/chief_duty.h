// ChiefDuty: whether this worker is the chief, as ps 0 says, and its term.
// Owner and thread: the worker.
#pragma once

#include <cstdint>

#include "base/log.h"
#include "trainer/worker/ps_client.h"

namespace dtrain {

class ChiefDuty {
 public:
  ChiefDuty(int worker, const PsClient& client, Logger& log) : worker_(worker), client_(client), log_(log) {}

  bool is_chief() const { return term_ > 0; }
  // ps 0 says with Start, or at the end, of which term this worker is the chief; 0: it is not.
  void Take(uint32_t term);
  // It says so with Start: a later term may have been seen before that, and is to be looked at again.
  void LookAnew() { seen_term_ = 0; }
  // Whether the chief was lost meanwhile, and this worker is it now. To be called now and then.
  void Look() {
    if (client_.term() != seen_term_) TakeSeen();
  }

 private:
  void TakeSeen();

  const int worker_;
  const PsClient& client_;
  Logger& log_;
  uint32_t term_ = 0;       // 0: it is not the chief
  uint32_t seen_term_ = 0;  // that ps 0 said last of any chief
};

}  // namespace dtrain
