// The memory and the waits of updates beside a reader; what a snapshot has is tested with TablePart, too.
#include "trainer/shard/table_snapshot.h"

#include <doctest/doctest.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "net/channel.h"
#include "trainer/config/config.h"

namespace dtrain {
namespace {

constexpr uint64_t kRows = uint64_t{1} << 20;

// Updates random rows, as the ps loop does.
void Update(RowStore* rows, TableSnapshot* snapshot, std::mt19937_64* random) {
  KeyList keys(300);
  uint64_t key = (*random)() % 3000;
  for (uint64_t& each : keys) each = key += 1 + (*random)() % 3000;
  const auto lock = snapshot->BeforeUpdate({keys.data(), static_cast<int64_t>(keys.size())});
  for (const uint64_t row : keys) *rows->Touch(row) += 1;
}

std::string PieceOf(const TableSnapshot& snapshot, int64_t piece) {
  std::vector<float> scratch(static_cast<size_t>(kBlockValues));
  const auto read = snapshot.Read(piece, scratch.data());
  if (!read) return "none";
  return {reinterpret_cast<const char*>(read->bytes.data), read->bytes.size};
}

// Whether a piece is lent; what is lent is given back.
bool Lends(const TableSnapshot& snapshot, int64_t piece) {
  const std::optional<net::LentBytes> bytes = snapshot.Lend(piece);
  if (bytes) net::Frame::Lend(bytes->data, bytes->size, bytes->release, bytes->context);
  return bytes.has_value();
}

TEST_CASE("table snapshot: a thread that reads and releases has the rows of one moment while others change") {
  RowStore rows({0, kRows}, 1, {}, {0});
  std::mt19937_64 random(3);
  std::vector<std::string> before;
  {
    TableSnapshot first(rows, 1);
    for (int i = 0; i < 100; ++i) Update(&rows, &first, &random);
  }
  TableSnapshot still(rows, 1), snapshot(rows, 1);
  for (int64_t piece = 0; piece < still.piece_count(); ++piece) before.push_back(PieceOf(still, piece));
  REQUIRE(before.size() > 4);
  std::atomic<bool> ends{false};
  std::atomic<int> updates{0};
  std::thread updater([&] {
    for (; !ends; ++updates) Update(&rows, &snapshot, &random);
  });
  for (int64_t piece = 0; piece < snapshot.piece_count(); ++piece) {
    const int seen = updates;
    while (updates < seen + 3) std::this_thread::yield();
    CHECK(PieceOf(snapshot, piece) == before[static_cast<size_t>(piece)]);
    snapshot.ReleaseBefore(piece + 1);
  }
  ends = true;
  updater.join();
  CHECK(snapshot.Cost().max_bytes > 0);
  CHECK_FALSE(snapshot.Cost().given_up);
}

TEST_CASE("table snapshot: beyond its limit it is given up, whether updates wait before that or not") {
  RowStore rows({0, kRows}, 1, {}, {0});
  std::mt19937_64 random(3);
  UndoLimits limits;
  limits.aim_bytes = 1000;
  limits.max_bytes = 100'000;
  limits.max_wait = std::chrono::milliseconds(15);  // more than the other one's update takes
  TableSnapshot lent(rows, 1, limits), snapshot(rows, 1, limits);
  snapshot.LetUpdatesWait();
  CHECK(Lends(lent, 0));
  for (int i = 0; i < 100; ++i) {
    Update(&rows, &lent, &random);
    Update(&rows, &snapshot, &random);
  }
  CHECK(snapshot.Cost().given_up);
  CHECK(snapshot.Cost().slowed);
  CHECK(PieceOf(snapshot, 0) == "none");
  CHECK(lent.Cost().given_up);
  CHECK_FALSE(lent.Cost().slowed);
  CHECK_FALSE(Lends(lent, 0));
}

TEST_CASE("table snapshot: what updates of all workers wait together stays below the time to be lost") {
  Config config;
  config.failure.detect_s = 10;
  config.cluster.worker.resize(32);
  config.train.in_flight = 2;
  const std::chrono::duration<double> wait = UndoLimitsFor(config, 16, SIZE_MAX).max_wait;
  CHECK(wait.count() * 32 * 2 * 16 <= 2.5);
  CHECK(wait.count() * 32 * 2 * 16 > 2.4);
  config.cluster.worker.resize(2);
  CHECK(UndoLimitsFor(config, 1, SIZE_MAX).max_wait == UndoLimits().max_wait);
}

TEST_CASE("table snapshot: its limits are a part of the memory that is left") {
  const Config config;
  CHECK(UndoLimitsFor(config, 1, SIZE_MAX).max_bytes == UndoLimits().max_bytes);
  CHECK(UndoLimitsFor(config, 1, 1000).aim_bytes == 250);
  CHECK(UndoLimitsFor(config, 1, 1000).max_bytes == 500);
}

TEST_CASE("table snapshot: updates wait by their share of what is left, so that it lasts") {
  UndoLimits limits;
  limits.aim_bytes = 1000;
  const auto wait_ms = [&](size_t used, size_t added, double read, double passed_s) {
    return std::chrono::duration<double, std::milli>(WaitAfterUpdate(limits, used, added, read, passed_s))
        .count();
  };
  CHECK(wait_ms(499, 400, 0.5, 1) == 0);
  CHECK(wait_ms(600, 1, 0.5, 1) == doctest::Approx(2.5));   // a second is left for 400 bytes
  CHECK(wait_ms(600, 1, 0.75, 3) == doctest::Approx(2.5));  // so it is here
  CHECK(wait_ms(600, 1, 0.9, 1) < 1);
  CHECK(wait_ms(600, 100, 0.5, 1) == 15);
  CHECK(wait_ms(600, 1, 0, 1) == 15);
  CHECK(wait_ms(1000, 1, 0.999, 1) == 15);
  CHECK(wait_ms(600, 0, 0.5, 1) == 0);
}

TEST_CASE("table snapshot: where all pieces are released, an update is as free as without a snapshot") {
  RowStore rows({0, 1000}, 1, {}, {0});
  TableSnapshot snapshot(rows, 1);
  snapshot.ReleaseBefore(snapshot.piece_count());
  const uint64_t key = 7;
  CHECK_FALSE(snapshot.BeforeUpdate({&key, 1}).owns_lock());
  CHECK(snapshot.Cost().max_bytes == 0);
}

TEST_CASE("table snapshot: an evaluation gets rows as they were, those that a delta leaves out too") {
  for (const bool delta : {false, true}) {
    CAPTURE(delta);
    RowStore rows({0, kRows}, 1, {}, {0});
    *rows.Touch(5) = 2;
    TableSnapshot snapshot(rows, 1, {}, std::vector<bool>(delta ? rows.unit_count() : 0));
    snapshot.KeepForEvaluation();
    const KeyList changing{5, 6, 7};
    {
      const auto lock = snapshot.BeforeUpdate({changing.data(), 3});
      for (const uint64_t row : changing) *rows.Touch(row) += 1;
    }
    const KeyList keys{4, 5, 6, kRows - 1};
    std::vector<float> now{0, *rows.Find(5), *rows.Find(6), 0};
    REQUIRE(snapshot.GoBack({keys.data(), 4}, now.data()));
    CHECK(now == std::vector<float>{0, 2, 0, 0});
    snapshot.ReleaseBefore(1);
    CHECK_FALSE(snapshot.GoBack({keys.data(), 4}, now.data()));
  }
}

TEST_CASE("table snapshot: of no rows there are no pieces") {
  RowStore rows({7, 7}, 1, {}, {0});
  TableSnapshot snapshot(rows, 1);
  CHECK(snapshot.piece_count() == 0);
  CHECK(PieceOf(snapshot, 0) == "none");
}

}  // namespace
}  // namespace dtrain
