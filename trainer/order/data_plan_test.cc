#include "trainer/order/data_plan.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

#include "base/random.h"
#include "trainer/config/config.h"
#include "trainer/order/lease_ledger.h"
#include "trainer/order/order.h"
#include "trainer/order/positions.h"

namespace dtrain {
namespace {

// Numbers of one drawn case.
class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}
  int64_t operator()(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_.Below(count_++, static_cast<uint64_t>(most - least + 1)));
  }

 private:
  const CounterRandom random_;
  uint64_t count_ = 0;
};

// A run that is stopped and goes on with other workers again and again. Each time some take few steps, some
// many and some none; what they read is counted.
class ManyRuns {
 public:
  explicit ManyRuns(uint64_t seed) : draw_(seed) {
    config_.data.seed = seed;
    config_.data.shuffle = draw_(0, 3) > 0;
    config_.data.validation = draw_(0, 5);
    config_.data.last_batch = draw_(0, 1) == 0 ? LastBatch::kKeep : LastBatch::kDrop;
    config_.train.batch_size = draw_(1, 7);
    config_.train.epochs = draw_(1, 5);
    if (draw_(0, 1) == 0) config_.train.mode = TrainMode::kSync;
    // Enough for four workers of three devices.
    rows_ = config_.data.validation + config_.train.batch_size * draw_(12, 60) + draw_(0, 6);
    if (draw_(0, 1) == 0) {
      config_.data.cache = DataCache::kNone;
      config_.data.shuffle_rows = draw_(1, 100);
    }
    blocks_ = EqualBlocks(rows_, draw_(1, 20));
  }

  void Go() {
    const int64_t restarts = draw_(1, 5);
    for (int64_t restart = 0; restart < restarts; ++restart) RunOnce(/*to_end=*/false);
    RunOnce(/*to_end=*/true);
  }

  void Check() const {
    const OrderSpec spec = OrderSpecOf(config_, rows_, 0, 1);
    const int64_t in_epoch = spec.drop_short ? spec.rows / spec.batch_size * spec.batch_size : spec.rows;
    CHECK(static_cast<int64_t>(read_.size()) == *config_.train.epochs * in_epoch);
    for (const auto& [row, times] : read_) CHECK(times == 1);
    if (config_.train.mode != TrainMode::kSync) CHECK(*total_ == steps_);  // else it counts rounds
  }

 private:
  void RunOnce(bool to_end) {
    const auto workers = static_cast<int>(draw_(1, 4));
    config_.cluster.worker.assign(static_cast<size_t>(workers), "");
    config_.device.ids.assign(static_cast<size_t>(draw_(1, 3)), 0);
    // With backup workers epochs do not end in step.
    config_.train.aggregate.reset();
    if (config_.train.mode == TrainMode::kSync && draw_(0, 2) == 0) config_.train.aggregate = 1;
    config_.data.split = std::vector{Split::kShard, Split::kFeed, Split::kDynamic}[draw_(0, 2)];
    Positions now =
        positions_ ? ResumeAt(steps_, *positions_, config_, rows_).positions : StartOfData(config_, rows_);
    REQUIRE(FromJson(ToJson(now), &now));
    total_ = TotalSteps(config_, rows_ - config_.data.validation, workers, now.plan);
    const int64_t most = draw_(0, 1) == 0 ? 5 : 100;
    if (config_.data.split == Split::kDynamic) {
      ReadLeased(workers, to_end ? INT64_MAX : draw_(0, workers * most), &now);
    } else {
      for (int worker = 0; worker < workers; ++worker) {
        const int64_t steps = to_end ? INT64_MAX : draw_(0, most);
        Read(worker, workers, steps, &now);
      }
    }
    positions_ = now;
    if (to_end) CHECK(AllEpochsTaken(now, config_));
  }

