#include "trainer/table/hash_store.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "base/error.h"
#include "trainer/table/hash_pieces.h"

namespace dtrain {
namespace {

constexpr RowRange kAll{0, ~uint64_t{0}};
constexpr uint64_t kRangeSize = uint64_t{1} << 52;

void Fill(uint64_t row, float* values) {
  values[0] = static_cast<float>(row % 1000);
  values[1] = -1;
}

// What a store must keep, in the plainest form.
class Plain {
 public:
  explicit Plain(HashLimits limits) : limits_(limits) {}

  void Name(uint64_t row, uint64_t step) {
    auto found = rows_.find(row);
    if (found == rows_.end()) {
      if (limits_.range_rows > 0 && CountIn(row >> 52) >= limits_.range_rows) EvictOldest(row >> 52);
      found = rows_.emplace(row, Row()).first;
    }
    found->second.step = step;
    ++found->second.count;
  }
  struct Row {
    uint64_t step = 0;
    int64_t count = 0;
  };
  const std::map<uint64_t, Row>& rows() const { return rows_; }

 private:
  size_t CountIn(uint64_t range) const {
    return static_cast<size_t>(
        std::count_if(rows_.begin(), rows_.end(), [&](const auto& row) { return row.first >> 52 == range; }));
  }
  void EvictOldest(uint64_t range) {
    std::vector<std::pair<uint64_t, uint64_t>> all;  // step, row
    for (const auto& [row, kept] : rows_) {
      if (row >> 52 == range) all.emplace_back(kept.step, row);
    }
    std::sort(all.begin(), all.end());
    all.resize(std::max<size_t>(1, limits_.range_rows / 16));
    for (const auto& each : all) rows_.erase(each.second);
  }

