#include "trainer/order/lease_ledger.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace dtrain {

LeaseLedger::LeaseLedger(const OrderSpec& spec, std::optional<int64_t> epochs,
                         std::shared_ptr<const RemainingData> remaining, const std::vector<int64_t>& taken)
    : spec_(spec),
      epochs_(epochs),
      remaining_(std::move(remaining)),
      next_epoch_(remaining_ == nullptr ? 0 : remaining_->plan().epoch) {
  DT_CHECK(BatchesPerEpoch(spec) > 0 && !taken.empty(), spec.rows, taken.size());
  for (const int64_t steps : taken) workers_.push_back(Begun(steps));
  CloseDone();
}

int64_t LeaseLedger::BatchesLeft(int64_t epoch) const {
  const RemainingBatches* const left = remaining_ == nullptr ? nullptr : remaining_->OfEpoch(epoch);
  return left == nullptr ? BatchesPerEpoch(spec_) : left->count();
}

// Returns the rows of the batches that the plan has left of an epoch.
int64_t LeaseLedger::RowsLeft(int64_t epoch) const {
  const RemainingBatches* const left = remaining_ == nullptr ? nullptr : remaining_->OfEpoch(epoch);
  const int64_t all = BatchesPerEpoch(spec_), batches = BatchesLeft(epoch);
  const bool has_last = batches > 0 && (left == nullptr || left->At(batches - 1) == all - 1);
  const int64_t missing = has_last ? std::max<int64_t>(0, all * spec_.batch_size - spec_.rows) : 0;
  return batches * spec_.batch_size - missing;
}

void LeaseLedger::Open() {
  Epoch epoch;
  epoch.number = next_epoch_++;
  epoch.batches = epoch.free_batches = epoch.undone = BatchesLeft(epoch.number);
  if (epoch.batches > 0) epoch.free.emplace(0, epoch.batches);
  open_.push_back(std::move(epoch));
}

// Ends epochs in their order. One of which the plan has nothing left ends when its turn comes.
void LeaseLedger::CloseDone() {
  while (true) {
    if (open_.empty() && !over() && BatchesLeft(next_epoch_) == 0) Open();
    if (open_.empty() || open_.front().undone > 0) return;
    const Epoch& epoch = open_.front();
    const bool whole = epoch.batches == BatchesPerEpoch(spec_);
    ended_.push_back({epoch.number, epoch.rows, RowsLeft(epoch.number), whole});
    done_batches_ += epoch.batches;
    open_.pop_front();
  }
}

// Returns an open epoch: one with batches that are leased or undone.
LeaseLedger::Epoch& LeaseLedger::EpochOf(int64_t number) {
  const auto index = static_cast<size_t>(number - epochs_done());
  DT_CHECK(index < open_.size(), number, epochs_done(), open_.size());
  return open_[index];
}

const Lease& LeaseLedger::LeaseOf(const Worker& worker, int64_t step) const {
  const auto lease = std::find_if(worker.leases.begin(), worker.leases.end(),
                                  [&](const Lease& one) { return step < EndOf(one); });
  DT_CHECK(lease != worker.leases.end() && lease->step <= step, step, worker.leases.size());
  return *lease;
}

LeaseLedger::Run LeaseLedger::BatchesOf(const Lease& lease, int64_t begin, int64_t end) const {
  const auto at = [&](int64_t step) {
    return lease.first + std::min(lease.batches, (step - lease.step) * spec_.devices);
  };
  return {at(begin), at(end)};
}

// Returns the first open epoch with free batches, and opens one if that is the time for it; null: there is
// none.
LeaseLedger::Epoch* LeaseLedger::WithFree() {
  while (true) {
    for (Epoch& epoch : open_) {
      if (epoch.free_batches > 0) return &epoch;
    }
    if (open_.size() == 2 || (epochs_ && next_epoch_ >= *epochs_)) return nullptr;
    Open();
  }
}

// Returns how many batches of a free run to lease for about `steps` steps.
int64_t LeaseLedger::BatchesToLease(const Epoch& epoch, const Run& free, int64_t steps,
                                    int64_t min_steps) const {
  const auto workers = static_cast<int64_t>(workers_.size());
  const int64_t max = epoch.free_batches / (2 * workers * spec_.devices), all = free.end - free.first;
  min_steps = std::max<int64_t>(1, min_steps);
  const int64_t wanted = std::max(std::min(steps, max), min_steps) * spec_.devices;
  if (wanted >= all || spec_.chunk == 1) return std::min(wanted, all);
  // To the end of a window, and of a step of all devices.
  const int64_t unit = std::lcm(spec_.chunk, spec_.devices);
  const int64_t down = (free.first + wanted) / unit * unit - free.first, up = down + unit;
  if (up % spec_.devices != 0) return wanted;  // a short step came before it
  if (down >= min_steps * spec_.devices) return down;
  return up <= std::min(all, 2 * wanted) ? up : wanted;
}

