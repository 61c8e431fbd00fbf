// Whole clusters drawn at random, and what must be true at the end of each (docs/training.md): steps are
// counted once, none is lost or repeated, workers go on where the ps say, and rounds end with the same bits.
// A failure prints its seed and config; `kOnlySeeds` runs that case alone, with its log. A run that hangs is
// ended with the same text, before the test runner would end it silently.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/testing/files.h"
#include "trainer/config/load.h"
#include "trainer/task/watched_cluster_test_util.h"

namespace dtrain {
namespace {

constexpr uint64_t kSeeds = 100;
const std::vector<uint64_t> kOnlySeeds = {};  // empty: 1 to kSeeds

// Ends the process when a case takes longer than any deadline of the product.
class HangGuard {
 public:
  explicit HangGuard(std::string description)
      : thread_([this, description = std::move(description)] {
          std::unique_lock<std::mutex> hold(mutex_);
          if (ended_.wait_for(hold, std::chrono::seconds(150), [this] { return over_; })) return;
          fmt::print(stderr, "this case hangs: {}\n", description);
          std::abort();
        }) {}
  ~HangGuard() {
    {
      const std::lock_guard<std::mutex> hold(mutex_);
      over_ = true;
    }
    ended_.notify_all();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread thread_;  // the last member: it uses the others
};

CaseOutcome Run(const RandomCase& c) {
  const HangGuard guard(Describe(c));
  LogOptions log;
  log.standard_error = !kOnlySeeds.empty();
  return WatchedCluster(c, log).Run();
}

struct Between {
  int64_t least = 0;
  int64_t most = 0;
};

// A case and its outcome.
class Verdict {
 public:
  Verdict(const RandomCase& of, const CaseOutcome& outcome) : case_(of), outcome_(outcome) {
    for (int worker = 0; worker < case_.workers(); ++worker) lost_ |= Of(worker).front()->lost;
  }

  void CheckAll() {
    for (const std::string& problem : outcome_.problems) FAIL_CHECK(problem);
    const size_t tasks = static_cast<size_t>(case_.ps() + case_.workers());
    const bool stays_away = lost_ && !case_.loss.returns;
    CHECK(outcome_.summaries.size() == tasks - (stays_away ? 1 : 0));
    if (outcome_.summaries.empty() || !outcome_.problems.empty()) return;
    CheckSummaries();
    CheckEnd();
    CheckVersions();
    for (int worker = 0; worker < case_.workers(); ++worker) CheckWorker(worker);
    CheckExamples();
  }

  const RunSummary& summary() const { return outcome_.summaries.front(); }
  bool disturbed() const {
    return case_.late_worker >= 0 || (lost_ && !(case_.waits() && case_.all_in_each_round()));
  }
  // A lost worker forgets what its compressed gradients have left out.
  bool same_bits() const {
    return case_.all_in_each_round() && !disturbed() && !(lost_ && case_.CompressesGradients());
  }

 private:
  using Incarnations = std::vector<std::unique_ptr<Incarnation>>;

  const Incarnations& Of(int worker) const { return outcome_.workers[static_cast<size_t>(worker)]; }
  bool torn() const { return lost_ && case_.loss.kind == LossKind::kTorn; }
  int64_t LocalSteps(int worker) const { return summary().local_steps[static_cast<size_t>(worker)]; }
  bool Whole(int worker) const {
    return worker != case_.late_worker && !(lost_ && worker == case_.loss.worker);
  }
  // Whether ps 0 has all of the gradient in which the worker was lost.
  bool TornCounts() const {
    return torn() && TornBlocks(0) == BlocksOf(MakeLayout(case_.config, case_.ps()), 0);
  }
  // The blocks of that gradient that this ps was sent.
  int64_t TornBlocks(size_t ps) const {
    const auto& sent = Of(case_.loss.worker).front()->wire.torn;
    const auto found = sent.find(case_.config.cluster.ps[ps]);
    return found == sent.end() ? 0 : found->second;
  }
  // The gradients of the lost worker that ps 0 has.
  int64_t TakenBeforeLoss() const { return case_.loss.step - (TornCounts() ? 0 : 1); }

  void CheckSummaries() {
    for (const RunSummary& other : outcome_.summaries) {
      CHECK(other.status == "done");
      CHECK(other.global_step == summary().global_step);
      CHECK(other.model_crc == summary().model_crc);
      CHECK(other.local_steps == summary().local_steps);
    }
    CHECK(summary().deterministic ==
          (case_.all_in_each_round() && !disturbed() && !case_.CompressesGradients()));
    for (const auto& [name, values] : summary().weights) {
      for (const float value : values) CHECK(std::isfinite(value));
    }
  }

