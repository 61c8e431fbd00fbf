#include "trainer/data/unused_outputs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace dtrain {
namespace {

constexpr int64_t kRowsAtOnce = 4096;

// -1: there is no label.
int64_t LargestLabel(const DataSet* set) {
  int64_t largest = -1;
  if (set == nullptr || !set->classes() || !set->rows()) return largest;
  std::vector<int64_t> rows(static_cast<size_t>(kRowsAtOnce));
  std::vector<int32_t> labels(rows.size());
  for (int64_t first = 0; first < *set->rows(); first += kRowsAtOnce) {
    const int64_t count = std::min(kRowsAtOnce, *set->rows() - first);
    std::iota(rows.begin(), rows.begin() + count, first);
    set->Gather(rows.data(), count, nullptr, labels.data(), nullptr);
    largest = std::max<int64_t>(largest, *std::max_element(labels.begin(), labels.begin() + count));
  }
  return largest;
}

}  // namespace

std::string UnusedOutputsText(const ModelConfig& model, const LoadedData& data) {
  const int64_t used = std::max(LargestLabel(data.train.get()), LargestLabel(data.test.get())) + 1;
  if (model.kind == ModelKind::kLogistic && used == 1) {
    return "all labels of the data are of class 0, and a logistic model tells two: are these the right "
           "labels?";
  }
  if (!HasOutputPerClass(model.kind)) return "";
  const int64_t outputs = *model.outputs;
  if (used == 0 || used >= outputs) return "";
  const std::string unused = used + 1 == outputs ? fmt::format("output {} is", used)
                                                 : fmt::format("outputs {} to {} are", used, outputs - 1);
  const size_t names = data.form.classes.size();
  const std::string there = names == 0 ? fmt::format("the largest label of the data is {}", used - 1)
                                       : fmt::format("the data has {} names of classes", names);
  return fmt::format(
      "model.outputs = {}, and {}: {} never right. {}", outputs, there, unused,
      used < 2 ? "Are these the right labels?" : fmt::format("Set model.outputs to {}.", used));
}

}  // namespace dtrain
