#include "trainer/order/window_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "trainer/config/config.h"
#include "trainer/order/order.h"

namespace dtrain {
namespace {

std::vector<int64_t> RowsOf(WindowOrder* order, int64_t epoch, int64_t rows) {
  std::vector<int64_t> all;
  for (int64_t number = 0; number * order->window() < rows; ++number) {
    const gpu::Span<const int64_t> window = order->Rows(epoch, number);
    std::vector<int64_t> of_runs, of_window(window.begin(), window.end());
    for (const RowRun& run : order->RunsOf(epoch, number)) {
      for (int64_t row = run.begin; row < run.end; ++row) of_runs.push_back(row);
    }
    all.insert(all.end(), of_window.begin(), of_window.end());
    std::sort(of_window.begin(), of_window.end());
    std::sort(of_runs.begin(), of_runs.end());
    CHECK(of_window == of_runs);
  }
  return all;
}

TEST_CASE("window order: each row once an epoch, in another order in each") {
  for (const int64_t window : {1, 7, 64, 1000}) {
    WindowOrder order(EqualBlocks(205, 10), 3, 200, window, true, CounterRandom(1));
    const std::vector<int64_t> first = RowsOf(&order, 0, 200), second = RowsOf(&order, 1, 200);
    CHECK(first != second);
    CHECK(RowsOf(&order, 0, 200) == first);
    for (const std::vector<int64_t>& rows : {first, second}) {
      CHECK(rows.size() == 200);
      const std::set<int64_t> different(rows.begin(), rows.end());
      CHECK(different.size() == 200);
      CHECK(*different.begin() == 3);
      CHECK(*different.rbegin() == 202);
    }
  }
}

TEST_CASE("window order: a window has rows of many places, and as few blocks as hold them") {
  WindowOrder order(EqualBlocks(100'000, 100), 0, 100'000, 1000, true, CounterRandom(1));
  const std::vector<RowRun> runs = order.RunsOf(0, 3);
  CHECK(runs.size() == 10);
  const auto [least, most] = std::minmax_element(
      runs.begin(), runs.end(), [](const RowRun& a, const RowRun& b) { return a.begin < b.begin; });
  CHECK(most->begin - least->begin > 20'000);
}

TEST_CASE("window order: windows of sorted rows have as many of each class as all the data") {
  // The last three tenths are of one class; blocks do not divide windows, nor windows the rows.
  const int64_t rows = 100'300, window = 6'400, first_of_class = 70'210;
  WindowOrder order(EqualBlocks(rows, 100), 0, rows, window, true, CounterRandom(1));
  for (const int64_t epoch : {0, 1}) {
    for (int64_t number = 0; number * window < rows; ++number) {
      const gpu::Span<const int64_t> of_window = order.Rows(epoch, number);
      const auto in_class = static_cast<double>(std::count_if(
          of_window.begin(), of_window.end(), [&](int64_t row) { return row >= first_of_class; }));
      const auto size = static_cast<double>(of_window.size);
      CHECK(in_class / size == doctest::Approx(0.3).epsilon(number * window + window <= rows ? 0.08 : 0.15));
    }
  }
}

TEST_CASE("window order: without shuffling the rows come as they are") {
  WindowOrder order(EqualBlocks(20, 3), 5, 15, 4, false, CounterRandom(1));
  CHECK(RowsOf(&order, 0, 15) == std::vector<int64_t>{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19});
  CHECK(RowsOf(&order, 1, 15)[0] == 5);
}

Config Streamed(int64_t batch_size, int64_t shuffle_rows, int workers) {
  Config config;
  config.data.cache = DataCache::kNone;
  config.data.shuffle_rows = shuffle_rows;
  config.train.batch_size = batch_size;
  config.train.epochs = 1;
  config.cluster.worker.assign(static_cast<size_t>(workers), "");
  return config;
}

TEST_CASE("window order: workers read windows of their own, and are told of the next one") {
  const Config config = Streamed(10, 100, 3);
  std::set<int64_t> read_by[3];
  for (int worker = 0; worker < 3; ++worker) {
    std::vector<std::vector<RowRun>> told;
    StepRows rows(config, 6000, worker, 3, nullptr, EqualBlocks(6000, 20),
                  [&](const std::vector<RowRun>& runs) { told.push_back(runs); });
    gpu::Span<const int64_t> read;
    std::set<int64_t> announced;
    for (int64_t step = 0; rows.Read(step, &read); ++step) {
      announced.clear();
      for (const RowRun& run : told.back()) {
        for (int64_t row = run.begin; row < run.end; ++row) announced.insert(row);
      }
      for (const int64_t row : read) {
        CHECK(announced.count(row) == 1);
        read_by[worker].insert(row / 20);
      }
    }
    CHECK(told.size() == 20);  // windows of each worker
    CHECK(told[0].size() == 10);
    CHECK(told.back().size() == 5);
  }
  for (const int64_t block : read_by[0]) CHECK(read_by[1].count(block) + read_by[2].count(block) == 0);
}

TEST_CASE("window order: few rows are dealt so that no worker has many more than another") {
  const Config config = Streamed(10, 100'000, 4);
  const OrderSpec spec = OrderSpecOf(config, 1000, 0, 4);
  CHECK(spec.window == 100'000);
  CHECK(spec.chunk == 6);
  CHECK(OrderSpecOf(Streamed(10, 100, 1), 100'000, 0, 1).chunk == 10);
  CHECK(WindowRows(Config()) == 0);
  Config wide = Streamed(7, 65536, 1);
  wide.model.inputs = 1 << 18;
  CHECK(WindowRows(wide) == 14);  // 16 MiB hold 16 rows
}

}  // namespace
}  // namespace dtrain
