#include "trainer/leader/round_plan.h"

#include <algorithm>

namespace dtrain {

RoundPlan::RoundPlan(size_t workers, int64_t aggregate, std::optional<int64_t> total, const Start& start)
    : aggregate_(aggregate), total_(total), workers_(workers), version_(start.version) {
  for (size_t worker = 0; worker < std::min(workers, start.contributions.size()); ++worker) {
    workers_[worker].contributions = start.contributions[worker];
  }
}

void RoundPlan::Offer(RoundExchange exchange, std::optional<uint64_t> version) {
  WorkerState& state = workers_[static_cast<size_t>(exchange.worker)];
  state.expected = true;
  state.incarnation = exchange.incarnation;
  state.open = !Over() && version == version_ ? Open::kFresh : Open::kOther;
}

void RoundPlan::Leave(int worker) {
  WorkerState& state = workers_[static_cast<size_t>(worker)];
  state.expected = state.absent = false;
  state.open = Open::kNone;
}

void RoundPlan::Lose(int worker) {
  WorkerState& state = workers_[static_cast<size_t>(worker)];
  state.open = Open::kNone;
  state.absent = state.expected;
}

std::optional<StartPoint> RoundPlan::Return(int worker) {
  WorkerState& state = workers_[static_cast<size_t>(worker)];
  state.absent = false;
  if (!state.expected || last_number_ == 0) return std::nullopt;
  StartPoint point;
  point.resume = true;
  point.again = state.last && *state.last + 1 == version_;
  point.version = point.again ? version_ - 1 : version_;
  point.local_step = state.contributions - (point.again ? 1 : 0);
  return point;
}

void RoundPlan::EndHere() {
  total_ = static_cast<int64_t>(version_);
  for (WorkerState& worker : workers_) {
    if (worker.open == Open::kFresh) worker.open = Open::kOther;
  }
}

int64_t RoundPlan::Count(Open open) const {
  return std::count_if(workers_.begin(), workers_.end(),
                       [&](const WorkerState& worker) { return worker.expected && worker.open == open; });
}

std::optional<RoundDecision> RoundPlan::Next() {
  const int64_t fresh = Count(Open::kFresh), under_way = Count(Open::kNone);
  if (fresh > 0 && fresh >= std::min(aggregate_, fresh + under_way)) return Take(true);
  if (Count(Open::kOther) == 0) return std::nullopt;
  // After the last round nobody contributes any more, not even a worker that still computes.
  const bool nobody_can = fresh == 0 && (under_way == 0 || Over());
  if (nobody_can || WaitsForAbsent(fresh, under_way)) return Take(false);
  return std::nullopt;
}

// Every connected worker has offered something, and rounds wait only for absent ones.
bool RoundPlan::WaitsForAbsent(int64_t fresh, int64_t under_way) const {
  const int64_t absent = std::count_if(workers_.begin(), workers_.end(),
                                       [](const WorkerState& worker) { return worker.absent; });
  return absent > 0 && absent == under_way && fresh < std::min(aggregate_, fresh + under_way);
}

RoundDecision RoundPlan::Take(bool with_contributors) {
  RoundDecision decision;
  decision.number = ++last_number_;
  if (with_contributors) ++version_;
  for (size_t worker = 0; worker < workers_.size(); ++worker) {
    WorkerState& state = workers_[worker];
    const bool fresh = state.open == Open::kFresh;
    if (state.open == Open::kNone || (fresh && !with_contributors)) continue;
    auto& list = fresh ? decision.contributors : decision.answered;
    list.push_back({static_cast<int>(worker), state.incarnation});
    if (fresh) {
      ++state.contributions;
      state.last = version_ - 1;
    }
    state.open = Open::kNone;
  }
  return decision;
}

}  // namespace dtrain
