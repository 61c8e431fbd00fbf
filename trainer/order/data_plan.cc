#include "trainer/order/data_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace dtrain {
namespace {

// The limit of gaps and turns of workers that are examined, over all epochs: 256 MiB and about a second.
constexpr int64_t kMaxWork = int64_t{1} << 24;

bool IsEmpty(const TakenSteps& steps) {
  return steps.runs.empty() &&
         std::all_of(steps.local_steps.begin(), steps.local_steps.end(), [](int64_t n) { return n == 0; });
}

void DropEmpty(std::vector<TakenSteps>* taken) {
  taken->erase(std::remove_if(taken->begin(), taken->end(), IsEmpty), taken->end());
}

int64_t CountTurns(const std::vector<TakenSteps>& taken) {
  return std::accumulate(taken.begin(), taken.end(), int64_t{1}, [](int64_t sum, const TakenSteps& steps) {
    return sum + static_cast<int64_t>(steps.local_steps.size() + steps.runs.size());
  });
}

// Returns the batches left in an epoch. Afterwards `taken` is what was taken from later epochs.
RemainingBatches TakeEpoch(int64_t epoch, std::vector<TakenSteps>* taken, int64_t batches) {
  RemainingBatches left(batches);
  for (TakenSteps& steps : *taken) left.Take(epoch, &steps);
  return left;
}

// Skips the epochs that all workers have completed. Only with a single numbering, which takes the same steps
// from each whole epoch.
void SkipComplete(DataPlan* plan, int64_t batches) {
  if (plan->taken.size() != 1) return;
  TakenSteps& steps = plan->taken[0];
  if (!steps.runs.empty()) {
    TakenRun& run = steps.runs.front();
    if (run.epoch != plan->epoch || run.first != 0 || batches <= 0) return;
    run.epoch = plan->epoch += run.batches / batches;
    run.batches %= batches;
    if (run.batches == 0) steps.runs.erase(steps.runs.begin());
    return;
  }
  const auto workers = static_cast<int64_t>(steps.local_steps.size());
  std::vector<int64_t> per_epoch;  // steps, by worker
  int64_t epochs = std::numeric_limits<int64_t>::max();
  for (int64_t worker = 0; worker < workers; ++worker) {
    per_epoch.push_back(StepsOf(batches, worker, workers, steps.devices, steps.in_step, steps.chunk));
    if (per_epoch.back() == 0) return;
    epochs = std::min(epochs, steps.local_steps[static_cast<size_t>(worker)] / per_epoch.back());
  }
  for (size_t worker = 0; worker < per_epoch.size(); ++worker)
    steps.local_steps[worker] -= epochs * per_epoch[worker];
  plan->epoch += epochs;
}

}  // namespace

bool operator==(const DataPlan& a, const DataPlan& b) {
  const auto same = [](const TakenSteps& x, const TakenSteps& y) {
    return x.devices == y.devices && x.local_steps == y.local_steps && x.in_step == y.in_step &&
           x.chunk == y.chunk && x.runs == y.runs;
  };
  return a.epoch == b.epoch && a.first_batch == b.first_batch && a.earlier_steps == b.earlier_steps &&
         std::equal(a.taken.begin(), a.taken.end(), b.taken.begin(), b.taken.end(), same);
}

std::optional<DataPlan> Replan(const DataPlan& before, const TakenSteps& last, int64_t batches) {
  DataPlan plan = before;
  plan.taken.push_back(last);
  for (int64_t work = 0; work <= kMaxWork; work += CountTurns(plan.taken)) {
    DropEmpty(&plan.taken);
    SkipComplete(&plan, batches);
    DropEmpty(&plan.taken);
    std::vector<TakenSteps> later = plan.taken;
    if (later.empty() || TakeEpoch(plan.epoch, &later, batches).count() > 0) {
      if (RemainingData::Of(plan, batches) == nullptr) return std::nullopt;
      return plan;
    }
    plan.taken = std::move(later);
    ++plan.epoch;
  }
  return std::nullopt;
}

int64_t RemainingBatches::At(int64_t index) const {
  const auto behind = std::upper_bound(pieces_.begin(), pieces_.end(), index,
                                       [](int64_t i, const Piece& piece) { return i < piece.before; });
  const Piece& piece = *std::prev(behind);
  return piece.begin + index - piece.before;
}

void RemainingBatches::Add(int64_t begin, int64_t end) {
  if (begin >= end) return;
  if (pieces_.empty() || EndOf(pieces_.size() - 1) != begin) pieces_.push_back({begin, count_});
  count_ += end - begin;
}

