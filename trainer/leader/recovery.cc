#include "trainer/leader/recovery.h"

#include <algorithm>
#include <utility>

#include "base/names.h"
#include "trainer/config/config.h"
#include "trainer/peer/peer_limits.h"

namespace dtrain {
namespace {

// Bounds a peer's number, so that sums with it do not overflow.
constexpr uint64_t kMaxQuietMs = 1000000000;

}  // namespace

Loss DecideLoss(const Config& config, const LossCase& lost) {
  const bool begun = lost.phase == RunPhase::kInitialising || lost.phase == RunPhase::kRunning;
  if (!begun) return Loss::kGoesOn;
  if (lost.role == Role::kPs) return RecoversPs(config) ? Loss::kRollsBack : Loss::kEnds;
  // No other worker has data, and those that it fed will have given up before it is back.
  if (lost.feeds) return Loss::kEnds;
  if (lost.done || (!lost.takes_part && !lost.awaited)) return Loss::kGoesOn;
  switch (config.failure.worker_lost) {
    case WorkerLost::kContinue:
      return lost.others ? Loss::kGoesOn : Loss::kEnds;
    case WorkerLost::kWait:
      return Loss::kWaits;
    case WorkerLost::kFail:
      break;
  }
  return Loss::kEnds;
}

void RecoveryStats::Begin(int64_t global_step) {
  history_.lost_step = std::max(history_.lost_step, global_step);
  if (!open()) history_.lost_since = Clock::now();
}

void RecoveryStats::Learn(const std::string& task, const wire::Ready& returning) {
  const auto quiet =
      milliseconds(static_cast<int64_t>(std::min<uint64_t>(returning.quiet_ms(), kMaxQuietMs)));
  const TimePoint since = Clock::now() - quiet;
  if (!history_.begun || history_.lost_since > since) history_.lost_since = since;
  history_.begun = true;
  history_.lost_step =
      std::max(history_.lost_step, static_cast<int64_t>(returning.global_step() & kMaxSteps));
  KnownCheckpoint known;
  known.Learn(returning.checkpoint(), returning.checkpoint_step());
  if (known.where.empty() || (!history_.known.where.empty() && known.step <= history_.known.step)) return;
  history_.known = known;
  history_.known_by = task;
}

void RecoveryStats::End(int64_t global_step) {
  if (!returned_.ps.empty()) {
    log_.Event(kEventRecovered, LogLevel::kInfo,
               fmt::format("stepping again {:.2f} s after the loss of {}, from its replica: nothing is lost",
                           SecondsSince(returned_.since), std::exchange(returned_.ps, "")));
    if (!open()) return;
  }
  const int64_t lost = std::max<int64_t>(0, history_.lost_step - global_step);
  log_.Event(
      kEventRecovered, LogLevel::kInfo,
      fmt::format("stepping again {:.2f} s after the loss, from global step {}: {} of {} lost",
                  SecondsSince(history_.lost_since), global_step, Plural(lost, "step"), history_.lost_step));
  history_.lost_since = TimePoint();
  history_.lost_step = 0;
}

}  // namespace dtrain
