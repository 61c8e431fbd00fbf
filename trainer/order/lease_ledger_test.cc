#include "trainer/order/lease_ledger.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/random.h"
#include "base/testing/copied_state.h"

namespace dtrain {
namespace {

OrderSpec SpecOf(int64_t rows, int64_t batch_size, int64_t devices = 1) {
  OrderSpec spec;
  spec.split = Split::kDynamic;
  spec.rows = rows;
  spec.batch_size = batch_size;
  spec.devices = devices;
  return spec;
}

LeaseLedger Ledger(const OrderSpec& spec, std::optional<int64_t> epochs, size_t workers) {
  return LeaseLedger(spec, epochs, nullptr, std::vector<int64_t>(workers));
}

void Take(LeaseLedger* ledger, int worker, int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) ledger->Taken(worker, 1);
}

using Batches = std::pair<int64_t, int64_t>;  // the first one and their number
Batches Of(const Lease* lease) {
  REQUIRE(lease != nullptr);
  return {lease->first, lease->batches};
}

// Numbers of one drawn case.
class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  int64_t operator()(int64_t min, int64_t max) {
    return min + static_cast<int64_t>(random_.Below(count_++, static_cast<uint64_t>(max - min + 1)));
  }

 private:
  const CounterRandom random_;
  uint64_t count_ = 0;
};

// A run of some workers and ps, which take the blocks of gradients of leased steps in any order that a
// worker's requests allow, and lose workers at any of them, and ps 0. Blocks are counted by batch. Now and
// then all stop at a cut, and other workers go on with what was left.
class Run {
 public:
  explicit Run(uint64_t seed) : draw_(seed), spec_(SpecOf(0, draw_(1, 4), draw_(1, 3))) {
    spec_.drop_short = draw_(0, 1) == 0;
    spec_.rows = spec_.batch_size * draw_(1, 60) + draw_(0, spec_.batch_size - 1);
    if (draw_(0, 1) == 0) spec_.chunk = draw_(2, 6);
    epochs_ = draw_(1, 4);
    for (int64_t ps = draw_(1, 3); ps > 0; --ps) of_.push_back(static_cast<uint32_t>(draw_(1, 3)));
    Start(DataPlan());
  }

  void Go() {
    for (int64_t restarts = draw_(0, 3); restarts > 0 && !ledger_->over(); --restarts) {
      for (int64_t events = draw_(1, 300); events > 0 && !ledger_->over(); --events) Happen();
      Cut();
    }
    while (!ledger_->over()) Happen();
    AddEnded();
  }

  void Check() {
    CHECK(ledger_->epochs_done() == epochs_);
    CHECK_FALSE(ledger_->HasTorn());
    for (int worker = 0; worker < static_cast<int>(workers_.size()); ++worker) {
      CHECK((ledger_->Deal(worker, 1, 1, true) == nullptr));
      CHECK(ledger_->Left(worker) == 0);
    }
    const int64_t batches = BatchesPerEpoch(spec_);
    CHECK(static_cast<int64_t>(blocks_.size()) == epochs_ * batches);
    for (const auto& [batch, of_ps] : blocks_) {
      for (size_t ps = 0; ps < of_.size(); ++ps) CHECK(of_ps[ps] == std::vector<int>(of_[ps], 1));
    }
    CHECK(static_cast<int64_t>(ended_.size()) == epochs_);
  }

 private:
  struct AtPs {
    int64_t steps = 0;
    uint32_t blocks = 0;
  };
  struct Worker {
    std::vector<Lease> leases;
    std::vector<AtPs> at;  // by ps
    int64_t min_steps() const {
      return std::min_element(at.begin(), at.end(),
                              [](const AtPs& a, const AtPs& b) { return a.steps < b.steps; })
          ->steps;
    }
  };

  void Start(const DataPlan& plan) {
    workers_.assign(static_cast<size_t>(draw_(1, 4)), {});
    std::vector<int64_t> steps;
    for (Worker& worker : workers_) {
      steps.push_back(draw_(0, 1000));
      worker.at.assign(of_.size(), {steps.back(), 0});
    }
    const auto remaining = RemainingData::Of(plan, BatchesPerEpoch(spec_));
    REQUIRE((remaining != nullptr));
    remaining_ = remaining;
    ledger_ = std::make_unique<LeaseLedger>(spec_, epochs_, remaining, steps);
  }

