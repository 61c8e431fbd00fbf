#include "trainer/table/row_store.h"

#include <doctest/doctest.h>

#include <string>

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
  const auto nothing = [](uint64_t, float*) {};
  RowStore rows({0, uint64_t{1} << 33}, 300, nothing);
  CHECK(rows.group_rows() == 4);
  rows.Touch((uint64_t{1} << 33) - 1)[299] = 7;
  CHECK(rows.Find((uint64_t{1} << 33) - 1)[299] == 7);
  CHECK(RowStore({0, 1000}, 300, nothing).group_rows() == 1);
}

}  // namespace
}  // namespace dtrain
