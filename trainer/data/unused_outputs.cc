#include "trainer/data/unused_outputs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

namespace dtrain {

std::string UnusedOutputsText(const ModelConfig& model, const InputForm& form, const LabelCounts& counts) {
  const auto used =
      static_cast<int64_t>(std::max({counts.held_out.size(), counts.trained.size(), counts.test.size()}));
  if (model.kind == ModelKind::kLogistic && used == 1) {
    return "all labels of the data are of class 0, and a logistic model tells two: are these the right "
           "labels?";
  }
  if (!HasOutputPerClass(model.kind)) return "";
  const int64_t outputs = *model.outputs;
  if (used == 0 || used >= outputs) return "";
  const std::string unused = used + 1 == outputs ? fmt::format("output {} is", used)
                                                 : fmt::format("outputs {} to {} are", used, outputs - 1);
  const size_t names = form.classes.size();
  const std::string there = names == 0 ? fmt::format("the largest label of the data is {}", used - 1)
                                       : fmt::format("the data has {} names of classes", names);
  return fmt::format(
      "model.outputs = {}, and {}: {} never right. {}", outputs, there, unused,
      used < 2 ? "Are these the right labels?" : fmt::format("Set model.outputs to {}.", used));
}

}  // namespace dtrain