  // All ps take what some have, and a checkpoint is made.
  void Cut() {
    while (ledger_->HasTorn()) Happen();
    for (size_t index = 0; index < workers_.size(); ++index) {
      const std::vector<AtPs>& at = workers_[index].at;
      int64_t steps = 0;
      for (const AtPs& one : at) steps = std::max(steps, one.steps + (one.blocks > 0 ? 1 : 0));
      for (size_t ps = 0; ps < of_.size(); ++ps) {
        while (at[ps].steps < steps) Block(index, ps);
      }
      ledger_->Confirm(static_cast<int>(index), steps);
    }
    AddEnded();
    const std::optional<DataPlan> plan = Replan(remaining_->plan(), ledger_->Taken(), BatchesPerEpoch(spec_));
    REQUIRE(plan.has_value());
    Start(*plan);
  }
  void Happen() {
    if (++events_ % 40 == 0) Replace();
    const auto index = static_cast<size_t>(draw_(0, static_cast<int64_t>(workers_.size()) - 1));
    Worker& worker = workers_[index];
    const int number = static_cast<int>(index);
    const int64_t event = draw_(0, 99);
    if (event < 15) {
      const bool waits = ledger_->HasTorn();
      const bool alone = draw_(0, 1) == 0;
      const int64_t left = ledger_->Left(number);
      const Lease* const lease = ledger_->Deal(number, draw_(1, 10), draw_(1, 3), alone);
      if (lease == nullptr) return;
      CHECK((waits || lease->taken.empty()));
      if (!lease->taken.empty()) CHECK((alone && lease->Steps(spec_.devices) == 1));
      CHECK(ledger_->Left(number) == left + lease->Steps(spec_.devices));
      worker.leases.push_back(*lease);
    } else if (event < 30) {
      ledger_->Confirm(number, std::min(worker.min_steps(), worker.at[0].steps));
      AddEnded();
    } else if (event < 33) {
      Lose(index);
    } else if (event < 36) {
      Drop(index);
    } else {
      const auto ps = static_cast<size_t>(draw_(0, static_cast<int64_t>(of_.size()) - 1));
      if (worker.at[ps].steps < worker.min_steps() + 3) Block(index, ps);
    }
  }

  // ps 0 is lost, and another one goes on.
  void Replace() {
    auto next =
        std::make_unique<LeaseLedger>(spec_, epochs_, remaining_, std::vector<int64_t>(workers_.size()));
    CopyState(*ledger_, next.get());
    ledger_ = std::move(next);
  }

  int64_t RowsOf(int64_t batch) const {
    return std::min(spec_.batch_size, spec_.rows - batch * spec_.batch_size);
  }
  const Lease* LeaseOf(const Worker& worker, int64_t step) const {
    for (const Lease& lease : worker.leases) {
      if (step >= lease.step && step < lease.step + lease.Steps(spec_.devices)) return &lease;
    }
    return nullptr;
  }
  // The batches of a step, by their numbers in the epoch.
  std::vector<std::pair<int64_t, int64_t>> BatchesOf(const Lease& lease, int64_t step) const {
    std::vector<std::pair<int64_t, int64_t>> batches;
    const RemainingBatches* const left = remaining_->OfEpoch(lease.epoch);
    const int64_t first = lease.first + (step - lease.step) * spec_.devices;
    for (int64_t i = first; i < std::min(lease.first + lease.batches, first + spec_.devices); ++i) {
      batches.emplace_back(lease.epoch, left == nullptr ? i : left->At(i));
    }
    return batches;
  }

  // A ps takes the worker's next block.
  void Block(size_t index, size_t ps) {
    Worker& worker = workers_[index];
    AtPs& at = worker.at[ps];
    const Lease* const lease = LeaseOf(worker, at.steps);
    if (lease == nullptr) return;
    const auto batches = BatchesOf(*lease, at.steps);
    if (lease->taken.empty() || at.blocks >= lease->taken[ps]) {
      for (const auto& batch : batches) {
        auto& blocks = blocks_[batch];
        if (blocks.empty()) {
          for (const uint32_t of : of_) blocks.emplace_back(of);
        }
        ++blocks[ps][at.blocks];
      }
    }
    if (++at.blocks < of_[ps]) return;
    if (ps == 0) {
      int64_t rows = 0;
      for (const auto& [epoch, batch] : batches) rows += RowsOf(batch);
      const bool had = !lease->taken.empty() && lease->taken[0] == of_[0];
      const Lease* const next = ledger_->Next(static_cast<int>(index));
      REQUIRE(next != nullptr);
      CHECK(next->step == lease->step);
      ledger_->Taken(static_cast<int>(index), had ? 0 : rows);
    }
    at = {at.steps + 1, 0};
  }

