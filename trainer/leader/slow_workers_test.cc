#include "trainer/leader/slow_workers.h"

#include <doctest/doctest.h>

#include <string>

namespace dtrain {
namespace {

// Heartbeats of workers whose steps take the given microseconds each.
class Beats {
 public:
  explicit Beats(size_t workers) : slow_(workers, 10), paces_(workers) {}

  // A beat of each worker, 10 s and 10 steps later. Returns those that become slow ("1!") or keep up again
  // ("1.").
  std::string Round(const std::vector<int64_t>& step_us) {
    std::string changes;
    now_ += std::chrono::seconds(10);
    for (size_t worker = 0; worker < step_us.size(); ++worker) {
      paces_[worker].steps += 10;
      paces_[worker].own_us += 10 * step_us[worker];
      changes += Beat(static_cast<int>(worker));
    }
    return changes;
  }
  // A beat without a step.
  std::string Beat(int worker) {
    const size_t index = static_cast<size_t>(worker);
    const auto change = slow_.Report(worker, paces_[index], static_cast<int>(paces_.size()), now_);
    return change ? std::to_string(worker) + (change->slow ? "!" : ".") : std::string();
  }
  void Restart(int worker) { paces_[static_cast<size_t>(worker)] = {}; }
  SlowWorkers& slow() { return slow_; }

 private:
  SlowWorkers slow_;
  std::vector<SlowWorkers::Pace> paces_;
  TimePoint now_;
};

TEST_CASE("slow workers: the one above 1.5 times the median is named, once, and no other") {
  Beats beats(4);
  CHECK(beats.Round({10000, 11000, 16000, 9000}) == "");  // worker 3 has not reported when worker 2 does
  CHECK(beats.Round({10000, 11000, 16000, 9000}) == "");
  CHECK(beats.Round({10000, 11000, 16000, 9000}) == "2!");
  for (int i = 0; i < 5; ++i) CHECK(beats.Round({10000, 11000, 16000, 9000}) == "");
}

TEST_CASE("slow workers: at 1.5 times the median a worker keeps up") {
  Beats beats(3);
  for (int i = 0; i < 5; ++i) CHECK(beats.Round({10000, 10000, 15000}) == "");
}

TEST_CASE("slow workers: a difference of less than a millisecond is none, nor is one of less than detect_s") {
  Beats beats(3);
  for (int i = 0; i < 5; ++i) CHECK(beats.Round({100, 100, 1000}) == "");
  SlowWorkers slow(2, 10);
  const TimePoint begun;
  for (int64_t beat = 1; beat <= 12; ++beat) {
    const TimePoint now = begun + std::chrono::seconds(beat);
    slow.Report(0, {beat, beat * 1000}, 2, now);
    const auto change = slow.Report(1, {beat, beat * 9000}, 2, now);
    CHECK(change.has_value() == (beat == 11));
  }
}

TEST_CASE("slow workers: one that recovers is named again when it is slow again") {
  Beats beats(3);
  beats.Round({10000, 10000, 40000});
  CHECK(beats.Round({10000, 10000, 40000}) == "2!");
  CHECK(beats.Round({10000, 10000, 12000}) == "");
  CHECK(beats.Round({10000, 10000, 12000}) == "2.");
  CHECK(beats.Round({10000, 10000, 40000}) == "");
  CHECK(beats.Round({10000, 10000, 40000}) == "2!");
}

TEST_CASE("slow workers: a single pause is no pace") {
  Beats beats(3);
  for (int i = 0; i < 5; ++i) {
    CHECK(beats.Round({10000, 10000, 10000000}) == "");
    CHECK(beats.Round({10000, 10000, 10000}) == "");
  }
}

TEST_CASE("slow workers: of two, one can be slow; one alone cannot") {
  Beats beats(2);
  beats.Round({10000, 16000});
  CHECK(beats.Round({10000, 16000}) == "1!");
  Beats alone(1);
  for (int i = 0; i < 5; ++i) CHECK(alone.Round({10000000}) == "");
}

TEST_CASE(
    "slow workers: until all that are here have taken steps nobody is judged; beats without steps say "
    "nothing") {
  Beats beats(3);
  for (int i = 0; i < 5; ++i) {
    CHECK(beats.Round({10000, 30000}) == "");
    CHECK(beats.Beat(2) == "");
  }
  CHECK(beats.Round({10000, 30000, 500000}) == "");
  CHECK(beats.Round({10000, 30000, 500000}) == "2!");
}

TEST_CASE("slow workers: one that was started again begins anew, and one that is gone counts no more") {
  Beats beats(3);
  beats.Round({10000, 10000, 40000});
  REQUIRE(beats.Round({10000, 10000, 40000}) == "2!");
  beats.Restart(2);
  CHECK(beats.Round({10000, 10000, 40000}) == "");
  CHECK(beats.Round({10000, 10000, 40000}) == "2!");
  beats.slow().Forget(2);
  for (int i = 0; i < 3; ++i)
    CHECK(beats.Round({10000, 40000}) == "");  // three workers are connected, two have reported
}

TEST_CASE("slow workers: own time and median are told in milliseconds per step") {
  SlowWorkers slow(3, 10);
  TimePoint now;
  std::optional<SlowWorkers::Change> change;
  for (const int64_t steps : {10, 20}) {
    now += std::chrono::seconds(10);
    slow.Report(0, {steps, steps * 1000}, 3, now);
    slow.Report(1, {steps, steps * 1200}, 3, now);
    change = slow.Report(2, {steps, steps * 20000}, 3, now);
  }
  REQUIRE(change.has_value());
  CHECK(change->own_ms == doctest::Approx(20));
  CHECK(change->median_ms == doctest::Approx(1.2));
}

}  // namespace
}  // namespace dtrain
