#include "trainer/table/keyed_batch.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

namespace dtrain {
namespace {

TEST_CASE("keyed batch: keys are the rows of its features and the bias, and each feature knows its own") {
  std::mt19937_64 random(4);
  KeySorter sorter;
  KeyedBatch keyed;
  for (const int64_t features : {10, 1000, 1 << 20}) {
    for (const int64_t ps : {1, 3}) {
      for (const int64_t count : {1, 5, 300}) {
        const TableLayout table(features, 2, ps);
        std::vector<int64_t> offsets = {0};
        std::vector<uint64_t> ids;
        std::vector<float> values;
        std::vector<int32_t> labels;
        for (int64_t row = 0; row < count; ++row) {
          for (uint64_t left = random() % 30; left > 0; --left) {
            ids.push_back(random() % static_cast<uint64_t>(features));
            values.push_back(static_cast<float>(random() % 100));
          }
          offsets.push_back(static_cast<int64_t>(ids.size()));
          labels.push_back(static_cast<int32_t>(row % 2));
        }
        Batch batch;
        batch.rows = count;
        batch.columns = features;
        batch.sparse = {offsets.data(), ids.data(), values.data()};
        batch.labels = labels.data();
        keyed.Fill(batch, table, &sorter);

        std::set<uint64_t> rows = {table.bias_row()};
        for (const uint64_t id : ids) rows.insert(table.RowOf(id));
        const KeySpan keys = keyed.keys();
        CHECK(KeyList(keys.begin(), keys.end()) == KeyList(rows.begin(), rows.end()));
        const Batch& local = keyed.batch();
        CHECK(local.rows == count);
        CHECK(local.columns == keys.size);
        CHECK(keys[local.sparse.bias] == table.bias_row());
        bool same = std::equal(labels.begin(), labels.end(), local.labels) &&
                    std::equal(values.begin(), values.end(), local.sparse.values) &&
                    std::equal(offsets.begin(), offsets.end(), local.sparse.offsets);
        for (size_t i = 0; i < ids.size(); ++i) same &= keys[local.sparse.places[i]] == table.RowOf(ids[i]);
        CHECK(same);
        CHECK(local.targets == nullptr);

        int64_t in_blocks = 0;
        for (int64_t block = 0; block < table.block_count(); ++block) {
          CHECK(keyed.FirstIn(block) == in_blocks);
          const RowRange range = table.RangeOf(block);
          for (const uint64_t key : keyed.KeysIn(block)) CHECK((key >= range.begin && key < range.end));
          in_blocks += keyed.KeysIn(block).size;
        }
        CHECK(in_blocks == keys.size);
      }
    }
  }
}

TEST_CASE("keyed batch: one of no rows has no keys, and values that are all 1 stay away") {
  const TableLayout table(100, 1, 2);
  KeySorter sorter;
  KeyedBatch keyed;
  keyed.Fill(Batch(), table, &sorter);
  CHECK(keyed.keys().size == 0);
  CHECK(keyed.KeysIn(1).size == 0);
  const std::vector<int64_t> offsets = {0, 1};
  const std::vector<uint64_t> ids = {7};
  Batch batch;
  batch.rows = 1;
  batch.sparse = {offsets.data(), ids.data(), nullptr};
  keyed.Fill(batch, table, &sorter);
  CHECK(keyed.keys().size == 2);
  CHECK(keyed.batch().sparse.values == nullptr);
}

TEST_CASE("keyed batch: features behind those of the table are numbers, and the others know their columns") {
  const TableLayout table(12, 1, 2);  // three columns of 4 features
  KeySorter sorter;
  KeyedBatch keyed;
  const std::vector<int64_t> offsets = {0, 3, 3, 6};
  const std::vector<uint64_t> ids = {13, 2, 9, 12, 7, 13};
  const std::vector<float> values = {0.5f, 1, 1, -2, 1, 3};
  Batch batch;
  batch.rows = 3;
  batch.sparse = {offsets.data(), ids.data(), values.data()};
  BatchForm form;
  form.flat = 5;
  form.numbers = {12, 2};
  form.column_bits = 2;
  keyed.Fill(batch, table, &sorter, form);
  const Batch& local = keyed.batch();
  CHECK(std::vector<int64_t>(local.sparse.offsets, local.sparse.offsets + 4) ==
        std::vector<int64_t>{0, 2, 2, 3});
  CHECK(std::vector<float>(local.numbers, local.numbers + 6) == std::vector<float>{0, 0.5f, 0, 0, -2, 3});
  CHECK(std::vector<uint32_t>(local.sparse.columns, local.sparse.columns + 3) ==
        std::vector<uint32_t>{0, 2, 1});
  CHECK(local.sparse.values == nullptr);  // those that are left are 1
  const uint64_t expected[] = {2, 9, 7};
  for (size_t i = 0; i < 3; ++i) CHECK(keyed.keys()[local.sparse.places[i]] == table.RowOf(expected[i]));
  CHECK(local.columns == 4);
  keyed.parameters()[5 + local.columns - 1] = 1;  // there is room for the flat vector and all rows
  form.scale = {{1, -1}, {0.5, 2}};
  keyed.Fill(batch, table, &sorter, form);  // one that a row has not is scaled as a 0
  CHECK(std::vector<float>(local.numbers, local.numbers + 6) ==
        std::vector<float>{-0.5f, 3, -0.5f, 2, -1.5f, 8});
}

TEST_CASE("keyed batch: keys of a hash table tell their columns, and those of numbers have no rows") {
  const TableLayout table(TableLayout::kHashed, 1, 2);
  constexpr int kBits = 61;
  const auto key = [](uint64_t column, uint64_t hash) { return column << kBits | hash; };
  KeySorter sorter;
  KeyedBatch keyed;
  const std::vector<int64_t> offsets = {0, 3};
  const std::vector<uint64_t> ids = {key(2, 0), key(0, 77), key(1, 77)};
  const std::vector<float> values = {4, 1, 1};
  Batch batch;
  batch.rows = 1;
  batch.sparse = {offsets.data(), ids.data(), values.data()};
  BatchForm form;
  form.numbers = {key(2, 0), 1};
  form.column_bits = kBits;
  keyed.Fill(batch, table, &sorter, form);
  const Batch& local = keyed.batch();
  CHECK(local.numbers[0] == 4);
  CHECK(local.columns == 3);  // with the bias
  for (uint32_t i = 0; i < 2; ++i) {
    CHECK(local.sparse.columns[i] == i);
    CHECK(keyed.keys()[local.sparse.places[i]] == table.RowOf(key(i, 77)));
  }
}

}  // namespace
}  // namespace dtrain