  const HashLimits limits_;
  std::map<uint64_t, Row> rows_;
};

std::vector<HashRow> RowsOf(const HashStore& store, RowRange range = kAll) {
  std::vector<HashRow> rows;
  store.VisitRange(range, [&](const HashRow& row) { rows.push_back(row); });
  return rows;
}

void CheckSame(const HashStore& store, const HashStore& other) {
  const std::vector<HashRow> ours = RowsOf(store, store.rows()), theirs = RowsOf(other, other.rows());
  REQUIRE(ours.size() == theirs.size());
  for (size_t i = 0; i < ours.size(); ++i) {
    CHECK(ours[i].row == theirs[i].row);
    CHECK(ours[i].step == theirs[i].step);
    CHECK(ours[i].count == theirs[i].count);
    if (ours[i].values != nullptr) CHECK(std::equal(ours[i].values, ours[i].values + 2, theirs[i].values));
  }
  CHECK(store.entries() == other.entries());
  CHECK(store.value_rows() == other.value_rows());
}

void CheckSame(const HashStore& store, const Plain& plain, int64_t admit_after) {
  std::vector<HashRow> rows = RowsOf(store);
  REQUIRE(rows.size() == plain.rows().size() + 1);  // and the bias
  REQUIRE(rows.back().row == kAll.end - 1);
  size_t at = 0, with_values = 0;
  for (const auto& [row, kept] : plain.rows()) {
    const HashRow& here = rows[at++];
    REQUIRE(here.row == row);
    REQUIRE(here.step == kept.step);
    REQUIRE((here.values != nullptr) == (kept.count >= admit_after));
    if (here.values == nullptr) REQUIRE(here.count == kept.count);
    with_values += here.values != nullptr ? 1 : 0;
    REQUIRE(store.Find(row) == here.values);
  }
  CHECK(store.entries() == static_cast<int64_t>(plain.rows().size()));
  CHECK(store.value_rows() == static_cast<int64_t>(with_values));
}

void Touch(HashStore* store, const KeyList& keys, uint64_t step) {
  std::vector<float*> values(keys.size());
  store->Touch({keys.data(), static_cast<int64_t>(keys.size())}, step, values.data());
  for (size_t i = 0; i < keys.size(); ++i) REQUIRE(values[i] == store->Find(keys[i]));
}

TEST_CASE("hash store: it keeps what a map keeps, with admission and the oldest making room") {
  for (const uint64_t range_rows : {uint64_t{0}, uint64_t{1}, uint64_t{40}, uint64_t{500}}) {
    for (const int64_t admit_after : {1, 3}) {
      const HashLimits limits{admit_after, 0, range_rows};
      HashStore store(kAll, 2, Fill, limits);
      Plain plain(limits);
      std::mt19937_64 random(range_rows + 7);
      for (uint64_t step = 1; step <= 40; ++step) {
        std::set<uint64_t> keys;
        for (int i = 0; i < 100; ++i) {
          const uint64_t range = random() % 3 * 1000;
          const uint64_t row =
              range * kRangeSize + random() % 2000 * (random() % 2 == 0 ? 1 : kRangeSize / 2000);
          keys.insert(row);
        }
        Touch(&store, KeyList(keys.begin(), keys.end()), step);
        for (const uint64_t key : keys) plain.Name(key, step);
      }
      CheckSame(store, plain, admit_after);
    }
  }
}

TEST_CASE("hash store: a key that is not there reads as its initial row, and stays away") {
  HashStore store(kAll, 2, Fill);
  const KeyList keys{5, 7, kAll.end - 1};
  std::vector<float> read(6);
  store.Read({keys.data(), 3}, 2, read.data());
  CHECK(read == std::vector<float>{5, -1, 7, -1, static_cast<float>((kAll.end - 1) % 1000), -1});
  CHECK(store.entries() == 0);
  float* values[1];
  store.Touch({keys.data(), 1}, 1, values);
  values[0][0] = 9;
  store.Read({keys.data(), 2}, 1, read.data());
  CHECK(read[0] == 9);
  CHECK(read[1] == 7);
}

TEST_CASE("hash store: segments split, keep all rows in order, and give their memory back") {
  constexpr int kRows = 150'000;
  HashStore store({7 * kRangeSize, 8 * kRangeSize}, 2, Fill);
  CHECK_FALSE(store.has_bias());
  std::mt19937_64 random(1);
  std::map<uint64_t, float> expected;
  for (int i = 0; i < kRows; ++i) {
    const KeyList key{7 * kRangeSize + (random() >> 12)};
    float* values = nullptr;
    store.Touch({key.data(), 1}, 1, &values);
    *values = expected[key[0]] = static_cast<float>(i);
  }
  size_t segments = 0, bytes = 0;
  store.VisitSegments([&](const HashSegment& segment) {
    ++segments;
    bytes += BlockMemory::Taken(segment.bytes());
    CHECK(segment.bytes() <= HashSegment::kMaxBytes);
  });
  CHECK(segments >= 8);
  CHECK(bytes == store.bytes());
  CHECK(bytes < expected.size() * 40);  // 24 of an entry and its values
  auto next = expected.begin();
  bool same = true;
  store.VisitRange({7 * kRangeSize, 8 * kRangeSize}, [&](const HashRow& row) {
    same = same && row.row == next->first && row.values[0] == next->second;
    ++next;
  });
  CHECK(same);
  CHECK(next == expected.end());
  store.Clear();
  CHECK(store.entries() == 0);
  CHECK(store.bytes() < 1000);
}

TEST_CASE("hash store: keys that lie as close together as can be are kept as well") {
  HashStore store(kAll, 2, Fill);
  KeyList keys;
  for (uint64_t i = 0; i < 100'000; ++i) keys.push_back(kRangeSize - 100'000 + i);
  Touch(&store, keys, 1);
  CHECK(store.entries() == 100'000);
  const KeyList others{0, kRangeSize, 2 * kRangeSize - 1, kAll.end - 2};
  Touch(&store, others, 1);
  for (const uint64_t key : others) CHECK(store.Find(key) != nullptr);
}

TEST_CASE("hash store: hash ranges whose rows are set together are as those that updates have made") {
  const RowRange last{kAll.end - kAll.end % kRangeSize - 3 * kRangeSize, kAll.end};
  const HashLimits limits{2, 0, 55'000};
  HashStore made(last, 2, Fill, limits), put(last, 2, Fill, limits);
  std::mt19937_64 random(9);
  std::vector<KeyList> updates;
  for (const uint64_t count : {60'000, 300, 0, 1}) {  // one of more rows than a segment has, and one of none
    const uint64_t begin = last.begin + updates.size() * kRangeSize;
    std::set<uint64_t> keys;
    while (keys.size() < count) keys.insert(begin + random() % (count < 1000 ? kRangeSize - 2 : 2 * count));
    updates.emplace_back(keys.begin(), keys.end());
    Touch(&made, updates.back(), 5);
    KeyList again;
    for (const uint64_t key : keys) {
      if (random() % 3 != 0) again.push_back(key);
    }
    Touch(&made, again, 6);
  }
  Touch(&made, {kAll.end - 1}, 7);
  std::vector<HashRow> rows;
  made.VisitRange(last, [&](const HashRow& row) { rows.push_back(row); });
  put.PutRanges(rows);
  const int64_t before = made.evicted();
  CheckSame(put, made);
  uint64_t next = last.begin;
  put.VisitSegments([&](const HashSegment& segment) {
    CHECK(segment.rows().begin == next);
    next = segment.rows().end;
  });
  CHECK(next == last.end);
  for (KeyList& keys : updates) {
    for (uint64_t& key : keys) key += 1;
    for (HashStore* const store : {&made, &put}) Touch(store, keys, 8);
  }
  CheckSame(put, made);
  CHECK(put.evicted() > 1000);
  CHECK(put.evicted() == made.evicted() - before);
  put.SetEvicted(4);
  CHECK(put.evicted() == 4);
}

TEST_CASE("hash store: a sweep removes what no update has named for long, and nothing else") {
  constexpr int64_t kAge = 64;
  HashStore store(kAll, 2, Fill, {1, kAge, 0});
  std::mt19937_64 random(3);
  std::map<uint64_t, uint64_t> steps;
  for (uint64_t step = 1; step <= 400; ++step) {
    std::set<uint64_t> keys;
    for (int i = 0; i < 20; ++i) keys.insert(random() % 1000 * (kAll.end / 1000));
    Touch(&store, KeyList(keys.begin(), keys.end()), step);
    for (const uint64_t key : keys) steps[key] = step;
    // Halves, as two blocks would be.
    store.Sweep({0, kAll.end / 2}, step);
    store.Sweep({kAll.end / 2, kAll.end}, step);
    for (const auto& [key, last] : steps) {
      const uint64_t age = step - last;
      if (age <= kAge) REQUIRE(store.Find(key) != nullptr);
      if (age > kAge + kAge / 8) REQUIRE(store.Find(key) == nullptr);
    }
  }
  CHECK(store.evicted() > 100);
}

TEST_CASE("hash store: memory of rows that have left is given back, and those that stay are as they were") {
  constexpr uint64_t kAge = 16, kKeys = 200'000, kStay = 1000;
  HashStore store(kAll, 2, Fill, {1, kAge, 0});
  std::mt19937_64 random(4);
  std::set<uint64_t> all;
  while (all.size() < kKeys) all.insert(random() % (kAll.end - 1));
  const KeyList keys(all.begin(), all.end());
  Touch(&store, keys, 1);
  const size_t most = store.bytes();
  CHECK(most > kKeys * 24);
  KeyList stay;
  for (size_t i = 0; i < kKeys; i += kKeys / kStay) stay.push_back(keys[i]);
  for (uint64_t step = 2; step <= 3 * kAge; ++step) {
    Touch(&store, stay, step);
    store.Sweep(kAll, step);
  }
  CHECK(store.entries() == kStay);
  // The segment of a hash range without rows takes 280 bytes.
  CHECK(store.bytes() < most / 3);
  for (const uint64_t key : stay) {
    const float* const values = store.Find(key);
    REQUIRE(values != nullptr);
    CHECK(values[0] == static_cast<float>(key % 1000));
  }
  size_t bytes = 0;
  store.VisitSegments([&](const HashSegment& segment) { bytes += BlockMemory::Taken(segment.bytes()); });
  CHECK(bytes == store.bytes());
  Touch(&store, keys, 3 * kAge + 1);  // they come again
  CHECK(store.entries() == kKeys);
}

TEST_CASE("hash store: where there is no memory to make a segment smaller it stays as it is") {
  constexpr uint64_t kAge = 16, kRows = 100'000;
  constexpr int64_t kValues = 1000;
  int64_t asked = 0;
  RowMemory memory;  // for one region of blocks
  memory.left = [&] { return MachineMemory{asked++ == 0 ? int64_t{1} << 40 : 1 << 20, "the test"}; };
  const auto initial = [](uint64_t row, float* values) { std::fill_n(values, kValues, row % 1000); };
  HashStore store({7 * kRangeSize, 8 * kRangeSize}, kValues, initial, {1, kAge, 0}, memory);
  std::mt19937_64 random(1);
  std::set<uint64_t> stay;
  const auto fill = [&] {
    for (uint64_t i = 0; i < kRows; ++i) {
      const KeyList key{7 * kRangeSize + (random() >> 12)};
      Touch(&store, key, 1);
      if (i % 4 == 0) stay.insert(key[0]);
    }
  };
  CHECK_THROWS_AS(fill(), Failure);
  REQUIRE(stay.size() > 1000);
  const int64_t before = asked;
  for (uint64_t step = 2; step <= 2 * kAge; ++step) {
    Touch(&store, KeyList(stay.begin(), stay.end()), step);
    store.Sweep(store.rows(), step);
  }
  CHECK(asked > before);
  CHECK(store.entries() == static_cast<int64_t>(stay.size()));
  for (const uint64_t key : stay) CHECK(*store.Find(key) == static_cast<float>(key % 1000));
}

TEST_CASE("hash store: it tells rows before they change for the first time, and those that leave") {
  HashStore store(kAll, 2, Fill, {2, 10, 0});
  Touch(&store, {1, 2, 3}, 1);
  Touch(&store, {1, 2}, 2);
  std::vector<uint64_t> told, left;
  const HashStore::Told tell = [&](const HashRow& row) {
    told.push_back(row.row);
    CHECK(row.step <= 2);
    CHECK((row.values == nullptr) == (row.row == 3));
  };
  const HashStore::Told leave = [&](const HashRow& row) { left.push_back(row.row); };
  store.TellChanges(2, &tell);
  store.TellLeaving(&leave);
  Touch(&store, {1, 9}, 3);
  Touch(&store, {1, 9}, 4);
  CHECK(told == KeyList{1});
  for (uint64_t step = 12; step <= 15; ++step) store.Sweep(kAll, step);
  CHECK(left == KeyList{3, 2, 1, 9});  // as they are too old, one after the other
  CHECK(told == KeyList{1, 3, 2});
}

TEST_CASE("hash store: a table that is full takes what is foretold") {
  using Filled = HashStore::Filled;
  for (const auto& [range_rows, filled] : std::vector<std::pair<uint64_t, Filled>>{
           {20, Filled::kRows}, {100, Filled::kRows}, {100, Filled::kCandidates}}) {
    HashStore store(kAll, 2, Fill, {filled == Filled::kRows ? 1 : 100, 0, range_rows});
    std::mt19937_64 random(6);
    for (uint64_t step = 1; step <= 2 * range_rows; ++step) {
      KeyList keys;
      for (uint64_t range = 0; range < 4096; ++range) keys.push_back(range * kRangeSize + (random() >> 12));
      Touch(&store, keys, step);
    }
    const auto foretold = static_cast<double>(HashStore::BytesOfRanges(range_rows, 2, filled));
    CHECK(static_cast<double>(store.bytes()) == doctest::Approx(foretold).epsilon(0.03));
  }
}

TEST_CASE("hash store: what was visited and put elsewhere is the same") {
  const HashLimits limits{3, 0, 50};
  HashStore store(kAll, 2, Fill, limits);
  std::mt19937_64 random(5);
  for (uint64_t step = 1; step <= 300; ++step) {
    const KeyList key{random() % 500 * (kAll.end / 500)};
    Touch(&store, key, step);
  }
  HashStore other(kAll, 2, Fill, limits);
  store.VisitRange(kAll, [&](const HashRow& row) { other.Put(row); });
  CheckSame(store, other);
}

TEST_CASE("hash store: a row that has values keeps them when it is put as a candidate") {
  HashStore store(kAll, 2, Fill);
  const float first[] = {1, 2}, second[] = {3, 4};
  store.Put({7, 1, 0, first});
  store.Put({8, 1, 0, second});
  store.Put({7, 1, 900000, nullptr});
  REQUIRE(store.Find(7) != nullptr);
  CHECK(std::equal(first, first + 2, store.Find(7)));
  CHECK(store.value_rows() == 2);
}

}  // namespace
}  // namespace dtrain
