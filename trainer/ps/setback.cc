#include "trainer/ps/setback.h"

#include <algorithm>

#include "base/names.h"
#include "trainer/peer/peer_limits.h"

namespace dtrain {
namespace {

// What a peer says of a loss is bounded, so that sums of it fit.
constexpr uint64_t kMostQuietMs = 1000000000;

}  // namespace

void Setback::Begin(int64_t global_step) {
  history_.lost_step = std::max(history_.lost_step, global_step);
  if (!open()) history_.lost_since = Clock::now();
}

void Setback::Learn(const wire::Ready& returning) {
  const auto quiet =
      milliseconds(static_cast<int64_t>(std::min<uint64_t>(returning.quiet_ms(), kMostQuietMs)));
  const TimePoint since = Clock::now() - quiet;
  if (!history_.begun || history_.lost_since > since) history_.lost_since = since;
  history_.begun = true;
  history_.lost_step =
      std::max(history_.lost_step, static_cast<int64_t>(returning.global_step() & kMostSteps));
}

void Setback::End(int64_t global_step) {
  const int64_t lost = std::max<int64_t>(0, history_.lost_step - global_step);
  log_.Info("stepping again {:.2f} s after the loss, from global step {}: {} of {} lost",
            SecondsSince(history_.lost_since), global_step, Plural(lost, "step"), history_.lost_step);
  history_.lost_since = TimePoint();
  history_.lost_step = 0;
}

}  // namespace dtrain
