#include "trainer/optim/schedule.h"

#include <doctest/doctest.h>

#include <cmath>

namespace dtrain {
namespace {

OptimizerConfig WithSchedule(ScheduleKind kind, int64_t warmup_steps = 0) {
  OptimizerConfig optimizer;
  optimizer.learning_rate = 0.8;
  optimizer.schedule.kind = kind;
  optimizer.schedule.decay_steps = 10;
  optimizer.schedule.decay_rate = 0.5;
  optimizer.schedule.end_learning_rate = 0.2;
  optimizer.schedule.warmup_steps = warmup_steps;
  return optimizer;
}

TEST_CASE("schedule: constant is the learning rate at every update") {
  for (const int64_t number : {1, 2, 1000000}) {
    CHECK(LearningRate(WithSchedule(ScheduleKind::kConstant), number) == 0.8);
  }
}

TEST_CASE("schedule: step halves the rate after every ten updates") {
  const OptimizerConfig optimizer = WithSchedule(ScheduleKind::kStep);
  CHECK(LearningRate(optimizer, 1) == 0.8);
  CHECK(LearningRate(optimizer, 10) == 0.8);
  CHECK(LearningRate(optimizer, 11) == 0.4);
  CHECK(LearningRate(optimizer, 31) == 0.1);
}

TEST_CASE("schedule: exponential halves the rate smoothly") {
  const OptimizerConfig optimizer = WithSchedule(ScheduleKind::kExponential);
  CHECK(LearningRate(optimizer, 1) == 0.8);
  CHECK(LearningRate(optimizer, 6) == doctest::Approx(0.8 * std::sqrt(0.5)));
  CHECK(LearningRate(optimizer, 11) == doctest::Approx(0.4));
}

TEST_CASE("schedule: inverse time divides by 1 + decay_rate * n / decay_steps") {
  const OptimizerConfig optimizer = WithSchedule(ScheduleKind::kInverseTime);
  CHECK(LearningRate(optimizer, 1) == 0.8);
  CHECK(LearningRate(optimizer, 11) == doctest::Approx(0.8 / 1.5));
  CHECK(LearningRate(optimizer, 41) == doctest::Approx(0.8 / 3));
}

TEST_CASE("schedule: cosine goes down to the end rate in decay_steps and stays there") {
  const OptimizerConfig optimizer = WithSchedule(ScheduleKind::kCosine);
  CHECK(LearningRate(optimizer, 1) == doctest::Approx(0.8));
  CHECK(LearningRate(optimizer, 6) == doctest::Approx(0.5));
  CHECK(LearningRate(optimizer, 11) == 0.2);
  CHECK(LearningRate(optimizer, 1000) == 0.2);
}

TEST_CASE("schedule: the warm-up grows linearly to the full rate, and the schedule begins after it") {
  for (const ScheduleKind kind : {ScheduleKind::kConstant, ScheduleKind::kStep, ScheduleKind::kExponential,
                                  ScheduleKind::kInverseTime, ScheduleKind::kCosine}) {
    const OptimizerConfig warm = WithSchedule(kind, 4), cold = WithSchedule(kind);
    CHECK(LearningRate(warm, 1) == doctest::Approx(0.2));
    CHECK(LearningRate(warm, 3) == doctest::Approx(0.6));
    CHECK(LearningRate(warm, 4) == 0.8);
    for (int64_t number = 1; number < 30; ++number) {
      CHECK(LearningRate(warm, number + 4) == LearningRate(cold, number));
    }
  }
}

TEST_CASE("schedule: a rate that grows without end stays finite") {
  OptimizerConfig optimizer = WithSchedule(ScheduleKind::kStep);
  optimizer.schedule.decay_rate = 1e30;
  CHECK(LearningRate(optimizer, 1000000) == 1e30);
}

TEST_CASE("whole power: is the product, also of many factors") {
  CHECK(WholePower(0.9, 0) == 1);
  CHECK(WholePower(0.9, 1) == 0.9);
  CHECK(WholePower(0.9, 5) == doctest::Approx(0.59049).epsilon(1e-14));
  CHECK(WholePower(0.999, 100000) == doctest::Approx(std::pow(0.999, 100000)).epsilon(1e-10));
  CHECK(WholePower(0.5, int64_t{1} << 60) == 0);
}

}  // namespace
}  // namespace dtrain
