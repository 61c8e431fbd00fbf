#include "trainer/batch/sparse_rows.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "trainer/sets/memory_rows.h"

namespace dtrain {
namespace {

SparseBuffer TwoRows() {
  SparseBuffer rows;
  const std::vector<uint64_t> first = {3, 1}, second = {2};
  const std::vector<float> value = {0.5f};
  rows.Add(first.data(), nullptr, 2);
  rows.Add(second.data(), value.data(), 1);
  return rows;
}

TEST_CASE("sparse rows: values that are all 1 take no memory until another one comes") {
  SparseBuffer rows;
  const std::vector<uint64_t> ids = {3, 1};
  const std::vector<float> ones = {1, 1}, others = {1, 2};
  rows.Add(ids.data(), ones.data(), 2);
  CHECK(rows.values.empty());
  CHECK((rows.rows().values == nullptr));
  rows.Add(ids.data(), others.data(), 2);
  rows.Add(ids.data(), nullptr, 2);
  rows.Add(ids.data(), ones.data(), 2);
  CHECK(rows.values == std::vector<float>{1, 1, 1, 2, 1, 1, 1, 1});
  CHECK(rows.offsets == std::vector<int64_t>{0, 2, 4, 6, 8});
  rows.Clear();
  rows.Add(ids.data(), ones.data(), 2);
  CHECK(rows.values.empty());
}

TEST_CASE("sparse rows: a row without features is a row") {
  SparseBuffer rows;
  rows.Add<uint64_t>(nullptr, nullptr, 0);
  rows.AddRow(TwoRows(), 1);
  rows.Add<uint64_t>(nullptr, nullptr, 0);
  CHECK(rows.count() == 3);
  CHECK(rows.offsets == std::vector<int64_t>{0, 0, 1, 1});
  CHECK(rows.values == std::vector<float>{0.5f});
}

TEST_CASE("sparse rows: as dense rows, what is no feature is 0 and a feature that comes twice counts twice") {
  SparseBuffer rows = TwoRows();
  const std::vector<uint64_t> ids = {0, 3, 0};
  const std::vector<float> values = {1, 2, 4};
  rows.Add(ids.data(), values.data(), 3);
  std::vector<float> dense(12, -1);
  WriteDense(rows.rows(), {dense.data(), 3, 4});
  CHECK(dense == std::vector<float>{0, 1, 0, 1, 0, 0, 0.5f, 0, 5, 0, 0, 2});
}

TEST_CASE("sparse rows: in memory they are as they were added, whether ids take 4 bytes or 8") {
  for (const int64_t inputs : {int64_t{4}, int64_t{1} << 32, (int64_t{1} << 32) + 1, int64_t{1} << 40}) {
    CAPTURE(inputs);
    CsrRows rows(inputs);
    SparseBuffer ones;
    const std::vector<uint64_t> last = {static_cast<uint64_t>(inputs) - 1};
    ones.Add(last.data(), nullptr, 1);
    rows.Append(ones);
    rows.Append(TwoRows());
    rows.Append(ones);
    SparseBuffer all;
    const std::vector<int64_t> numbers = {0, 1, 2, 3};
    rows.Read(numbers, {nullptr, &all});
    CHECK(rows.count() == 4);
    CHECK(rows.features() == 5);
    CHECK(all.offsets == std::vector<int64_t>{0, 1, 3, 4, 5});
    CHECK(all.ids == std::vector<uint64_t>{last[0], 3, 1, 2, last[0]});
    CHECK(all.values == std::vector<float>{1, 1, 1, 0.5f, 1});
  }
}

}  // namespace
}  // namespace dtrain
