#include "trainer/hooks/step_stats.h"

#include <doctest/doctest.h>

namespace dtrain {
namespace {

using std::chrono::microseconds;

TEST_CASE(
    "step times: each mark ends one part and begins the next; what was held back is wait, the rest network") {
  StepTimes times;
  TimePoint now;
  times.Begin(now);
  for (int step = 0; step < 3; ++step) {
    times.Mark(StepPart::kData, now += microseconds(10));
    times.Mark(StepPart::kCompute, now += microseconds(200));
    times.Mark(StepPart::kData, now += microseconds(5));
    times.MarkAnswer(now += microseconds(100), 70);
    times.Mark(StepPart::kHooks, now += microseconds(1));
    times.EndStep();
  }
  CHECK(times.last_nanos(StepPart::kData) == 15000);
  CHECK(times.Of(StepPart::kData).sum() == 45000);
  CHECK(times.Of(StepPart::kCompute).sum() == 600000);
  CHECK(times.Of(StepPart::kWait).sum() == 210000);
  CHECK(times.Of(StepPart::kNetwork).sum() == 90000);
  CHECK(times.Of(StepPart::kHooks).count() == 3);
  CHECK(times.own_nanos() == 3 * 216000);
}

TEST_CASE(
    "step times: an answer that was held while the worker did something else is wait only as far as it "
    "waited") {
  StepTimes times;
  TimePoint now;
  times.Begin(now);
  times.MarkAnswer(now += microseconds(30), 1000);
  times.EndStep();
  CHECK(times.last_nanos(StepPart::kWait) == 30000);
  CHECK(times.last_nanos(StepPart::kNetwork) == 0);
}

TEST_CASE("step times: a step that did not come about counts nowhere") {
  StepTimes times;
  TimePoint now;
  times.Begin(now);
  times.Mark(StepPart::kWait, now += microseconds(30));
  CHECK(times.Of(StepPart::kWait).count() == 0);
  CHECK(times.own_nanos() == 0);
}

}  // namespace
}  // namespace dtrain
