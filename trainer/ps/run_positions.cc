#include "trainer/ps/run_positions.h"

#include <numeric>

namespace dtrain {

void RunPositions::Take(const Positions& positions, int64_t step) {
  first_ = positions;
  const auto workers = config_.cluster.worker.size();
  first_.local_steps.resize(workers);
  first_.examples.resize(workers);
  for (size_t worker = 0; worker < workers; ++worker) {
    Member& member = *members_.Worker(static_cast<int64_t>(worker));
    member.taken = first_.local_steps[worker];
    standings_.Of(member).result.examples = first_.examples[worker];
  }
  first_step_ = step;
}

std::string RunPositions::Now() const {
  Positions now = first_;
  for (size_t worker = 0; worker < now.local_steps.size(); ++worker) {
    const Member& member = *members_.Worker(static_cast<int64_t>(worker));
    now.local_steps[worker] = member.taken;
    now.examples[worker] = standings_.Of(member).result.examples;
  }
  return ToJson(now);
}

int64_t RunPositions::first_examples() const {
  return std::accumulate(first_.examples.begin(), first_.examples.end(), first_.other_examples);
}

}  // namespace dtrain
