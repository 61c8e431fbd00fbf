#include "trainer/ps/standings.h"

#include <algorithm>

#include "base/error.h"

namespace dtrain {

void Standing::Leave() {
  ready = takes_part = false;
  ready_request = step_request = end_request = 0;
}

Standings::Standings(const Config& config, Membership& members)
    : config_(config), members_(members), standings_(members.all().size()) {}

std::vector<uint32_t> Standings::Expected() const {
  std::vector<uint32_t> workers;
  for (const Member& member : members_.all()) {
    if (Of(member).takes_part || IsAwaited(member)) {
      workers.push_back(static_cast<uint32_t>(member.task.index));
    }
  }
  return workers;
}

std::vector<bool> Standings::WorkersNow() const {
  std::vector<bool> workers;
  for (const Member& member : members_.all()) {
    if (member.task.role != Role::kWorker) continue;
    workers.push_back(Of(member).takes_part || member.here() || IsAwaited(member));
  }
  return workers;
}

bool Standings::AllDone() const {
  return std::none_of(standings_.begin(), standings_.end(), [&](const Standing& standing) {
    return !standing.done && (standing.takes_part || Awaited(standing));
  });
}

bool Standings::MayReturn(TimePoint now) const {
  return std::any_of(members_.all().begin(), members_.all().end(), [&](const Member& member) {
    const Standing& standing = Of(member);
    if (!standing.lost || standing.done) return false;
    const double patience_s = config_.failure.detect_s + static_cast<double>(kLongestRestartPauseS);
    return member.here() ||
           (config_.failure.restarts > 0 && SecondsBetween(standing.lost_at, now) < patience_s);
  });
}

bool Standings::AllTold() const {
  return std::all_of(members_.all().begin(), members_.all().end(),
                     [&](const Member& member) { return !member.here() || Of(member).told; });
}

void Standings::CheckAwaited(TimePoint now) const {
  for (const Member& member : members_.all()) {
    const Standing& standing = Of(member);
    if (!Awaited(standing) || member.here()) continue;
    if (SecondsBetween(standing.lost_at, now) <= config_.failure.wait_s) continue;
    throw PeerLost("{} was lost and is not back after {} s (failure.wait_s). Look at its log.",
                   members_.NameOf(member), config_.failure.wait_s);
  }
}

}  // namespace dtrain
