#include "trainer/data/data_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace dtrain {
namespace {

// Gaps and turns of workers that are looked at, in all epochs together: 256 MiB, and about a second.
constexpr int64_t kMaxWork = int64_t{1} << 24;

bool IsEmpty(const Deal& deal) {
  return std::all_of(deal.local_steps.begin(), deal.local_steps.end(), [](int64_t n) { return n == 0; });
}

void DropEmpty(std::vector<Deal>* deals) {
  deals->erase(std::remove_if(deals->begin(), deals->end(), IsEmpty), deals->end());
}

int64_t Turns(const std::vector<Deal>& deals) {
  return std::accumulate(deals.begin(), deals.end(), int64_t{1}, [](int64_t sum, const Deal& deal) {
    return sum + static_cast<int64_t>(deal.local_steps.size());
  });
}

// What is left of an epoch; `deals` afterwards is what was taken of later ones.
LeftBatches TakeEpoch(std::vector<Deal>* deals, int64_t batches) {
  LeftBatches left(batches);
  for (Deal& deal : *deals) left.Take(&deal);
  return left;
}

// One numbering takes the same of each whole epoch: those that all its workers have completed need no look.
void SkipComplete(Dealt* dealt, int64_t batches) {
  if (dealt->deals.size() != 1) return;
  Deal& deal = dealt->deals[0];
  const auto workers = static_cast<int64_t>(deal.local_steps.size());
  std::vector<int64_t> steps;  // of an epoch, by worker
  int64_t epochs = std::numeric_limits<int64_t>::max();
  for (int64_t worker = 0; worker < workers; ++worker) {
    steps.push_back(DivideUp(ShareOf(batches, worker, workers), deal.devices));
    if (steps.back() == 0) return;
    epochs = std::min(epochs, deal.local_steps[static_cast<size_t>(worker)] / steps.back());
  }
  for (size_t worker = 0; worker < steps.size(); ++worker) deal.local_steps[worker] -= epochs * steps[worker];
  dealt->epoch += epochs;
}

}  // namespace

bool operator==(const Dealt& a, const Dealt& b) {
  const auto same = [](const Deal& x, const Deal& y) {
    return x.devices == y.devices && x.local_steps == y.local_steps;
  };
  return a.epoch == b.epoch && a.first_batch == b.first_batch && a.other_steps == b.other_steps &&
         std::equal(a.deals.begin(), a.deals.end(), b.deals.begin(), b.deals.end(), same);
}

std::optional<Dealt> DealAnew(const Dealt& before, const Deal& last, int64_t batches) {
  Dealt dealt = before;
  dealt.deals.push_back(last);
  for (int64_t work = 0; work <= kMaxWork; work += Turns(dealt.deals)) {
    DropEmpty(&dealt.deals);
    SkipComplete(&dealt, batches);
    DropEmpty(&dealt.deals);
    std::vector<Deal> later = dealt.deals;
    if (later.empty() || TakeEpoch(&later, batches).count() > 0) {
      if (Rest::Of(dealt, batches) == nullptr) return std::nullopt;
      return dealt;
    }
    dealt.deals = std::move(later);
    ++dealt.epoch;
  }
  return std::nullopt;
}

int64_t LeftBatches::At(int64_t index) const {
  const auto behind = std::upper_bound(pieces_.begin(), pieces_.end(), index,
                                       [](int64_t i, const Piece& piece) { return i < piece.before; });
  const Piece& piece = *std::prev(behind);
  return piece.begin + index - piece.before;
}

void LeftBatches::Add(int64_t begin, int64_t end) {
  if (begin >= end) return;
  if (pieces_.empty() || EndOf(pieces_.size() - 1) != begin) pieces_.push_back({begin, count_});
  count_ += end - begin;
}

int64_t LeftBatches::EndOf(size_t piece) const {
  const int64_t behind = piece + 1 < pieces_.size() ? pieces_[piece + 1].before : count_;
  return pieces_[piece].begin + behind - pieces_[piece].before;
}

void LeftBatches::Take(Deal* deal) {
  const auto workers = static_cast<int64_t>(deal->local_steps.size());
  std::vector<int64_t> taken;  // batches, by worker
  for (int64_t worker = 0; worker < workers; ++worker) {
    int64_t& local_steps = deal->local_steps[static_cast<size_t>(worker)];
    const int64_t share = ShareOf(count_, worker, workers);
    const int64_t steps = std::min(local_steps, DivideUp(share, deal->devices));
    taken.push_back(std::min(share, steps * deal->devices));
    local_steps -= steps;
  }
  // Before `mixed` all are taken, from `whole` on none.
  const int64_t mixed = *std::min_element(taken.begin(), taken.end()) * workers;
  const int64_t whole = *std::max_element(taken.begin(), taken.end()) * workers;
  LeftBatches left(0);
  for (size_t piece = 0; piece < pieces_.size(); ++piece) {
    const int64_t begin = pieces_[piece].begin, end = EndOf(piece);
    int64_t index = pieces_[piece].before;
    const int64_t to_batch = begin - index;
    const int64_t behind = index + end - begin;
    for (index = std::max(index, mixed); index < std::min(behind, whole); ++index) {
      if (index / workers < taken[static_cast<size_t>(index % workers)]) continue;
      left.Add(to_batch + index, to_batch + index + 1);
    }
    left.Add(to_batch + index, to_batch + behind);
  }
  *this = std::move(left);
}

std::shared_ptr<const Rest> Rest::Of(const Dealt& dealt, int64_t batches) {
  const std::shared_ptr<Rest> rest(new Rest(dealt));
  std::vector<Deal> deals = dealt.deals;
  for (int64_t work = 0;; work += Turns(deals) + rest->begun_.back().gaps()) {
    DropEmpty(&deals);
    if (deals.empty()) return rest;
    if (work > kMaxWork) return nullptr;
    rest->begun_.push_back(TakeEpoch(&deals, batches));
  }
}

const LeftBatches* Rest::LeftOf(int64_t epoch) const {
  const int64_t index = epoch - dealt_.epoch;
  return index >= 0 && index < static_cast<int64_t>(begun_.size()) ? &begun_[static_cast<size_t>(index)]
                                                                   : nullptr;
}

}  // namespace dtrain
