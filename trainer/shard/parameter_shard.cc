#include "trainer/shard/parameter_shard.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/check.h"

namespace dtrain {

void ParameterShard::Restore(int64_t slot, int64_t first, net::TensorView) { DT_CHECK(false, slot, first); }

void ParameterShard::RestoreRow(uint64_t row, const float*) { DT_CHECK(false, row); }

void ParameterShard::RestoreHashRow(const HashRow& row) { DT_CHECK(false, row.row); }

net::LentBytes ParameterShard::LendRows(int64_t block, gpu::Span<const uint64_t>) {
  DT_CHECK(false, block);
  return {};
}

net::LentBytes ParameterShard::LendPreviousRows(int64_t block, gpu::Span<const uint64_t>) {
  DT_CHECK(false, block);
  return {};
}

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
