#include "trainer/shard/parameter_shard.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace dtrain {

bool RoundGradients::Shares(std::vector<float>* shares) const {
  shares->clear();
  if (std::adjacent_find(rows.begin(), rows.end(), std::not_equal_to<>()) == rows.end()) return false;
  const double all = std::accumulate(rows.begin(), rows.end(), 0.0);
  for (const uint32_t of_one : rows) shares->push_back(static_cast<float>(of_one / all));
  return true;
}

}  // namespace dtrain
