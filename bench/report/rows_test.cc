#include "bench/report/rows.h"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

namespace dtrain::bench {

TEST_CASE("median: the middle one of an odd number, the mean of the two of an even number") {
  CHECK(Median({3, 1, 2}) == 2);
  CHECK(Median({4, 1, 3, 2}) == 2.5);
}

TEST_CASE("row: ratios are of the same round and below 1 where dtrain is slower") {
  Row row;
  row.dtrain = {50, 30};
  row.limit = {100, 40};
  CHECK(row.Ratios() == std::vector<double>{0.5, 0.75});
}

TEST_CASE("row: ratios are below 1 where dtrain takes longer") {
  Row row;
  row.smaller_is_better = true;
  row.dtrain = {4};
  row.limit = {1};
  CHECK(row.Ratios() == std::vector<double>{0.25});
}

TEST_CASE("row: without a limit there are no ratios") {
  Row row;
  row.dtrain = {1, 2};
  CHECK(row.Ratios().empty());
}

namespace {

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {{"linear"}, {}}, {{"linear_in_flight_16"}, {}}, {{"memory_ps", "memory_worker"}, {}}};
  return cases;
}

std::vector<std::string> FirstRows(const std::vector<Case>& cases) {
  std::vector<std::string> names;
  for (const Case& one : cases) names.push_back(one.rows.front());
  return names;
}

std::vector<std::string> Chosen(const std::vector<std::string>& only) {
  return FirstRows(Choose(Cases(), only));
}

}  // namespace

TEST_CASE("choice: without --only all cases are measured and all rows shown") {
  CHECK(Chosen({}).size() == Cases().size());
  CHECK(IsChosen("memory_ps", {}));
}

TEST_CASE("choice: a case is measured when one of its rows begins so, and only that row is shown") {
  CHECK(Chosen({"memory_worker"}) == std::vector<std::string>{"memory_ps"});
  CHECK(IsChosen("memory_worker", {"memory_worker"}));
  CHECK_FALSE(IsChosen("memory_ps", {"memory_worker"}));
}

TEST_CASE("choice: a name chooses the rows that begin with it, not those that it begins with") {
  CHECK(Chosen({"linear"}) == std::vector<std::string>{"linear", "linear_in_flight_16"});
  CHECK(Chosen({"linear_in"}) == std::vector<std::string>{"linear_in_flight_16"});
}

TEST_CASE("choice: several names choose the rows of each") {
  CHECK(Chosen({"memory", "linear_in"}) == std::vector<std::string>{"linear_in_flight_16", "memory_ps"});
}

TEST_CASE("choice: a name that chooses nothing is told with the names of all rows") {
  CHECK_THROWS_WITH(Chosen({"linear", "memry"}),
                    "--only memry: no row's name begins so; the rows are\n  linear\n  linear_in_flight_16\n"
                    "  memory_ps\n  memory_worker");
}

TEST_CASE(
    "beside: a job that the other program has never done is lacking, one that it fails later has failed") {
  Settings settings;
  settings.rounds = 2;
  settings.beside = "other";
  int runs_of_other = 0, fails_at = 0;
  const auto measure = [&] {
    Row row;
    row.name = "job";
    MeasureSides(
        settings,
        [&](const std::string& program) {
          if (program == "other" && ++runs_of_other == fails_at) throw std::runtime_error("no such job");
          return Rate{1, {}};
        },
        nullptr, &row);
    return std::vector<Row>{row};
  };
  const auto measured = [&](int fails) {
    runs_of_other = 0;
    fails_at = fails;
    return MeasureAll({{{"job"}, measure, true}}, {});
  };
  CHECK(measured(0).rows.size() == 1);
  CHECK(measured(1).lacking == 1);
  CHECK(measured(1).failed == 0);
  CHECK(measured(2).failed == 1);
  CHECK(measured(2).lacking == 0);
}

TEST_CASE("turns: both sides run once a round and the other one begins the next") {
  std::string order;
  TakeTurns(
      3, [&] { order += 'A'; }, [&] { order += 'B'; });
  CHECK(order == "ABBAAB");
}

}  // namespace dtrain::bench
