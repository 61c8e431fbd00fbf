#include "trainer/worker/chief_duty.h"

namespace dtrain {

void ChiefDuty::Take(uint32_t term) {
  if (term > 1 && term != term_) log_.Info("is the chief from now on (term {})", term);
  term_ = term;
}

void ChiefDuty::TakeSeen() {
  seen_term_ = client_.term();
  if (seen_term_ > term_ && client_.chief() == worker_) Take(seen_term_);
}

}  // namespace dtrain
