#include "trainer/order/order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "trainer/config/config.h"

namespace dtrain {
namespace {

OrderSpec SpecOf(int64_t rows, int64_t batch_size, Split split = Split::kShard, int worker = 0,
                 int workers = 1) {
  OrderSpec spec;
  spec.rows = rows;
  spec.batch_size = batch_size;
  spec.split = split;
  spec.worker = worker;
  spec.workers = workers;
  return spec;
}

void Append(gpu::Span<const int64_t> more, std::vector<int64_t>* rows) {
  rows->insert(rows->end(), more.begin(), more.end());
}

std::vector<int64_t> RowsOf(StepRows* order, int64_t epoch) {
  std::vector<int64_t> rows;
  for (int64_t b = 0; b < order->steps_per_epoch(); ++b) Append(order->Rows(epoch, b), &rows);
  return rows;
}

std::vector<int64_t> RowsOf(const OrderSpec& spec, int64_t epoch) {
  StepRows order(spec);
  return RowsOf(&order, epoch);
}

std::vector<int64_t> Sorted(std::vector<int64_t> rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}

std::vector<int64_t> Counting(int64_t first, int64_t count) {
  std::vector<int64_t> rows(count);
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

TEST_CASE("order: with shard every row is read once per epoch, by one of the workers") {
  for (const int workers : {1, 2, 3, 7}) {
    std::vector<int64_t> all;
    for (int worker = 0; worker < workers; ++worker) {
      Append(RowsOf(SpecOf(103, 10, Split::kShard, worker, workers), 4), &all);
    }
    CHECK(Sorted(all) == Counting(0, 103));
  }
}

TEST_CASE("order: with shard the batches of n workers in turn are those of one worker") {
  std::vector<int64_t> plan;
  StepRows first(SpecOf(100, 10, Split::kShard, 0, 2)), second(SpecOf(100, 10, Split::kShard, 1, 2));
  for (int64_t b = 0; b < 5; ++b) {
    for (StepRows* order : {&first, &second}) Append(order->Rows(2, b), &plan);
  }
  CHECK(plan == RowsOf(SpecOf(100, 10), 2));
}

TEST_CASE("order: with full each worker reads every row once per epoch, in an order of its own") {
  const std::vector<int64_t> a = RowsOf(SpecOf(103, 10, Split::kFull, 0, 2), 0),
                             b = RowsOf(SpecOf(103, 10, Split::kFull, 1, 2), 0);
  CHECK(Sorted(a) == Counting(0, 103));
  CHECK(Sorted(b) == Counting(0, 103));
  CHECK(a != b);
}

TEST_CASE("order: epochs and seeds differ, and an epoch does not depend on those before") {
  OrderSpec spec = SpecOf(50, 10);
  StepRows order(spec);
  const std::vector<int64_t> zero = RowsOf(&order, 0), one = RowsOf(&order, 1);
  CHECK(zero != one);
  CHECK(RowsOf(spec, 1) == one);
  CHECK(RowsOf(&order, 0) == zero);
  spec.seed = 2;
  CHECK(RowsOf(spec, 0) != zero);
}

TEST_CASE("order: without shuffle rows come as they lie, after the held-out ones") {
  OrderSpec spec = SpecOf(25, 10);
  spec.shuffle = false;
  spec.first_row = 7;
  CHECK(RowsOf(spec, 0) == Counting(7, 25));
  CHECK(RowsOf(spec, 5) == Counting(7, 25));
}

TEST_CASE("order: the short last batch is kept or dropped") {
  OrderSpec spec = SpecOf(25, 10, Split::kFull, 0, 1);
  StepRows kept(spec);
  CHECK(kept.steps_per_epoch() == 3);
  CHECK(kept.Rows(0, 2).size == 5);
  spec.drop_short = true;
  CHECK(StepRows(spec).steps_per_epoch() == 2);
  spec.rows = 30;
  CHECK(StepRows(spec).steps_per_epoch() == 3);
}

TEST_CASE("order: a worker of d devices takes d of its batches at once, and at the end those that are left") {
  for (const Split split : {Split::kShard, Split::kFull}) {
    for (const int worker : {0, 1}) {
      OrderSpec spec = SpecOf(95, 10, split, worker, 2);  // 10 batches: 5 of each worker with shard
      const std::vector<int64_t> single = RowsOf(spec, 3);
      spec.devices = 2;
      StepRows order(spec);
      CHECK(order.steps_per_epoch() == (split == Split::kShard ? 3 : 5));
      CHECK(RowsOf(&order, 3) == single);
      CHECK(order.Rows(3, 1).size == 20);
      const int64_t last_rows = order.Rows(3, order.steps_per_epoch() - 1).size;
      CHECK(last_rows == (split == Split::kFull ? 15 : worker == 0 ? 10 : 5));
    }
  }
}

TEST_CASE("order: n workers of d devices take the rows of n * d workers of one in each step") {
  for (int64_t step = 0; step < 3; ++step) {
    std::vector<int64_t> plan, expected;
    for (int worker = 0; worker < 6; ++worker) {
      Append(StepRows(SpecOf(180, 10, Split::kShard, worker, 6)).Rows(1, step), &expected);
    }
    for (int worker = 0; worker < 2; ++worker) {
      OrderSpec spec = SpecOf(180, 10, Split::kShard, worker, 2);
      spec.devices = 3;
      Append(StepRows(spec).Rows(1, step), &plan);
    }
    CHECK(Sorted(plan) == Sorted(expected));
  }
}

TEST_CASE("order: with several devices a run has as many steps as its workers take") {
  for (const Split split : {Split::kShard, Split::kFull}) {
    for (int64_t devices = 1; devices <= 4; ++devices) {
      for (int workers = 1; workers <= 4; ++workers) {
        CAPTURE(devices);
        CAPTURE(workers);
        Config config;
        config.train.batch_size = 10;
        config.train.epochs = 3;
        config.data.split = split;
        config.device.ids.assign(static_cast<size_t>(devices), 0);
        int64_t steps = 0;
        for (int worker = 0; worker < workers; ++worker) {
          OrderSpec spec = SpecOf(345, 10, split, worker, workers);
          spec.devices = devices;
          steps += 3 * StepRows(spec).steps_per_epoch();
        }
        CHECK(TotalSteps(config, 345, workers) == steps);
      }
    }
  }
}

TEST_CASE("order: in step all workers have as many steps, and the last one may have no rows") {
  for (const int64_t devices : {1, 2}) {
    for (int workers = 1; workers <= 4; ++workers) {
      std::vector<int64_t> all;
      for (int worker = 0; worker < workers; ++worker) {
        OrderSpec spec = SpecOf(101, 10, Split::kShard, worker, workers);  // 11 batches
        spec.devices = devices;
        const std::vector<int64_t> own = RowsOf(spec, 3);
        spec.in_step = true;
        StepRows order(spec);
        CHECK(order.steps_per_epoch() == CeilDiv(CeilDiv(11, workers), devices));
        CHECK(order.PlaceOf(order.steps_per_epoch()).epoch == 1);
        CHECK(RowsOf(&order, 3) == own);
        Append(own, &all);
      }
      CHECK(Sorted(all) == Counting(0, 101));
    }
  }
  OrderSpec spec = SpecOf(101, 50, Split::kShard, 1, 2);
  spec.in_step = true;
  StepRows second(spec);
  CHECK(second.Rows(0, 0).size == 50);
  CHECK(second.Rows(0, 1).size == 0);
}

TEST_CASE(
    "order: workers end epochs in step in sync alone, where rounds have all of them and share the rows") {
  const auto in_step = [](TrainMode mode, std::optional<int64_t> aggregate, Split split) {
    Config config;
    config.cluster.worker.assign(3, "");
    config.train.mode = mode;
    config.train.aggregate = aggregate;
    config.data.split = split;
    return EndsInStep(config);
  };
  CHECK(in_step(TrainMode::kSync, std::nullopt, Split::kShard));
  CHECK(in_step(TrainMode::kSync, 3, Split::kShard));
  CHECK(in_step(TrainMode::kSync, 3, Split::kFeed));
  CHECK_FALSE(in_step(TrainMode::kSync, 3, Split::kFull));
  CHECK_FALSE(in_step(TrainMode::kSync, 2, Split::kShard));
  CHECK_FALSE(in_step(TrainMode::kAsync, std::nullopt, Split::kShard));
  CHECK_FALSE(in_step(TrainMode::kSsp, std::nullopt, Split::kShard));
}

TEST_CASE("order: a run ends at the first reached of train.steps and the epochs of all workers") {
  Config config;
  config.train.batch_size = 10;
  CHECK_FALSE(TotalSteps(config, 95, 2).has_value());
  config.train.epochs = 3;
  CHECK_FALSE(TotalSteps(config, std::nullopt, 2).has_value());
  CHECK(TotalSteps(config, 95, 2) == 30);
  config.data.last_batch = LastBatch::kDrop;
  CHECK(TotalSteps(config, 95, 2) == 27);  // 9 batches: 5 of one worker, 4 of the other
  config.data.split = Split::kFull;
  CHECK(TotalSteps(config, 95, 2) == 54);
  config.train.mode = TrainMode::kSync;
  CHECK(TotalSteps(config, 95, 2) == 27);
  config.data.split = Split::kShard;
  CHECK(TotalSteps(config, 95, 2) == 15);  // 5 rounds an epoch, the last without the other worker
  config.train.aggregate = 2;
  CHECK(TotalSteps(config, 95, 2) == 15);
  config.train.aggregate = 1;
  CHECK_FALSE(TotalSteps(config, 95, 2).has_value());  // it depends on who is slow
  config.train.steps = 20;
  CHECK(TotalSteps(config, 95, 2) == 20);
  config.train.steps.reset();
  config.train.aggregate.reset();
  config.data.split = Split::kFull;
  config.train.mode = TrainMode::kAsync;
  config.train.steps = 50;
  CHECK(TotalSteps(config, 95, 2) == 50);
  config.train.steps = 70;
  CHECK(TotalSteps(config, 95, 2) == 54);
}

TEST_CASE("order: more steps of epochs than can be counted are as many as can be") {
  Config config;
  config.train.batch_size = 1;
  config.train.epochs = 1000000000000;
  CHECK(TotalSteps(config, 1000000000000, 1) == INT64_MAX);
  config.train.steps = 5;
  CHECK(TotalSteps(config, 1000000000000, 1) == 5);
}

TEST_CASE("order: every row comes first about equally often") {
  StepRows order(SpecOf(10, 1));
  std::vector<int> first(10);
  for (int64_t epoch = 0; epoch < 10000; ++epoch) ++first[order.Rows(epoch, 0)[0]];
  for (const int count : first) {
    CHECK(count > 850);  // 1000 expected, standard deviation 30
    CHECK(count < 1150);
  }
}

TEST_CASE("order: workers that share permutations read what they would have read alone") {
  const auto shared = std::make_shared<Permutations>();
  std::vector<StepRows> orders;
  for (int worker = 0; worker < 3; ++worker) {
    orders.emplace_back(SpecOf(100, 8, Split::kFeed, worker, 3), std::nullopt, shared);
  }
  // Not in step, and back again.
  for (const auto& [worker, epoch] :
       std::vector<std::pair<int, int64_t>>{{0, 0}, {1, 0}, {1, 1}, {0, 1}, {2, 0}, {2, 2}, {1, 0}}) {
    CHECK(RowsOf(&orders[static_cast<size_t>(worker)], epoch) ==
          RowsOf(SpecOf(100, 8, Split::kShard, worker, 3), epoch));
  }
}

TEST_CASE("order: a large permutation is made with pauses for other work, one for all that share it") {
  int pauses = 0;
  Permutations shared([&pauses] { ++pauses; });
  const OrderSpec spec = SpecOf(int64_t{3} << 20, 1);
  const Permutations::Rows first = shared.Of(spec, 4);
  CHECK(pauses == 3);
  CHECK((shared.Of(spec, 4) == first));
  CHECK(pauses == 3);
}

std::vector<int64_t> RowsAt(StepRows* order, int64_t step) {
  gpu::Span<const int64_t> rows;
  REQUIRE(order->Read(step, &rows));
  return {rows.begin(), rows.end()};
}

TEST_CASE("order: a leased step has the rows of its batches, cut short where the lease ends") {
  OrderSpec spec = SpecOf(95, 10, Split::kDynamic, 1, 2);
  spec.devices = 2;
  StepRows order(spec, 2), whole(SpecOf(95, 10));
  gpu::Span<const int64_t> none;
  CHECK_FALSE(order.Read(7, &none));
  order.Take({7, 1, 2, 3, {}});
  order.Take({9, 0, 9, 1, {}});
  const auto batches = [&](int64_t epoch, int64_t first, int64_t end) {
    std::vector<int64_t> rows;
    for (int64_t batch = first; batch < end; ++batch) Append(whole.Rows(epoch, batch), &rows);
    return rows;
  };
  CHECK(RowsAt(&order, 7) == batches(1, 2, 4));
  CHECK(RowsAt(&order, 8) == batches(1, 4, 5));
  CHECK(RowsAt(&order, 9) == batches(0, 9, 10));
  CHECK(order.PlaceOf(8).epoch == 1);  // it may be the last one that was returned
  CHECK(order.PlaceOf(8).batch == 1);
  CHECK(order.PlaceOf(8).batches == 2);
  CHECK_FALSE(order.Read(10, &none));
  order.Take({9, 1, 0, 4, {}});  // what was known of step 9 is gone
  CHECK(RowsAt(&order, 9) == batches(1, 0, 2));
  CHECK(RowsAt(&order, 10) == batches(1, 2, 4));
  order.Take({10, 0, 0, 2, {}});
  CHECK(RowsAt(&order, 9) == batches(1, 0, 2));
  CHECK(RowsAt(&order, 10) == batches(0, 0, 2));
  order.Follow(nullptr);
  CHECK_FALSE(order.Read(10, &none));
}

TEST_CASE("order: a lease of batches that the data do not have is a failure of the task") {
  StepRows order(SpecOf(100, 10, Split::kDynamic));
  for (const Lease& lease :
       {Lease{0, 0, 9, 2, {}}, Lease{0, 0, 10, 1, {}}, Lease{0, 0, -1, 2, {}}, Lease{0, -1, 0, 1, {}},
        Lease{-1, 0, 0, 1, {}}, Lease{0, 0, 0, 0, {}}, Lease{0, 0, 1, INT64_MAX, {}}}) {
    CHECK_THROWS_AS(order.Take(lease), Failure);
  }
}

TEST_CASE("order: the next window of a lease, and the first one of the lease behind it, are announced") {
  OrderSpec spec = SpecOf(100, 5, Split::kDynamic);
  spec.shuffle = false;
  spec.window = 20;
  std::vector<std::pair<int64_t, int64_t>> told;
  StepRows order(spec, std::nullopt, nullptr, [&](const std::vector<RowRun>& runs) {
    for (const RowRun& run : runs) told.emplace_back(run.begin, run.end);
  });
  order.Take({0, 0, 3, 3, {}});  // rows 15 to 30
  RowsAt(&order, 0);
  CHECK(told == std::vector<std::pair<int64_t, int64_t>>{{0, 20}, {20, 40}});
  told.clear();
  RowsAt(&order, 1);
  CHECK(told == std::vector<std::pair<int64_t, int64_t>>{{20, 40}});
  told.clear();
  order.Take({3, 0, 12, 2, {}});  // rows 60 to 70
  CHECK(told == std::vector<std::pair<int64_t, int64_t>>{{20, 40}, {60, 80}});
  order.Take({5, 0, 16, 2, {}});
  told.clear();
  RowsAt(&order, 3);
  CHECK(told == std::vector<std::pair<int64_t, int64_t>>{{60, 80}, {80, 100}});
}

TEST_CASE("order: leased batches are those of shard, so an epoch has as many steps as all devices need") {
  Config config;
  config.data.split = Split::kDynamic;
  config.cluster.worker.assign(3, "");
  config.device.ids = {0, 1};
  config.train.batch_size = 10;
  config.train.epochs = 3;
  CHECK(TotalSteps(config, 95, 3) == 15);
  config.train.mode = TrainMode::kSync;
  CHECK_FALSE(EndsInStep(config));
  CHECK(TotalSteps(config, 95, 3) == 6);
  CHECK_THROWS_AS(StepRows(config, 10, 0, 3), UserError);  // a batch for two devices
}

}  // namespace
}  // namespace dtrain