  // The steps of the run when each worker takes its number of `own` steps.
  int64_t RoundsOrSteps(const std::vector<int64_t>& own) const {
    int64_t sum = 0, most = 0;
    for (const int64_t steps : own) {
      sum = std::min(kUnbounded, sum + steps);
      most = std::max(most, steps);
    }
    return std::min(case_.MaxSteps(), case_.sync() ? most : sum);
  }
  Between ExpectedSteps() const {
    std::vector<int64_t> all, without;  // the lost or late worker takes all of its steps; almost none
    for (int worker = 0; worker < case_.workers(); ++worker) {
      all.push_back(case_.OwnSteps(worker));
      const int64_t lost = lost_ && worker == case_.loss.worker ? TakenBeforeLoss() : 0;
      without.push_back(Whole(worker) ? all.back() : lost);
    }
    const bool backup = case_.sync() && !case_.all_in_each_round();
    const bool all_the_same = !lost_ && case_.late_worker < 0;
    const bool comes_back = lost_ && case_.waits() && !backup;
    if (all_the_same || comes_back) without = all;
    if (lost_ && !case_.loss.returns) all = without;
    Between steps{RoundsOrSteps(without), RoundsOrSteps(all)};
    if (backup || (case_.sync() && disturbed() && case_.loss.returns) || case_.late_worker >= 0) {
      // Each gradient makes at most one round of its own.
      int64_t sum = 0;
      for (int worker = 0; worker < case_.workers(); ++worker) sum += LocalSteps(worker);
      steps.most = std::min(case_.MaxSteps(), sum + 1);
    }
    if (backup && lost_) {
      for (size_t worker = 0; worker < without.size(); ++worker) {
        if (!Whole(static_cast<int>(worker))) without[worker] = 0;
      }
      steps.least = RoundsOrSteps(without);
    }
    return steps;
  }

  void CheckEnd() {
    const Between steps = ExpectedSteps();
    CHECK(summary().global_step >= steps.least);
    CHECK(summary().global_step <= steps.most);
    if (case_.sync()) return;
    int64_t sum = 0;
    for (const int64_t local : summary().local_steps) sum += local;
    CHECK(sum == summary().global_step);
  }

  // Each block of each ps was updated once per step. In async and ssp a lost worker may leave part of a
  void CheckVersions() {
    const std::vector<int> owners = case_.PsOfBlocks();
    std::vector<size_t> next(static_cast<size_t>(case_.ps()));
    size_t evaluator = 0;  // pulls the final weights
    while (evaluator + 1 < outcome_.workers.size() &&
           outcome_.workers[evaluator].back()->wire.final_versions.empty()) {
      ++evaluator;
    }
    const auto& final_versions = outcome_.workers[evaluator].back()->wire.final_versions;
    for (size_t block = 0; block < owners.size(); ++block) {
      const auto ps = static_cast<size_t>(owners[block]);
      const auto found = final_versions.find(case_.config.cluster.ps[ps]);
      const bool seen = found != final_versions.end() && found->second.size() > next[ps];
      CHECK(seen);
      if (!seen) return;
      int64_t expected = summary().global_step;
      if (torn() && !case_.sync()) {
        const bool applied = static_cast<int64_t>(next[ps]) < TornBlocks(ps);
        expected += (applied ? 1 : 0) - (TornCounts() ? 1 : 0);
      }
      CHECK(static_cast<int64_t>(found->second[next[ps]++]) == expected);
    }
  }

