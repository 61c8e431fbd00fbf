// Real processes whose connections are cut a hundred times while they train: requests and answers get lost
// half written, and every update is applied exactly once all the same.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/random.h"
#include "cmd/testing/job.h"
#include "cmd/testing/tcp_proxy.h"

namespace dtrain::testing {
namespace {

constexpr int64_t kSteps = 2000;
constexpr int64_t kCuts = 100;

struct Case {
  int ps;
  int workers;
  std::string train;  // what is set of the section
};

std::string Job(const Case& job) {
  return fmt::format(
      "model: {{kind: linear, inputs: 40}}\n"
      "data: {{train: {{format: synthetic, name: linear}}}}\n"
      "train: {{batch_size: 2, steps: {}, {}}}\n"
      "failure: {{detect_s: 30}}\n"
      "net: {{checksum: true}}\n"
      "hooks: {{log_every_steps: 0}}\n",
      kSteps, job.train);
}

// A cluster whose workers reach each ps through a proxy.
class CutCluster {
 public:
  CutCluster(const Case& job, bool cut) : cluster_(job.ps, job.workers, Job(job)) {
    std::string addresses;
    for (int i = 0; i < job.ps; ++i) {
      proxies_.push_back(std::make_unique<TcpProxy>(cluster_.address("ps", i)));
      if (cut) proxies_.back()->CutAfter(Gaps(i, kCuts / job.ps));
      addresses += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", proxies_.back()->address());
    }
    for (int i = 0; i < job.ps; ++i) {
      tasks_.push_back(cluster_.Start("ps", i,
                                      {"--set", fmt::format("cluster.ps=[{}]", addresses), "--set",
                                       fmt::format("net.bind=\"{}\"", cluster_.address("ps", i))}));
    }
    for (int i = 0; i < job.workers; ++i) {
      std::vector<std::string> more = {"--set", fmt::format("cluster.ps=[{}]", addresses)};
      if (i == 0) more.insert(more.end(), {"--result", cluster_.directory() + "/result.json"});
      tasks_.push_back(cluster_.Start("worker", i, more));
    }
  }

  Json Result() {
    CheckEnds(tasks_);
    return ReadResult(cluster_.directory() + "/result.json");
  }
  TcpProxy& proxy(size_t ps) { return *proxies_[ps]; }
  int64_t cuts() const {
    int64_t sum = 0;
    for (const auto& proxy : proxies_) sum += proxy->cuts();
    return sum;
  }

 private:
  // A message and its answer are some 500 bytes; a new connection takes as many before the first one.
  static std::deque<int64_t> Gaps(int seed, int64_t count) {
    const CounterRandom random(static_cast<uint64_t>(seed));
    std::deque<int64_t> gaps;
    for (int64_t i = 0; i < count; ++i) {
      gaps.push_back(500 + static_cast<int64_t>(random.Below(static_cast<uint64_t>(i), 6000)));
    }
    return gaps;
  }

  const Cluster cluster_;
  std::vector<std::unique_ptr<TcpProxy>> proxies_;
  std::vector<std::unique_ptr<Process>> tasks_;
};

int64_t Sum(const Json& numbers) {
  int64_t sum = 0;
  for (const auto& number : numbers) sum += number.get<int64_t>();
  return sum;
}

// The run's result; null where it is not that of all steps.
Json RunCut(const Case& job) {
  CAPTURE(job.ps);
  CAPTURE(job.workers);
  CAPTURE(job.train);
  CutCluster cluster(job, /*cut=*/true);
  const Json result = cluster.Result();
  CHECK(cluster.cuts() == kCuts);
  REQUIRE(result.is_object());
  CHECK(result.at("status") == "done");
  CHECK(result.at("global_step") == kSteps);
  return result;
}

TEST_CASE("cut connections: in async every step is counted once") {
  for (const auto& [ps, in_flight] : {std::pair(1, 1), {2, 4}}) {
    const Json result = RunCut({ps, 2, fmt::format("mode: async, in_flight: {}", in_flight)});
    CHECK(Sum(result.at("local_steps")) == kSteps);
    CHECK(result.at("examples") == 2 * kSteps);
  }
}

TEST_CASE("cut connections: one worker, and sync, end with the weights of an undisturbed run, to the bit") {
  for (const Case& job : {Case{1, 1, "mode: async"}, Case{1, 2, "mode: sync"}}) {
    const Json uncut = CutCluster(job, /*cut=*/false).Result();
    for (const int ps : {1, 2}) {
      const Json result = RunCut({ps, job.workers, job.train});
      CHECK(result.at("model_crc") == uncut.at("model_crc"));
      CHECK(result.at("local_steps") == uncut.at("local_steps"));
    }
  }
}

TEST_CASE("cut connections: a run goes on when its network does, after it was held and refused connections") {
  CutCluster cluster({1, 2, "mode: sync"}, /*cut=*/false);
  TcpProxy& proxy = cluster.proxy(0);
  REQUIRE(proxy.WaitForBytes(50000));
  proxy.Hold(true);
  proxy.Refuse(true);
  proxy.Cut();
  CHECK(proxy.WaitForRefused(8));
  proxy.Refuse(false);
  proxy.Hold(false);
  const Json result = cluster.Result();
  REQUIRE(result.is_object());
  CHECK(result.at("local_steps") == Json({kSteps, kSteps}));
}

}  // namespace
}  // namespace dtrain::testing
