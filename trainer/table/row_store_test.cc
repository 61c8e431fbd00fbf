#include "trainer/table/row_store.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/error.h"

namespace dtrain {
namespace {

void Fill(uint64_t row, float* values) { *values = static_cast<float>(row); }

TEST_CASE("row store: a row that was touched keeps its values, and its group the initial ones") {
  RowStore rows({1000, 5000}, 1, Fill);
  CHECK(rows.Find(1000) == nullptr);
  *rows.Touch(1003) = -1;
  CHECK(*rows.Find(1003) == -1);
  CHECK(*rows.Find(1004) == 1004);
  CHECK(*rows.Touch(1003) == -1);
  CHECK(rows.groups_written() == 1);
  *rows.Touch(4999) = -2;
  CHECK(rows.NextGroup(1) == rows.GroupOf(4999));
  rows.Clear();
  CHECK(rows.Find(1003) == nullptr);
  CHECK(*rows.Touch(1003) == 1003);
}

TEST_CASE("row store: a large range keeps and forgets rows as a small one does") {
  constexpr uint64_t kRows = RowStore::kMaxWholeBytes / sizeof(float) * 2;
  for (const TablePages pages : {TablePages::kAuto, TablePages::kHuge}) {
    RowStore large({0, kRows}, 1, Fill, {}, pages);
    *large.Touch(kRows - 1) = -1;
    *large.Touch(5) = -2;
    CHECK(*large.Find(kRows - 1) == -1);
    CHECK(*large.Find(kRows - 2) == static_cast<float>(kRows - 2));
    CHECK(*large.Find(5) == -2);
    CHECK(large.Find(1000) == nullptr);
    CHECK(large.groups_written() == 2);
    CHECK(large.NextGroup(1) == large.GroupOf(kRows - 1));
    large.Clear();
    CHECK(large.Find(5) == nullptr);
    CHECK(*large.Touch(5) == 5);
  }
}

TEST_CASE("row store: with huge pages a range ends with an error, too, where memory does") {
  constexpr uint64_t kRows = RowStore::kMaxWholeBytes / sizeof(float) * 2;
  int64_t left = int64_t{1} << 30;
  RowMemory memory;
  memory.left = [&] { return MachineMemory{left, "the test"}; };
  RowStore rows({0, kRows}, 1, {}, {0}, TablePages::kHuge, memory);
  *rows.Touch(0) = 1;
  left = 17 << 20;
  const auto fill = [&] {
    for (uint64_t row = 64; row < kRows; row += 64) *rows.Touch(row) = 1;
  };
  CHECK_THROWS_WITH_AS(
      fill(), doctest::Contains("written take 2.0 MiB, and there is no memory for more: 17.0 MiB"), Failure);
  CHECK(*rows.Find(0) == 1);
}

TEST_CASE("row store: a large range asks for what is left before it takes memory, and keeps what it has") {
  constexpr uint64_t kRows = RowStore::kMaxWholeBytes / sizeof(float) * 2;
  int64_t left = int64_t{1} << 30, asked = 0;
  RowMemory memory;
  memory.left = [&] {
    ++asked;
    return MachineMemory{left, "the test"};
  };
  memory.sharers = 2;
  RowStore rows({0, kRows}, 1, {}, {0}, TablePages::kAuto, memory);
  CHECK(asked == 0);
  *rows.Touch(0) = 1;
  CHECK(asked == 1);
  left = 20 << 20;
  const auto fill = [&] {
    for (uint64_t row = 64; row < kRows; row += 64) *rows.Touch(row) = 1;
  };
  std::string error;
  try {
    fill();
  } catch (const Failure& failure) {
    error = failure.what();
  }
  CHECK(error.find("and there is no memory for more: 20.0 MiB are left (the test)") != std::string::npos);
  CHECK(asked == 2);
  const int64_t written = rows.groups_written();
  CHECK(written == (2 << 20) / 256);
  CHECK(rows.Find(static_cast<uint64_t>(written) * 64) == nullptr);
  CHECK(*rows.Find(static_cast<uint64_t>(written - 1) * 64) == 1);
  left = int64_t{1} << 40;
  fill();
  CHECK(rows.groups_written() == static_cast<int64_t>(kRows / 64));
}

TEST_CASE(
    "row store: rows are changed where they differ from their initial values, drawn or the same for all") {
  RowStore drawn({0, 100}, 2,
                 [](uint64_t row, float* values) { values[0] = values[1] = static_cast<float>(row); });
  RowStore same({0, 100}, 2, {}, {0, 0.5f});
  float scratch[2];
  for (RowStore* rows : {&drawn, &same}) {
    const uint64_t group = rows->GroupOf(7),
                   bit = uint64_t{1} << (7 - group * static_cast<uint64_t>(rows->group_rows()));
    float* const row = rows->Touch(7);
    const auto changed = [&](int64_t count) {
      return rows->ChangedIn(group, rows->Group(group), count, scratch);
    };
    CHECK(changed(2) == 0);
    row[1] = 9;
    CHECK(changed(1) == 0);
    CHECK(changed(2) == bit);
    row[0] = -0.5f;
    CHECK(changed(1) == bit);
  }
  same.InitialRow(3, scratch);
  CHECK(scratch[1] == 0.5f);
}

TEST_CASE("row store: of the last group those rows have changed that the range has") {
  for (const bool is_drawn : {false, true}) {
    const RowStore::Initial initial = [](uint64_t, float* values) { values[0] = 2; };
    RowStore rows({1, 71}, 1, initial, is_drawn ? std::vector<float>{} : std::vector<float>{2});
    for (const uint64_t row : {1, 2, 70}) *rows.Touch(row) = row == 2 ? -2.0f : 0.0f;
    float scratch = 0;
    std::vector<uint64_t> changed;
    for (uint64_t group = rows.NextGroup(0); group < rows.group_count(); group = rows.NextGroup(group + 1)) {
      const uint64_t bits = rows.ChangedIn(group, rows.Group(group), 1, &scratch);
      for (uint64_t i = 0; i < 64; ++i) {
        if ((bits >> i & 1) != 0) changed.push_back(1 + group * static_cast<uint64_t>(rows.group_rows()) + i);
      }
    }
    CHECK(changed == std::vector<uint64_t>{1, 2, 70});
  }
}

TEST_CASE("row store: a row that is read and then written is drawn once") {
  int drawn = 0;
  RowStore rows({0, 1 << 24}, 16, [&](uint64_t row, float* values) {
    std::fill_n(values, 16, static_cast<float>(row));
    ++drawn;
  });
  CHECK(rows.InitialRow(7)[15] == 7);
  CHECK(rows.Touch(7)[15] == 7);
  CHECK(drawn == 1);
  rows.Touch(7)[15] = -1;
  CHECK(rows.InitialRow(7)[15] == 7);
  for (uint64_t row = 0; row < 1 << 16; ++row) CHECK(rows.InitialRow(row)[0] == static_cast<float>(row));
}

TEST_CASE("row store: a group is some lines, but where rows are drawn one line or one row") {
  CHECK(RowStore({0, 1000}, 1, {}, std::vector<float>(1)).group_rows() == 64);
  CHECK(RowStore({0, 1000}, 18, {}, std::vector<float>(18)).group_rows() == 4);
  CHECK(RowStore({0, 1000}, 2, Fill).group_rows() == 8);
  CHECK(RowStore({0, 1000}, 18, Fill).group_rows() == 1);
}

TEST_CASE("row store: more rows than one ps can have are refused, with the key and what to do") {
  std::string error;
  try {
    const RowStore rows({0, uint64_t{1} << 40}, 1, Fill);
  } catch (const UserError& refused) {
    error = refused.what();
  }
  CHECK(
      error ==
      "model.inputs: one ps has 1099511627776 rows of the table, and can have at most 274877906752. Use more "
      "ps or fewer features.");
}

TEST_CASE("row store: of wide rows there may be as many, in larger groups") {
#if defined(__SANITIZE_THREAD__)
  std::puts("SKIPPED: ThreadSanitizer leaves no room for 10 TiB of addresses");
  return;
#endif
  const auto nothing = [](uint64_t, float*) {};
  RowStore rows({0, uint64_t{1} << 33}, 300, nothing);
  CHECK(rows.group_rows() == 4);
  rows.Touch((uint64_t{1} << 33) - 1)[299] = 7;
  CHECK(rows.Find((uint64_t{1} << 33) - 1)[299] == 7);
  CHECK(RowStore({0, 1000}, 300, nothing).group_rows() == 1);
}

}  // namespace
}  // namespace dtrain
