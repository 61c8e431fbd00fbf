#include "trainer/ps/round_plan.h"

#include <algorithm>

namespace dtrain {

RoundPlan::RoundPlan(size_t workers, int64_t aggregate, std::optional<int64_t> total, const Start& start)
    : aggregate_(aggregate), total_(total), standings_(workers), version_(start.version) {
  for (size_t worker = 0; worker < std::min(workers, start.contributions.size()); ++worker) {
    standings_[worker].contributions = start.contributions[worker];
  }
}

void RoundPlan::Offer(RoundExchange exchange, std::optional<uint64_t> version) {
  Standing& standing = standings_[static_cast<size_t>(exchange.worker)];
  standing.expected = true;
  standing.incarnation = exchange.incarnation;
  standing.open = !Over() && version == version_ ? Open::kFresh : Open::kOther;
}

void RoundPlan::Leave(int worker) {
  Standing& standing = standings_[static_cast<size_t>(worker)];
  standing.expected = standing.absent = false;
  standing.open = Open::kNone;
}

void RoundPlan::Lose(int worker) {
  Standing& standing = standings_[static_cast<size_t>(worker)];
  standing.open = Open::kNone;
  standing.absent = standing.expected;
}

std::optional<StartPoint> RoundPlan::Return(int worker) {
  Standing& standing = standings_[static_cast<size_t>(worker)];
  standing.absent = false;
  if (!standing.expected || last_number_ == 0) return std::nullopt;
  StartPoint point;
  point.resume = true;
  point.again = standing.last && *standing.last + 1 == version_;
  point.version = point.again ? version_ - 1 : version_;
  point.local_step = standing.contributions - (point.again ? 1 : 0);
  return point;
}

void RoundPlan::EndHere() {
  total_ = static_cast<int64_t>(version_);
  for (Standing& standing : standings_) {
    if (standing.open == Open::kFresh) standing.open = Open::kOther;
  }
}

int64_t RoundPlan::Count(Open open) const {
  return std::count_if(standings_.begin(), standings_.end(),
                       [&](const Standing& standing) { return standing.expected && standing.open == open; });
}

std::optional<RoundDecision> RoundPlan::Next() {
  const int64_t fresh = Count(Open::kFresh), under_way = Count(Open::kNone);
  if (fresh > 0 && fresh >= std::min(aggregate_, fresh + under_way)) return Take(true);
  if (Count(Open::kOther) == 0) return std::nullopt;
  // After the last round nobody contributes any more, whatever is still under way.
  const bool nobody_can = fresh == 0 && (under_way == 0 || Over());
  if (nobody_can || WaitsForAbsent(fresh, under_way)) return Take(false);
  return std::nullopt;
}

// Everybody who is here has offered something, and those that are absent are all that a round waits for.
bool RoundPlan::WaitsForAbsent(int64_t fresh, int64_t under_way) const {
  const int64_t absent = std::count_if(standings_.begin(), standings_.end(),
                                       [](const Standing& standing) { return standing.absent; });
  return absent > 0 && absent == under_way && fresh < std::min(aggregate_, fresh + under_way);
}

RoundDecision RoundPlan::Take(bool with_contributors) {
  RoundDecision decision;
  decision.number = ++last_number_;
  if (with_contributors) ++version_;
  for (size_t worker = 0; worker < standings_.size(); ++worker) {
    Standing& standing = standings_[worker];
    const bool fresh = standing.open == Open::kFresh;
    if (standing.open == Open::kNone || (fresh && !with_contributors)) continue;
    auto& list = fresh ? decision.contributors : decision.answered;
    list.push_back({static_cast<int>(worker), standing.incarnation});
    if (fresh) {
      ++standing.contributions;
      standing.last = version_ - 1;
    }
    standing.open = Open::kNone;
  }
  return decision;
}

}  // namespace dtrain