  // The next step of a worker comes too late on all ps.
  void Drop(size_t index) {
    Worker& worker = workers_[index];
    const int64_t step = worker.at[0].steps;
    const bool together = std::all_of(worker.at.begin(), worker.at.end(),
                                      [&](const AtPs& at) { return at.steps == step && at.blocks == 0; });
    if (!together || LeaseOf(worker, step) == nullptr) return;
    ledger_->Dropped(static_cast<int>(index));
    for (AtPs& at : worker.at) ++at.steps;
  }

  void Lose(size_t index) {
    Worker& worker = workers_[index];
    std::vector<LeaseLedger::TakenByPs> by_ps;
    for (size_t ps = 0; ps < of_.size(); ++ps) {
      by_ps.push_back({worker.at[ps].steps, worker.at[ps].blocks, of_[ps]});
    }
    const bool keeps = draw_(0, 2) == 0;
    const int64_t torn = ledger_->Lose(static_cast<int>(index), by_ps, keeps);
    CHECK(torn >= 0);
    if (torn > 0) CHECK(ledger_->HasTorn());
    if (!keeps) CHECK(ledger_->Left(static_cast<int>(index)) == 0);
    worker.leases.assign(ledger_->Of(static_cast<int>(index)).begin(),
                         ledger_->Of(static_cast<int>(index)).end());
    worker.at.assign(of_.size(), {worker.at[0].steps, 0});
    AddEnded();
  }

  void AddEnded() {
    for (const LeaseLedger::EndedEpoch& ended : ledger_->TakeEnded()) {
      CHECK(ended_.insert(ended.epoch).second);
      int64_t rows = 0;
      const RemainingBatches* const left = remaining_->OfEpoch(ended.epoch);
      const int64_t batches = left == nullptr ? BatchesPerEpoch(spec_) : left->count();
      for (int64_t i = 0; i < batches; ++i) rows += RowsOf(left == nullptr ? i : left->At(i));
      CHECK(ended.of == rows);
      CHECK(ended.rows == rows);
    }
  }

  Draw draw_;
  int64_t events_ = 0;
  OrderSpec spec_;
  int64_t epochs_ = 0;
  std::vector<uint32_t> of_;  // blocks of a gradient, by ps
  std::vector<Worker> workers_;
  std::shared_ptr<const RemainingData> remaining_;
  std::unique_ptr<LeaseLedger> ledger_;
  std::map<std::pair<int64_t, int64_t>, std::vector<std::vector<int>>> blocks_;  // by epoch and batch
  std::set<int64_t> ended_;
};

TEST_CASE("lease ledger: whoever is lost when, each ps takes each block of each batch of each epoch once") {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    CAPTURE(seed);
    Run run(seed);
    run.Go();
    run.Check();
  }
}

TEST_CASE(
    "lease ledger: a lease is what was asked for, at most a part of what is free, and at least so much") {
  LeaseLedger ledger = Ledger(SpecOf(1000, 1), 1, 5);
  CHECK(Of(ledger.Deal(0, 7, 2, false)) == Batches(0, 7));
  CHECK(Of(ledger.Deal(1, 500, 2, false)) == Batches(7, 99));  // 1 / 10 of 993
  CHECK(Of(ledger.Deal(0, 1, 2, false)) == Batches(106, 2));
  CHECK(ledger.Of(0).back().step == 7);
  CHECK(ledger.Left(0) == 9);
  Take(&ledger, 0, 7);
  CHECK(ledger.Left(0) == 2);
  CHECK(ledger.Next(0)->first == 106);
  Take(&ledger, 0, 2);
  CHECK((ledger.Next(0) == nullptr));
  CHECK(ledger.Of(0).size() == 2);
  ledger.Confirm(0, 8);
  CHECK(ledger.Of(0).size() == 1);
}

