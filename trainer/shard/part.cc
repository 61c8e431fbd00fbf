#include "trainer/shard/part.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace dtrain {

double RoundGradients::Divisor(Reduce reduce, std::vector<float>* shares) const {
  shares->clear();
  if (reduce == Reduce::kSum) return 1;
  const bool equal = std::adjacent_find(rows.begin(), rows.end(), std::not_equal_to<>()) == rows.end();
  if (equal) return static_cast<double>(rows.size());
  const double all = std::accumulate(rows.begin(), rows.end(), 0.0);
  for (const uint32_t of_one : rows) shares->push_back(static_cast<float>(of_one / all));
  return 1;
}

}  // namespace dtrain
