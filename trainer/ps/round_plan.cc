#include "trainer/ps/round_plan.h"

#include <algorithm>

namespace dtrain {

RoundPlan::RoundPlan(size_t workers, int64_t aggregate, std::optional<int64_t> total)
    : aggregate_(aggregate), total_(total), standings_(workers) {}

void RoundPlan::Offer(RoundExchange exchange, std::optional<uint64_t> version) {
  Standing& standing = standings_[static_cast<size_t>(exchange.worker)];
  standing.expected = true;
  standing.incarnation = exchange.incarnation;
  standing.open = !Over() && version == version_ ? Open::kFresh : Open::kOther;
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
  // After the last round nobody contributes any more, whatever is still under way.
  const bool nobody_can = fresh == 0 && (under_way == 0 || Over());
  if (nobody_can && Count(Open::kOther) > 0) return Take(false);
  return std::nullopt;
}

RoundDecision RoundPlan::Take(bool with_contributors) {
  RoundDecision decision;
  decision.number = ++last_number_;
  if (with_contributors) ++version_;
  for (size_t worker = 0; worker < standings_.size(); ++worker) {
    Standing& standing = standings_[worker];
    if (standing.open == Open::kNone) continue;
    auto& list = standing.open == Open::kFresh ? decision.contributors : decision.answered;
    list.push_back({static_cast<int>(worker), standing.incarnation});
    standing.open = Open::kNone;
  }
  return decision;
}

}  // namespace dtrain