TEST_CASE("lease ledger: steps are of batches for all devices, up to the last step of an epoch") {
  LeaseLedger ledger = Ledger(SpecOf(11, 1, 4), 1, 1);
  CHECK(Of(ledger.Deal(0, 1, 1, false)) == Batches(0, 4));
  CHECK(Of(ledger.Deal(0, 5, 5, false)) == Batches(4, 7));
  CHECK(ledger.Left(0) == 3);
}

TEST_CASE("lease ledger: leases end with a window where that does not change them much") {
  OrderSpec spec = SpecOf(1000, 1);
  spec.chunk = 8;
  LeaseLedger ledger = Ledger(spec, 1, 1);
  CHECK(Of(ledger.Deal(0, 20, 2, false)) == Batches(0, 16));
  CHECK(Of(ledger.Deal(0, 5, 2, false)) == Batches(16, 8));   // less than a window was asked for
  CHECK(Of(ledger.Deal(0, 3, 2, false)) == Batches(24, 3));   // 8 are more than twice as many
  CHECK(Of(ledger.Deal(0, 7, 6, false)) == Batches(27, 13));  // 5 would be too few
}

TEST_CASE(
    "lease ledger: workers begin the next epoch while the first is in work, and not the one behind it") {
  LeaseLedger ledger = Ledger(SpecOf(4, 1), 3, 2);
  CHECK(Of(ledger.Deal(0, 4, 4, false)) == Batches(0, 4));
  CHECK(ledger.Deal(1, 4, 4, false)->epoch == 1);
  CHECK((ledger.Deal(1, 4, 4, false) == nullptr));
  Take(&ledger, 1, 4);
  ledger.Confirm(1, 4);
  CHECK(ledger.TakeEnded().empty());
  Take(&ledger, 0, 4);
  CHECK(ledger.epochs_done() == 0);  // another ps may lack them
  ledger.Confirm(0, 4);
  CHECK(ledger.epochs_done() == 2);
  const auto ended = ledger.TakeEnded();
  REQUIRE(ended.size() == 2);
  CHECK(ended[1].epoch == 1);
  CHECK(ended[1].rows == 4);
  CHECK(ended[1].of == 4);
  CHECK(ledger.TakeEnded().empty());
  CHECK_FALSE(ledger.over());
  CHECK(ledger.Deal(0, 4, 4, false)->epoch == 2);
}

TEST_CASE(
    "lease ledger: what no ps has of a lost worker is leased first, what some have alone and for the "
    "others") {
  LeaseLedger ledger = Ledger(SpecOf(100, 1), 1, 2);
  ledger.Deal(0, 10, 10, false);
  Take(&ledger, 0, 2);
  // Of steps 0 to 9 both ps have the first, ps 0 the second and a block of the third.
  CHECK(ledger.Lose(0, {{2, 1, 4}, {1, 0, 3}}, false) == 2);
  CHECK(ledger.HasTorn());
  CHECK((ledger.Deal(1, 1, 1, false) == nullptr));
  const Lease* torn = ledger.Deal(1, 1, 1, true);
  CHECK(Of(torn) == Batches(1, 1));
  CHECK(torn->taken == std::vector<uint32_t>{4, 0});
  torn = ledger.Deal(1, 1, 1, true);
  CHECK(Of(torn) == Batches(2, 1));
  CHECK(torn->taken == std::vector<uint32_t>{1, 0});
  CHECK(Of(ledger.Deal(1, 2, 2, true)) == Batches(3, 2));
  // Sent again are the blocks that ps 0 has, and two of ps 1.
  CHECK(ledger.Lose(1, {{0, 3, 4}, {0, 2, 3}}, false) == 2);
  torn = ledger.Deal(0, 1, 1, true);
  CHECK(torn->taken == std::vector<uint32_t>{4, 2});
  CHECK(torn->step == 2);
  Take(&ledger, 0, 1);
  ledger.Deal(0, 1, 1, true);
  Take(&ledger, 0, 1);
  CHECK(ledger.HasTorn());
  ledger.Confirm(0, 4);
  CHECK_FALSE(ledger.HasTorn());
}

