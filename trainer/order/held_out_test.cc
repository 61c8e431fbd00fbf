#include "trainer/order/held_out.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "trainer/config/data_config.h"

namespace dtrain {
namespace {

DataConfig Share(double share, HeldOutBy by) {
  DataConfig data;
  data.validation_share = share;
  data.validation_by = by;
  return data;
}

int64_t Marked(const std::vector<bool>& marks) { return std::count(marks.begin(), marks.end(), true); }

TEST_CASE("held out: a share is rounded down, and a number is taken as it is") {
  CHECK(HeldOutRows(Share(0.2, HeldOutBy::kFirst), 101) == 20);
  CHECK(HeldOutRows(Share(0.29, HeldOutBy::kFirst), 100) == 29);
  CHECK(HeldOutRows(Share(0.001, HeldOutBy::kFirst), 100) == 0);
  DataConfig data;
  data.validation = 30;
  CHECK(HeldOutRows(data, 100) == 30);
  CHECK(HeldOutRows(data, std::nullopt) == 30);
}

TEST_CASE("held out: the first rows, where nothing else is said") {
  const std::vector<bool> marks = HeldOutMarks(Share(0.5, HeldOutBy::kFirst), {1, 1, 1, 2, 2, 2});
  CHECK(marks == std::vector<bool>{true, true, true, false, false, false});
}

TEST_CASE("held out: rows drawn by seed are as many as the share says, another seed draws others") {
  const std::vector<int32_t> classes(997, 0);
  DataConfig data = Share(0.2, HeldOutBy::kSeed);
  const std::vector<bool> marks = HeldOutMarks(data, classes);
  CHECK(Marked(marks) == 199);
  CHECK(HeldOutMarks(data, classes) == marks);
  CHECK(std::count(marks.begin(), marks.begin() + 100, true) > 15);  // evenly over the table
  data.seed = 2;
  CHECK(HeldOutMarks(data, classes) != marks);
}

TEST_CASE("held out: stratified gives each class its share, whatever its number and place") {
  std::vector<int32_t> classes(900, 7);
  classes.resize(1000, 3);
  const DataConfig data = Share(0.25, HeldOutBy::kStratified);
  const std::vector<bool> marks = HeldOutMarks(data, classes);
  CHECK(std::count(marks.begin(), marks.begin() + 900, true) == 225);
  CHECK(std::count(marks.begin() + 900, marks.end(), true) == 25);
  for (int32_t& one : classes) one = one == 7 ? 0 : 1;  // the same classes by other numbers
  CHECK(HeldOutMarks(data, classes) == marks);
}

TEST_CASE("held out: a class of one row is trained on, if others have rows left") {
  const std::vector<bool> marks =
      HeldOutMarks(Share(0.9, HeldOutBy::kStratified), {0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
  CHECK(Marked(marks) == 9);
  CHECK(Marked(HeldOutMarks(Share(0.5, HeldOutBy::kStratified), {0, 0, 0, 0, 0, 1})) == 3);
  CHECK(!HeldOutMarks(Share(0.5, HeldOutBy::kStratified), {0, 0, 0, 0, 0, 1})[5]);
}

}  // namespace
}  // namespace dtrain
