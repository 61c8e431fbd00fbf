#include "bench/report/row.h"

#include <algorithm>

namespace dtrain::bench {

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<double> Row::Ratios() const {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(dtrain.size(), limit.size()); ++i) {
    ratios.push_back(smaller_is_better ? limit[i] / dtrain[i] : dtrain[i] / limit[i]);
  }
  return ratios;
}

}  // namespace dtrain::bench