const Lease* LeaseLedger::Give(Lease lease, Worker* worker) const {
  lease.step = worker->end;
  worker->end += lease.Steps(spec_.devices);
  worker->leases.push_back(std::move(lease));
  SetFirst(worker);
  return &worker->leases.back();
}

const Lease* LeaseLedger::Deal(int index, int64_t steps, int64_t min_steps, bool alone) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  if (!torn_.empty()) {
    if (!alone) return nullptr;
    const Lease* const lease = Give(std::move(torn_.front()), &worker);
    torn_.pop_front();
    return lease;
  }
  Epoch* const epoch = WithFree();
  if (epoch == nullptr) return nullptr;
  const auto found = epoch->free.begin();
  const Run free{found->first, found->second};
  const int64_t batches = BatchesToLease(*epoch, free, steps, min_steps);
  const auto behind = epoch->free.erase(found);
  if (free.first + batches < free.end) epoch->free.emplace_hint(behind, free.first + batches, free.end);
  epoch->free_batches -= batches;
  return Give({0, epoch->number, free.first, batches, {}}, &worker);
}

int64_t LeaseLedger::FreeBatches() const {
  const auto has_free = [](const Epoch& epoch) { return epoch.free_batches > 0; };
  const auto found = std::find_if(open_.begin(), open_.end(), has_free);
  return found == open_.end() ? 0 : found->free_batches;
}

const std::deque<Lease>& LeaseLedger::Of(int worker) const {
  return workers_[static_cast<size_t>(worker)].leases;
}

int64_t LeaseLedger::Left(int worker) const {
  const Worker& of = workers_[static_cast<size_t>(worker)];
  return of.end - of.taken;
}

const Lease* LeaseLedger::Next(int worker) const {
  const Worker& of = workers_[static_cast<size_t>(worker)];
  return of.taken < of.end ? &LeaseOf(of, of.taken) : nullptr;
}

// Returns a worker without leases whose next step is `step`.
LeaseLedger::Worker LeaseLedger::Begun(int64_t step) {
  Worker worker;
  worker.confirmed = worker.taken = worker.end = step;
  worker.first_end = std::numeric_limits<int64_t>::max();
  return worker;
}

// References to elements of both deques stay valid while these are there.
void LeaseLedger::SetNow(Worker* worker) {
  const Lease& lease = LeaseOf(*worker, worker->taken);
  worker->now_end = EndOf(lease);
  worker->now_rows = &EpochOf(lease.epoch).rows;
}

void LeaseLedger::SetFirst(Worker* worker) const {
  worker->first_end =
      worker->leases.empty() ? std::numeric_limits<int64_t>::max() : EndOf(worker->leases.front());
}

void LeaseLedger::Dropped(int worker) {
  Worker& of = workers_[static_cast<size_t>(worker)];
  const Lease& lease = LeaseOf(of, of.taken);
  of.dropped.push_back(of.taken);
  lease.taken.empty() ? Free(lease.epoch, BatchesOf(lease, of.taken, of.taken + 1)) : torn_.push_back(lease);
  ++of.taken;
}

void LeaseLedger::Free(int64_t number, Run run) {
  Epoch& epoch = EpochOf(number);
  epoch.free_batches += run.end - run.first;
  auto next = epoch.free.lower_bound(run.first);
  if (next != epoch.free.end() && next->first == run.end) {
    run.end = next->second;
    next = epoch.free.erase(next);
  }
  if (next != epoch.free.begin() && std::prev(next)->second == run.first) {
    std::prev(next)->second = run.end;
  } else {
    epoch.free.emplace_hint(next, run.first, run.end);
  }
}

void LeaseLedger::ConfirmLeases(Worker* worker, int64_t step) {
  DT_CHECK(step <= worker->taken, step, worker->taken);
  for (; worker->first_end <= step; SetFirst(worker)) {
    const Lease& lease = worker->leases.front();
    int64_t done = lease.batches;
    for (auto& dropped = worker->dropped; !dropped.empty() && dropped.front() < worker->first_end;
         dropped.pop_front()) {
      const Run run = BatchesOf(lease, dropped.front(), dropped.front() + 1);
      done -= run.end - run.first;
    }
    // The epoch of steps that were all dropped may have ended.
    if (done > 0) EpochOf(lease.epoch).undone -= done;
    worker->confirmed = worker->first_end;
    worker->leases.pop_front();
  }
  CloseDone();
}

