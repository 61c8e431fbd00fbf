// The memory and the waits of updates beside a reader; what a snapshot has is tested with TableShard.
#include "trainer/shard/table_snapshot.h"

#include <doctest/doctest.h>

#include <atomic>
#include <random>
#include <thread>

namespace dtrain {
namespace {

constexpr uint64_t kRows = uint64_t{1} << 24;

// Updates random rows until `ends`, as the ps loop does.
void Update(RowStore* rows, TableSnapshot* snapshot, const std::atomic<bool>& ends) {
  std::mt19937_64 random(3);
  KeyList keys(5000);
  while (!ends) {
    uint64_t key = random() % 3000;
    for (uint64_t& each : keys) each = key += 1 + random() % 3000;
    const auto lock = snapshot->BeforeUpdate({keys.data(), static_cast<int64_t>(keys.size())});
    for (const uint64_t row : keys) *rows->Touch(row) += 1;
  }
}

TEST_CASE("table snapshot: updates beside a slow reader wait, so that the rows kept stay within the limit") {
  constexpr size_t kLimit = 8 << 20;
  RowStore rows({0, kRows}, 1, {}, {0});
  for (uint64_t row = 0; row < kRows; row += 64) *rows.Touch(row) = 1;
  TableSnapshot snapshot(rows, 1, kLimit);
  std::atomic<bool> ends{false};
  std::thread updates([&] { Update(&rows, &snapshot, ends); });
  std::vector<float> scratch(static_cast<size_t>(kBlockValues));
  for (int64_t piece = 0; piece < snapshot.piece_count(); ++piece) {
    CHECK(snapshot.Read(piece, scratch.data()));
    std::this_thread::sleep_for(std::chrono::milliseconds(8));
    snapshot.ReleaseBefore(piece + 1);
  }
  ends = true;
  updates.join();
  const SnapshotCost cost = snapshot.Cost();
  CHECK(cost.max_bytes > kLimit / 2);
  CHECK(cost.max_bytes < 2 * kLimit);
  CHECK(cost.waited_s > 0);
}

TEST_CASE("table snapshot: where all pieces are released, an update is as free as without a snapshot") {
  RowStore rows({0, 1000}, 1, {}, {0});
  TableSnapshot snapshot(rows, 1);
  snapshot.ReleaseBefore(snapshot.piece_count());
  const uint64_t key = 7;
  CHECK_FALSE(snapshot.BeforeUpdate({&key, 1}).owns_lock());
  CHECK(snapshot.Cost().max_bytes == 0);
}

}  // namespace
}  // namespace dtrain
