#include "bench/report/save_log.h"

#include <doctest/doctest.h>

namespace dtrain::bench {

constexpr char kPsLog[] =
    R"({"time":"2026-11-22T23:59:58.000+00:00","task":"ps 0","level":"info","text":"saved /a/step-000000000 in 5.04 s; steps were held for 0.6 ms"}
no JSON
{"time":"2026-11-23T00:00:01.500+00:00","task":"ps 0","level":"info","text":"saved /a b/step-000000012 in 2.50 s; steps were held for 15.5 ms"}
{"time":"2026-11-23T00:00:02.500+00:00","task":"ps 0","level":"info","text":"saved nothing"}
)";

TEST_CASE("save log: the saves of ps 0, with their step, length and pause") {
  const std::vector<LoggedSave> saves = SavesIn(kPsLog);
  REQUIRE(saves.size() == 2);
  CHECK(saves[0].step == 0);
  CHECK(saves[1].step == 12);
  CHECK(saves[1].held_ms == 15.5);
  CHECK(saves[1].end - saves[0].end == doctest::Approx(3.5));
  CHECK(saves[1].end - saves[1].begin == doctest::Approx(2.5));
}

TEST_CASE("save log: the steps of a worker") {
  const std::vector<LoggedStep> steps = StepsIn(
      R"({"time":"2026-11-22T04:18:47.070+00:00","text":"epoch 1","local_step":7,"ms_per_step":570.0}
{"time":"2026-11-22T04:18:48.070+00:00","text":"done"})");
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].step == 7);
  CHECK(steps[0].end - steps[0].begin == doctest::Approx(0.57));
}

TEST_CASE("save log: the cost of a save is what the steps that it meets take beyond the median of others") {
  const std::vector<LoggedStep> steps = {{1, 0, 1}, {2, 1, 2}, {3, 2, 3.5}, {4, 3.5, 4.75}, {5, 4.75, 6.75}};
  const StepCost cost = CostOf({{2, 2.5, 4, 0.1}}, steps);
  CHECK(cost.usual == doctest::Approx(1000));
  CHECK(cost.slowest_usual == doctest::Approx(1000));
  REQUIRE(cost.slowest.size() == 1);
  CHECK(cost.slowest[0] == doctest::Approx(500));
  CHECK(cost.added[0] == doctest::Approx(750));
}

TEST_CASE("save log: a save without a step, and steps that all meet a save, tell nothing") {
  CHECK_THROWS(CostOf({{2, 2.5, 4, 0.1}}, {{1, 0, 1}}));
  CHECK_THROWS(CostOf({{2, 0.5, 4, 0.1}}, {{1, 0, 1}}));
}

}  // namespace dtrain::bench
