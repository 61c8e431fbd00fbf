#include "trainer/hooks/step_stats.h"

#include <doctest/doctest.h>

#include <cmath>

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
  CHECK(times.Of(StepPart::kData).sum() == 45000);
  CHECK(times.Of(StepPart::kCompute).sum() == 600000);
  CHECK(times.Of(StepPart::kWait).sum() == 210000);
  CHECK(times.Of(StepPart::kNetwork).sum() == 90000);
  CHECK(times.Of(StepPart::kHooks).count() == 3);
}

TEST_CASE(
    "step times: an answer that was held while the worker did something else is wait only as far as it "
    "waited") {
  StepTimes times;
  TimePoint now;
  times.Begin(now);
  times.MarkAnswer(now += microseconds(30), 1000);
  times.EndStep();
  CHECK(times.Of(StepPart::kWait).sum() == 30000);
  CHECK(times.Of(StepPart::kNetwork).sum() == 0);
}

TEST_CASE("step times: a step that did not come about counts nowhere") {
  StepTimes times;
  TimePoint now;
  times.Begin(now);
  times.Mark(StepPart::kWait, now += microseconds(30));
  CHECK(times.Of(StepPart::kWait).count() == 0);
}

TEST_CASE("staleness: alone it is 0; updates of others in between are counted") {
  Staleness staleness(1);
  staleness.OnPulled(10);
  staleness.OnPushed();
  staleness.OnApplied(11);
  CHECK(staleness.TakeRecent()->mean == 0);
  staleness.OnPushed();
  staleness.OnApplied(15);  // 12, 13 and 14 were other workers'
  CHECK(staleness.TakeRecent()->mean == 3);
}

TEST_CASE("staleness: with open exchanges each gradient counts from its own weights") {
  Staleness staleness(3);
  staleness.OnPulled(0);
  for (int i = 0; i < 3; ++i) staleness.OnPushed();  // all three of version 0
  staleness.OnApplied(1);
  CHECK(staleness.TakeRecent()->mean == 0);
  staleness.OnPushed();  // of version 1
  staleness.OnApplied(2);
  staleness.OnApplied(3);
  CHECK(staleness.TakeRecent()->mean == 1.5);
  staleness.OnApplied(4);
  CHECK(staleness.TakeRecent()->mean == 2);
}

TEST_CASE("staleness: without an answer there is none") {
  Staleness staleness(1);
  staleness.OnPushed();
  CHECK_FALSE(staleness.TakeRecent().has_value());
}

TEST_CASE("staleness: quantiles are of the gradients since the last call, and of all") {
  Staleness staleness(1);
  uint64_t version = 0;
  staleness.OnPulled(version);
  for (uint64_t missed = 0; missed < 20; ++missed) {
    staleness.OnPushed();
    staleness.OnApplied(version += missed + 1);
  }
  const HistogramFigures recent = *staleness.TakeRecent();
  CHECK(recent.p50 == 9);
  CHECK(recent.p95 == 18);
  CHECK(recent.max == 19);
  CHECK_FALSE(staleness.TakeRecent().has_value());
  staleness.OnPushed();
  staleness.OnApplied(version + 1);
  CHECK(staleness.TakeRecent()->max == 0);
  CHECK(staleness.all().count() == 21);
  CHECK(staleness.all().Figures().max == 19);
}

}  // namespace
}  // namespace dtrain