TEST_CASE("lease ledger: a lost worker that is waited for keeps what it had from its next step on") {
  LeaseLedger ledger = Ledger(SpecOf(100, 1), 1, 2);
  ledger.Deal(0, 5, 5, false);
  Take(&ledger, 0, 3);
  CHECK(ledger.Lose(0, {{3, 0, 1}, {2, 1, 2}}, true) == 1);
  const std::deque<Lease>& kept = ledger.Of(0);
  REQUIRE(kept.size() == 2);
  CHECK(kept[0].step == 3);
  CHECK(Of(&kept[0]) == Batches(2, 1));
  CHECK(kept[0].taken == std::vector<uint32_t>{1, 1});
  CHECK(kept[1].step == 4);
  CHECK(Of(&kept[1]) == Batches(3, 2));
  CHECK(ledger.HasTorn());
  CHECK(Of(ledger.Deal(1, 1, 1, true)) == Batches(5, 1));
}

TEST_CASE(
    "lease ledger: a gradient that came too late is computed again, and not when its worker is lost too") {
  LeaseLedger ledger = Ledger(SpecOf(100, 1), 1, 2);
  ledger.Deal(0, 5, 5, false);
  Take(&ledger, 0, 1);
  ledger.Dropped(0);
  CHECK(Of(ledger.Deal(1, 3, 3, false)) == Batches(1, 1));
  CHECK(ledger.Lose(0, {{2, 0, 1}, {1, 0, 1}}, false) == 0);
  CHECK(Of(ledger.Deal(0, 5, 5, false)) == Batches(2, 5));
}

TEST_CASE("lease ledger: an epoch ends though the worker whose gradient came too late is not confirmed yet") {
  LeaseLedger ledger = Ledger(SpecOf(2, 1), 1, 2);
  for (int lease = 0; lease < 2; ++lease) ledger.Deal(0, 1, 1, false);
  Take(&ledger, 0, 1);
  ledger.Confirm(0, 1);
  ledger.Dropped(0);
  ledger.Deal(1, 1, 1, false);
  Take(&ledger, 1, 1);
  ledger.Confirm(1, 1);
  CHECK(ledger.over());
  ledger.Confirm(0, 2);
  CHECK(ledger.Of(0).empty());
}

TEST_CASE("lease ledger: what ps 0 has taken is a few runs, and a run goes on over the ends of epochs") {
  LeaseLedger ledger = Ledger(SpecOf(10, 1), std::nullopt, 2);
  CHECK(ledger.Taken().runs.empty());
  for (int epoch = 0; epoch < 1000; ++epoch) {
    ledger.Deal(0, 10, 10, false);
    Take(&ledger, 0, 10);
    ledger.Confirm(0, 10 * (epoch + 1));
  }
  ledger.Deal(0, 4, 4, false);
  ledger.Deal(1, 4, 4, false);
  Take(&ledger, 0, 2);
  Take(&ledger, 1, 1);
  CHECK(ledger.Taken().runs == std::vector<TakenRun>{{0, 0, 10002}, {1000, 4, 1}});
  const std::optional<DataPlan> plan = Replan({}, ledger.Taken(), 10);
  REQUIRE(plan.has_value());
  CHECK(plan->epoch == 1000);
  CHECK(RemainingData::Of(*plan, 10)->begun()[0].count() == 7);
}

TEST_CASE("lease ledger: 64 workers of 10^8 batches need as little time and memory as of few") {
  LeaseLedger ledger = Ledger(SpecOf(100000000, 1), 1, 64);
  const CounterRandom random(3);
  std::vector<int64_t> taken(64);
  for (uint64_t i = 0; i < 100000; ++i) {
    const auto worker = static_cast<size_t>(random.Below(i, 64));
    const int index = static_cast<int>(worker);
    if (ledger.Left(index) == 0) ledger.Deal(index, 3, 3, false);
    Take(&ledger, index, 1);
    ++taken[worker];
    if (i % 100 == 0) ledger.Lose(index, {{taken[worker], 0, 1}}, false);
    ledger.Confirm(index, taken[worker]);
    REQUIRE(ledger.Of(index).size() <= 1);
  }
  CHECK(ledger.Taken().runs.size() <= 2 * 64);
}

}  // namespace
}  // namespace dtrain