  // Workers take steps in any order, each of its leases.
  void ReadLeased(int workers, int64_t steps, Positions* now) {
    std::vector<std::unique_ptr<StepRows>> rows;
    for (int worker = 0; worker < workers; ++worker) {
      rows.push_back(std::make_unique<StepRows>(config_, rows_, worker, workers, nullptr, blocks_));
      rows.back()->Follow(rows.back()->RemainingOf(now->plan));
    }
    LeaseLedger ledger(OrderSpecOf(config_, rows_, 0, workers), config_.train.epochs,
                       rows[0]->RemainingOf(now->plan), now->local_steps);
    while (steps > 0 && !ledger.over()) {
      const auto worker = static_cast<int>(draw_(0, workers - 1));
      StepRows& of_worker = *rows[static_cast<size_t>(worker)];
      int64_t& step = now->local_steps[static_cast<size_t>(worker)];
      gpu::Span<const int64_t> read;
      while (!of_worker.Read(step, &read)) {
        const Lease* const lease = ledger.Deal(worker, draw_(1, 5), draw_(1, 3), false);
        if (lease == nullptr) break;
        of_worker.Take(*lease);
      }
      if (ledger.Left(worker) == 0) continue;
      const StepPlace place = of_worker.PlaceOf(step);
      CHECK(place.batch < place.batches);
      for (const int64_t row : read) ++read_[{place.epoch, row}];
      ledger.Taken(worker, read.size);
      ledger.Confirm(worker, ++step);
      --steps;
      ++steps_;
    }
    now->runs = ledger.Taken().runs;
  }

  void Read(int worker, int workers, int64_t steps, Positions* now) {
    StepRows rows(config_, rows_, worker, workers, nullptr, blocks_);
    rows.Follow(rows.RemainingOf(now->plan));
    int64_t& step = now->local_steps[static_cast<size_t>(worker)];
    gpu::Span<const int64_t> read;
    for (int64_t epoch = 0; steps > 0 && rows.Read(step, &read); ++step, --steps, ++steps_) {
      CHECK((read.size > 0 || EndsInStep(config_)));
      const StepPlace place = rows.PlaceOf(step);
      CHECK(place.epoch >= epoch);
      CHECK(place.batch < place.batches);
      epoch = place.epoch;
      for (const int64_t row : read) ++read_[{epoch, row}];
    }
  }

  Draw draw_;
  Config config_;
  int64_t rows_ = 0;
  RowBlocks blocks_;
  std::optional<Positions> positions_;
  std::optional<int64_t> total_;                     // steps of all runs, as the last one expected
  int64_t steps_ = 0;                                // that were taken
  std::map<std::pair<int64_t, int64_t>, int> read_;  // by epoch and row
};

TEST_CASE("data plan: whoever takes over from whom, every batch of every epoch is read once") {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    CAPTURE(seed);
    ManyRuns runs(seed);
    runs.Go();
    runs.Check();
  }
}

// Rows in batches of one, in their order, for one of two workers.
OrderSpec InOrder(int64_t rows, int worker) {
  OrderSpec spec;
  spec.rows = rows;
  spec.shuffle = false;
  spec.worker = worker;
  spec.workers = 2;
  return spec;
}

TEST_CASE("data plan: what is left is dealt in its order to the workers in turn, then whole epochs") {
  // Of 10 batches in turns of two workers, batches 0, 2, 4 and 1 are taken.
  const DataPlan plan = *Replan({}, {1, {3, 1}}, 10);
  const std::shared_ptr<const RemainingData> rest = RemainingData::Of(plan, 10);
  std::vector<int64_t> read[2];
  for (const int worker : {0, 1}) {
    StepRows rows(InOrder(10, worker), 2);
    rows.Follow(rest);
    gpu::Span<const int64_t> batch;
    for (int64_t step = 0; rows.Read(step, &batch); ++step) read[worker].push_back(batch[0]);
  }
  CHECK(read[0] == std::vector<int64_t>{3, 6, 8, 0, 2, 4, 6, 8});
  CHECK(read[1] == std::vector<int64_t>{5, 7, 9, 1, 3, 5, 7, 9});
}

