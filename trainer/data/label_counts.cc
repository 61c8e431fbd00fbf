#include "trainer/data/label_counts.h"

#include <algorithm>
#include <numeric>

namespace dtrain {
namespace {

constexpr int64_t kRowsAtOnce = 4096;

// Of the rows from `first` to before `end`.
std::vector<int64_t> CountsOf(const DataSet& set, int64_t first, int64_t end) {
  std::vector<int64_t> counts;
  std::vector<int64_t> rows(static_cast<size_t>(kRowsAtOnce));
  std::vector<int32_t> labels(rows.size());
  for (; first < end; first += kRowsAtOnce) {
    const int64_t count = std::min(kRowsAtOnce, end - first);
    std::iota(rows.begin(), rows.begin() + count, first);
    set.Gather(rows.data(), count, nullptr, labels.data(), nullptr);
    const auto largest = static_cast<size_t>(*std::max_element(labels.begin(), labels.begin() + count));
    if (largest >= counts.size()) counts.resize(largest + 1);
    for (int64_t i = 0; i < count; ++i) ++counts[static_cast<size_t>(labels[static_cast<size_t>(i)])];
  }
  return counts;
}

bool HasLabels(const DataSet* set) { return set != nullptr && set->classes() && set->rows(); }

}  // namespace

LabelCounts CountLabels(const LoadedData& data, int64_t validation) {
  LabelCounts counts;
  if (HasLabels(data.train.get())) {
    const int64_t rows = *data.train->rows();
    const int64_t held_out = std::min(validation, rows);  // who makes batches refuses to hold out all
    counts.held_out = CountsOf(*data.train, 0, held_out);
    counts.trained = CountsOf(*data.train, held_out, rows);
  }
  if (HasLabels(data.test.get())) counts.test = CountsOf(*data.test, 0, *data.test->rows());
  return counts;
}

}  // namespace dtrain
