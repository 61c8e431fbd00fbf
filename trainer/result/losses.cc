#include "trainer/result/losses.h"

#include <algorithm>
#include <numeric>

namespace dtrain {

double RecentLosses::Mean() const {
  const std::vector<float> losses = Latest(kMax);  // in order, so that a resumed run has the same bits
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

std::vector<float> RecentLosses::Latest(size_t most) const {
  std::vector<float> losses;
  for (size_t i = count_ - std::min({count_, kMax, most}); i < count_; ++i) {
    losses.push_back(losses_[i % kMax]);
  }
  return losses;
}

}  // namespace dtrain