  void CheckWorker(int worker) {
    CAPTURE(worker);
    int64_t global_step = 0;
    for (const auto& incarnation : Of(worker)) {
      if (!incarnation->began) continue;  // the run was over
      int64_t local_step = incarnation->begin;
      for (const SeenStep& step : incarnation->steps) {
        CHECK(step.local_step == ++local_step);
        if (step.global_step < 0) continue;
        CHECK(step.global_step >= global_step);
        global_step = step.global_step;
        if (case_.all_in_each_round() && !disturbed()) CHECK(global_step == local_step);
      }
      if (!incarnation->lost) CHECK(incarnation->end == local_step);
    }
    CHECK(global_step <= summary().global_step);
    CheckLocalSteps(worker);
    if (Of(worker).size() > 1 && Of(worker).back()->began) CheckReturn(*Of(worker).back());
  }
  void CheckLocalSteps(int worker) {
    const Incarnation& last = *Of(worker).back();
    const int64_t steps = LocalSteps(worker), own = case_.OwnSteps(worker);
    CHECK(steps <= own);
    if (last.end >= 0) CHECK(steps == last.end);
    if (last.lost) CHECK(steps == TakenBeforeLoss());
    if (Whole(worker) && case_.MaxSteps() == kUnbounded) CHECK(steps == own);
    if (case_.all_in_each_round() && !disturbed()) CHECK(steps == std::min(own, summary().global_step));
  }
  // If rounds have waited for a worker, it repeats its last gradient in a round. That may be the torn one, if
  // its first block was at ps 0 in time.
  void CheckReturn(const Incarnation& again) {
    const int64_t before = case_.loss.step - 1;
    Between begin{TakenBeforeLoss(), TakenBeforeLoss()};
    if (case_.sync()) begin.least = before;
    if (case_.all_in_each_round() && case_.waits()) begin.least = std::max<int64_t>(0, before - 1);
    const int64_t taken_up = torn() && TornBlocks(0) > 0 ? case_.loss.step : TakenBeforeLoss();
    if (case_.all_in_each_round() && case_.waits()) begin.most = std::max<int64_t>(0, taken_up - 1);
    CHECK(again.begin >= begin.least);
    CHECK(again.begin <= begin.most);
  }

  // The rows of all steps that count; a repeated step has the same rows.
  void CheckExamples() {
    int64_t rows = 0;
    for (int worker = 0; worker < case_.workers(); ++worker) {
      CAPTURE(worker);
      std::map<int64_t, int64_t> rows_of;  // by local step
      for (const auto& incarnation : Of(worker)) {
        for (const SeenStep& step : incarnation->steps) {
          const auto [known, is_new] = rows_of.emplace(step.local_step, step.rows);
          if (!is_new) CHECK(known->second == step.rows);
        }
      }
      for (int64_t step = 1; step <= LocalSteps(worker); ++step) {
        CHECK(rows_of.count(step) == 1);
        rows += rows_of[step];
      }
    }
    // A round may leave out late gradients, or begin when the last one is decided.
    const bool some_dropped = case_.sync() && (!case_.all_in_each_round() || disturbed());
    if (some_dropped) CHECK(summary().examples <= rows);
    if (!some_dropped) CHECK(summary().examples == rows);
  }

  const RandomCase& case_;
  const CaseOutcome& outcome_;
  bool lost_ = false;
};

// The same run without disturbances, on one ps.
std::string ReferenceCrc(RandomCase c) {
  c.config.cluster.ps.resize(1);
  c.config.placement.policy = PlacementPolicy::kBytes;
  c.loss = LostTask();
  c.repeat_every = 0;
  const CaseOutcome outcome = Run(c);
  REQUIRE(outcome.summaries.size() == static_cast<size_t>(c.workers() + 1));
  return outcome.summaries.front().model_crc.value();
}

// Checks that a user could have written this config.
void CheckMayBeCombined(const RandomCase& c) {
  const std::string directory = testing::NewDirectory();
  const std::string path = directory + "/case.yaml";
  std::ofstream(path) << DumpConfig(c.config);
  CHECK_NOTHROW(LoadConfig(path, {}, {}));
  std::filesystem::remove_all(directory);
}

// Removes what a case has written.
class Files {
 public:
  explicit Files(std::string directory) : directory_(std::move(directory)) {}
  ~Files() {
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
  }

 private:
  const std::string directory_;
};

void CheckSeed(uint64_t seed) {
  const RandomCase c = CaseMaker(seed).Make();
  const Files files(c.directory);
  const std::string description = Describe(c);
  INFO(description);
  CheckMayBeCombined(c);
  const CaseOutcome outcome = Run(c);
  Verdict verdict(c, outcome);
  verdict.CheckAll();
  if (outcome.summaries.empty() || !verdict.same_bits()) return;
  CHECK(verdict.summary().model_crc == ReferenceCrc(c));
}

TEST_CASE("cluster: whatever its config, each step counts once, and every task goes on where it should") {
  PrepareProcess(Config());
  std::vector<uint64_t> seeds = kOnlySeeds;
  for (uint64_t seed = 1; kOnlySeeds.empty() && seed <= kSeeds; ++seed) seeds.push_back(seed);
  for (const uint64_t seed : seeds) CheckSeed(seed);
}

}  // namespace
}  // namespace dtrain