int64_t LeaseLedger::Lose(int worker, const std::vector<TakenByPs>& by_ps, bool keeps) {
  Worker& of = workers_[static_cast<size_t>(worker)];
  Worker before = std::exchange(of, Begun(of.taken));
  int64_t untouched = before.taken;  // no ps has anything of the steps from this one on
  for (const TakenByPs& ps : by_ps) untouched = std::max(untouched, ps.steps + (ps.blocks > 0 ? 1 : 0));
  int64_t torn = 0;
  for (const Lease& lease : before.leases) {
    const int64_t behind = EndOf(lease);
    for (int64_t step = std::max(lease.step, before.confirmed), end = 0; step < behind; step = end) {
      end = step < untouched ? step + 1 : behind;
      if (!before.dropped.empty() && before.dropped.front() == step) {
        before.dropped.pop_front();
        continue;
      }
      const Run run = BatchesOf(lease, step, end);
      Lease part{0, lease.epoch, run.first, run.end - run.first, {}};
      bool all = true, any = false;
      for (size_t ps = 0; ps < by_ps.size(); ++ps) {
        const TakenByPs& by = by_ps[ps];
        // Blocks that were sent again, empty or not, are the first ones.
        uint32_t blocks = step < by.steps ? by.of : step == by.steps ? std::min(by.blocks, by.of) : 0;
        if (!lease.taken.empty()) blocks = std::max(blocks, lease.taken[ps]);
        all &= step < by.steps || (blocks > 0 && blocks >= by.of);
        any |= step < by.steps || blocks > 0;
        part.taken.push_back(blocks);
      }
      if (all) {
        EpochOf(lease.epoch).undone -= part.batches;
        continue;
      }
      if (any) {
        ++torn;
      } else {
        part.taken.clear();
      }
      if (keeps) {
        Give(std::move(part), &of);
      } else if (any) {
        torn_.push_back(std::move(part));
      } else {
        Free(lease.epoch, run);
      }
    }
  }
  CloseDone();
  return torn;
}

bool LeaseLedger::HasTorn() const {
  return !torn_.empty() || std::any_of(workers_.begin(), workers_.end(), [](const Worker& worker) {
    return std::any_of(worker.leases.begin(), worker.leases.end(),
                       [](const Lease& lease) { return !lease.taken.empty(); });
  });
}

bool LeaseLedger::over() const { return epochs_ && epochs_done() >= *epochs_; }

int64_t LeaseLedger::epochs_done() const { return open_.empty() ? next_epoch_ : open_.front().number; }

std::vector<LeaseLedger::EndedEpoch> LeaseLedger::TakeEnded() { return std::exchange(ended_, {}); }

TakenSteps LeaseLedger::Taken() const {
  TakenSteps taken;
  taken.devices = spec_.devices;
  std::vector<TakenRun>& runs = taken.runs;
  if (done_batches_ > 0) {
    runs.push_back({remaining_ == nullptr ? 0 : remaining_->plan().epoch, 0, done_batches_});
  }
  bool to_end = done_batches_ > 0;  // the last run goes to the end of its epoch
  for (const Epoch& epoch : open_) {
    std::vector<Run> rest;
    for (const auto& [first, end] : epoch.free) rest.push_back({first, end});
    for (const Worker& worker : workers_) {
      for (const Lease& lease : worker.leases) {
        const int64_t step = std::max(lease.step, worker.taken), behind = EndOf(lease);
        if (lease.epoch != epoch.number || !lease.taken.empty() || step >= behind) continue;
        rest.push_back(BatchesOf(lease, step, behind));
      }
    }
    std::sort(rest.begin(), rest.end(), [](const Run& a, const Run& b) { return a.first < b.first; });
    rest.push_back({epoch.batches, epoch.batches});
    int64_t next = 0;
    for (const Run& run : rest) {
      if (run.first > next && next == 0 && to_end) {
        runs.back().batches += run.first;
      } else if (run.first > next) {
        runs.push_back({epoch.number, next, run.first - next});
      }
      to_end = run.first > next || (epoch.batches == 0 && to_end);
      next = run.end;
    }
  }
  return taken;
}

}  // namespace dtrain
