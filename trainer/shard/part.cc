#include "trainer/shard/part.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace dtrain {

double RoundGradients::Divisor(Reduce reduce, std::vector<float>* shares) const {
  shares->clear();
  if (reduce == Reduce::kSum) return 1;
  const bool equal =
      std::adjacent_find(weights.begin(), weights.end(), std::not_equal_to<>()) == weights.end();
  if (equal) return static_cast<double>(weights.size());
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (const double weight : weights) shares->push_back(static_cast<float>(weight / all));
  return 1;
}

}  // namespace dtrain
