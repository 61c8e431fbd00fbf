// The cost of a step on the wire: its messages, by kind, and their bytes. The figures are the difference of
// two runs whose steps differ by a hundred, so start and end do not count.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "net/inproc_transport.h"
#include "trainer/task/counting_transport_test_util.h"
#include "trainer/task/run_task.h"
#include "trainer/testing/small_config.h"

namespace dtrain {

// For failed checks.
inline doctest::String toString(const Sent& sent) {
  return fmt::format("{} messages, headers {}, payloads {}", sent.messages, sent.header_bytes,
                     sent.payload_bytes)
      .c_str();
}

namespace {

using Costs = std::map<std::string, Sent>;

constexpr int64_t kSteps = 100;

Config SoftmaxJob(TrainMode mode, int ps, int64_t steps) {
  Config config = DigitsCluster(ps, 2, 1);
  config.data.train.rows = 100;
  config.data.test.format = DataFormat::kNone;
  config.train.mode = mode;
  config.train.epochs.reset();
  config.train.steps = steps;
  config.train.batch_size = 5;
  config.train.optimizer.learning_rate = 0.01;
  config.net.checksum = false;
  config.failure.detect_s = 20;  // a busy machine must not lose a task
  return config;
}

void RunCounted(const Config& config, Count& count) {
  PrepareProcess(config);
  net::InprocTransport transport;
  LogOptions log_options;
  log_options.level = LogLevel::kError;
  std::vector<std::thread> threads;
  const auto start = [&](Role role, size_t tasks) {
    for (size_t i = 0; i < tasks; ++i) {
      threads.emplace_back([&, task = TaskId{role, static_cast<int>(i)}] {
        CountingTransport counted(transport, task.role == Role::kWorker ? "worker" : TaskName(task), count);
        Logger log(TaskName(task), log_options);
        RunTask(config, task, counted, log, {});
      });
    }
  };
  start(Role::kPs, config.cluster.ps.size());
  start(Role::kWorker, config.cluster.worker.size());
  for (std::thread& thread : threads) thread.join();
}

// Whether messages of this kind, of the start or of waiting, may be repeated at any time (docs/wire.md).
bool IsFreelyRepeated(const std::string& kind) {
  for (const char* free : {": Hello", ": Welcome", ": Refuse", ": Heartbeat"}) {
    if (kind.find(free) != std::string::npos) return true;
  }
  return false;
}

// The messages of a run in which no request had to be repeated.
Costs CostsOf(const Config& config) {
  constexpr int kTries = 5;  // for a machine that delays a task by a second
  for (int i = 0; i < kTries; ++i) {
    Count count;
    RunCounted(config, count);
    if (count.repeats() == 0) return count.sent();
  }
  FAIL("requests are repeated in each of ", kTries, " runs");
  return {};
}

// The messages of kSteps further steps. Leaves out kinds whose number is the same in both runs: texts at the
// end differ in length.
Costs CostsOfSteps(TrainMode mode, int ps) {
  const Costs few = CostsOf(SoftmaxJob(mode, ps, kSteps));
  Costs costs;
  for (const auto& [kind, sent] : CostsOf(SoftmaxJob(mode, ps, 2 * kSteps))) {
    const auto at = few.find(kind);
    const Sent before = at == few.end() ? Sent() : at->second;
    if (IsFreelyRepeated(kind) || sent.messages == before.messages) continue;
    costs[kind] = {sent.messages - before.messages, sent.header_bytes - before.header_bytes,
                   sent.payload_bytes - before.payload_bytes};
  }
  return costs;
}

Sent Messages(int64_t count, int64_t header_bytes, int64_t payload_bytes) {
  return {count, count * header_bytes, count * payload_bytes};
}

// `gradients`: of both workers in kSteps steps.
Costs ExpectedCosts(int ps, int64_t gradients, int64_t push_header_bytes) {
  constexpr int64_t kLeaderHeaderBytes = 96;  // with the global step and the next grant
  constexpr int64_t kHeaderBytes = 80;
  const Layout layout = MakeLayout(SoftmaxJob(TrainMode::kAsync, ps, 1), ps);
  Costs costs;
  Sent& pushes = costs["worker: Push"];
  for (int i = 0; i < ps; ++i) {
    const int64_t range_bytes =
        layout.ps[static_cast<size_t>(i)].size() * static_cast<int64_t>(sizeof(float));
    pushes += Messages(gradients, push_header_bytes, range_bytes);
    costs[fmt::format("ps {}: Weights to Push", i)] =
        Messages(gradients, i == 0 ? kLeaderHeaderBytes : kHeaderBytes, range_bytes);
  }
  return costs;
}

void CheckCosts(const Costs& costs, const Costs& expected) {
  for (const auto& [kind, sent] : costs) {
    CAPTURE(kind);
    CHECK(expected.count(kind) == 1);
  }
  for (const auto& [kind, sent] : expected) {
    CAPTURE(kind);
    REQUIRE(costs.count(kind) == 1);
    CHECK(costs.at(kind) == sent);
  }
}

TEST_CASE("step messages: async and ssp, a step is one gradient to each ps and its answer, nothing else") {
  for (const TrainMode mode : {TrainMode::kAsync, TrainMode::kSsp}) {
    for (const int ps : {1, 3}) {
      CAPTURE(ps);
      CheckCosts(CostsOfSteps(mode, ps), ExpectedCosts(ps, kSteps, 72));
    }
  }
}

TEST_CASE("step messages: sync, a step is besides one question for the round by each ps but ps 0") {
  for (const int ps : {1, 3}) {
    CAPTURE(ps);
    Costs expected = ExpectedCosts(ps, 2 * kSteps, 88);
    for (int i = 1; i < ps; ++i) expected[fmt::format("ps {}: WaitEnd", i)] = Messages(kSteps, 80, 0);
    if (ps > 1) expected["ps 0: Round to WaitEnd"] = Messages((ps - 1) * kSteps, 128, 0);
    CheckCosts(CostsOfSteps(TrainMode::kSync, ps), expected);
  }
}

}  // namespace
}  // namespace dtrain