int64_t RemainingBatches::EndOf(size_t piece) const {
  const int64_t behind = piece + 1 < pieces_.size() ? pieces_[piece + 1].before : count_;
  return pieces_[piece].begin + behind - pieces_[piece].before;
}

void RemainingBatches::AddLeft(const RemainingBatches& from, int64_t first, int64_t end) {
  for (size_t piece = 0; piece < from.pieces_.size() && first < end; ++piece) {
    const int64_t to_batch = from.pieces_[piece].begin - from.pieces_[piece].before;
    const int64_t behind = from.EndOf(piece) - to_batch;
    if (behind <= first) continue;
    Add(to_batch + first, to_batch + std::min(behind, end));
    first = behind;
  }
}

void RemainingBatches::TakeRuns(int64_t epoch, std::vector<TakenRun>* runs) {
  std::vector<TakenRun> here, later;
  for (const TakenRun& run : *runs) {
    if (run.epoch > epoch) later.push_back(run);
    if (run.epoch != epoch) continue;
    const int64_t rest = run.batches - std::max<int64_t>(0, count_ - run.first);
    if (rest > 0) later.push_back({epoch + 1, 0, rest});
    here.push_back(run);
  }
  std::sort(here.begin(), here.end(), [](const TakenRun& a, const TakenRun& b) { return a.first < b.first; });
  RemainingBatches left(0);
  int64_t next = 0;
  for (const TakenRun& run : here) {
    left.AddLeft(*this, next, std::min(run.first, count_));
    next = std::max(next, run.first + run.batches);
  }
  left.AddLeft(*this, next, count_);
  *this = std::move(left);
  *runs = std::move(later);
}

void RemainingBatches::Take(int64_t epoch, TakenSteps* steps) {
  if (steps->local_steps.empty()) return TakeRuns(epoch, &steps->runs);
  const auto workers = static_cast<int64_t>(steps->local_steps.size());
  const int64_t chunk = steps->chunk;
  std::vector<int64_t> taken;  // batches, by worker
  for (int64_t worker = 0; worker < workers; ++worker) {
    int64_t& local_steps = steps->local_steps[static_cast<size_t>(worker)];
    const int64_t share = ShareOf(count_, worker, workers, chunk);
    const int64_t of_epoch =
        std::min(local_steps, StepsOf(count_, worker, workers, steps->devices, steps->in_step, chunk));
    taken.push_back(std::min(share, of_epoch * steps->devices));
    local_steps -= of_epoch;
  }
  // All batches before `mixed` are taken, and none from `whole` on.
  const int64_t turn = workers * chunk;
  const int64_t mixed = *std::min_element(taken.begin(), taken.end()) / chunk * turn;
  const int64_t whole = CeilDiv(*std::max_element(taken.begin(), taken.end()), chunk) * turn;
  RemainingBatches left(0);
  for (size_t piece = 0; piece < pieces_.size(); ++piece) {
    const int64_t begin = pieces_[piece].begin, end = EndOf(piece);
    int64_t index = pieces_[piece].before;
    const int64_t to_batch = begin - index;
    const int64_t behind = index + end - begin;
    for (index = std::max(index, mixed); index < std::min(behind, whole); ++index) {
      const int64_t of_worker = index / turn * chunk + index % chunk;
      if (of_worker < taken[static_cast<size_t>(index / chunk % workers)]) continue;
      left.Add(to_batch + index, to_batch + index + 1);
    }
    left.Add(to_batch + index, to_batch + behind);
  }
  *this = std::move(left);
}

std::shared_ptr<const RemainingData> RemainingData::Of(const DataPlan& plan, int64_t batches) {
  const std::shared_ptr<RemainingData> remaining(new RemainingData(plan));
  std::vector<TakenSteps> taken = plan.taken;
  for (int64_t work = 0;; work += CountTurns(taken) + remaining->begun_.back().gaps()) {
    DropEmpty(&taken);
    if (taken.empty()) return remaining;
    if (work > kMaxWork) return nullptr;
    remaining->begun_.push_back(TakeEpoch(remaining->first_whole(), &taken, batches));
  }
}

const RemainingBatches* RemainingData::OfEpoch(int64_t epoch) const {
  const int64_t index = epoch - plan_.epoch;
  return index >= 0 && index < static_cast<int64_t>(begun_.size()) ? &begun_[static_cast<size_t>(index)]
                                                                   : nullptr;
}

}  // namespace dtrain