TEST_CASE("data plan: epochs that are complete leave no trace, however many there were") {
  const DataPlan even = *Replan({}, {1, {int64_t{3} << 40, int64_t{2} << 40}}, 5);
  CHECK(even.epoch == int64_t{1} << 40);
  CHECK(even.taken.empty());
  const DataPlan behind = *Replan({}, {1, {300, 200, 199}}, 4);  // shares of 2, 1 and 1
  CHECK(behind.epoch == 150);
  CHECK(behind.taken.size() == 1);
  CHECK(behind.taken[0].local_steps == std::vector<int64_t>{0, 50, 49});
  // The next numbering fills the gaps.
  const std::shared_ptr<const RemainingData> rest = RemainingData::Of(behind, 4);
  int64_t left = 0;
  for (const RemainingBatches& epoch : rest->begun()) left += epoch.count();
  CHECK(left == 100 + 1);
  CHECK(rest->first_whole() == 200);
  const DataPlan filled = *Replan(behind, {1, {left}}, 4);
  CHECK(filled.epoch == 200);
  CHECK(filled.taken.empty());
}

TEST_CASE("data plan: a worker whose share of a begun epoch is empty goes on with the next") {
  StepRows order(InOrder(4, 1));
  order.Follow(RemainingData::Of(*Replan({}, {1, {3}}, 4), 4));  // batch 3 is left: worker 0's
  CHECK(order.PlaceOf(0).epoch == 1);
  CHECK(order.PlaceOf(0).batches == 2);
  CHECK(order.Rows(1, 0)[0] == 1);
}

TEST_CASE("data plan: in step a worker whose share of a begun epoch is empty has steps without rows there") {
  OrderSpec spec = InOrder(4, 1);
  spec.in_step = true;
  StepRows order(spec);
  order.Follow(RemainingData::Of(*Replan({}, {1, {3}}, 4), 4));  // batch 3 is left: worker 0's
  CHECK(order.PlaceOf(0).epoch == 0);
  CHECK(order.PlaceOf(0).batches == 1);
  CHECK(order.Rows(0, 0).size == 0);
  CHECK(order.PlaceOf(1).epoch == 1);
}

TEST_CASE("data plan: steps that ended epochs in step took what they read") {
  const DataPlan plan = *Replan({}, {1, {5, 4}, true}, 3);  // of 3 batches: 2 steps an epoch for both
  CHECK(plan.epoch == 2);
  const std::shared_ptr<const RemainingData> rest = RemainingData::Of(plan, 3);
  REQUIRE(rest->begun().size() == 1);
  CHECK(rest->begun()[0].count() == 2);
  CHECK(rest->begun()[0].At(0) == 1);
  CHECK(rest->begun()[0].At(1) == 2);
  CHECK(Replan({}, {1, {4, 4}, true}, 3)->taken.empty());
}

TEST_CASE("data plan: runs are of what was left of their epoch, and one may go on in the next epochs") {
  const DataPlan plan = *Replan(*Replan({}, {1, {3, 1}}, 10), {1, {}, false, 1, {{0, 1, 1}, {0, 4, 13}}}, 10);
  CHECK(plan.epoch == 0);
  const std::shared_ptr<const RemainingData> rest = RemainingData::Of(plan, 10);
  REQUIRE(rest->begun().size() == 3);  // of 3, 5, 6, 7, 8 and 9
  CHECK(rest->begun()[0].count() == 3);
  CHECK(rest->begun()[0].At(1) == 6);
  CHECK(rest->begun()[1].count() == 0);
  CHECK(rest->begun()[2].count() == 9);
  CHECK(rest->begun()[2].At(0) == 1);
  DataPlan read;
  REQUIRE(FromJson(ToJson(plan), &read));
  CHECK(read == plan);
  CHECK(Replan({}, {1, {}, false, 1, {{0, 0, int64_t{10} << 40}}}, 10)->epoch == int64_t{1} << 40);
}

TEST_CASE("data plan: data with more gaps than can be dealt anew are told from those that can") {
  const int64_t many = int64_t{1} << 26;
  CHECK_FALSE(Replan({}, {1, {many, 0}}, 2).has_value());
  DataPlan hostile;
  hostile.taken = {{1, {many, 0}}, {1, {many, 0}}};
  CHECK((RemainingData::Of(hostile, 2) == nullptr));
  CHECK((RemainingData::Of(hostile, 0) == nullptr));
}

}  // namespace
}  // namespace dtrain
