#include "trainer/data/float_set.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace dtrain {

FloatSet::FloatSet(std::vector<float> features, int64_t inputs, std::optional<int64_t> classes,
                   std::vector<int32_t> labels, std::vector<float> targets)
    : features_(std::move(features)),
      inputs_(inputs),
      classes_(classes),
      labels_(std::move(labels)),
      targets_(std::move(targets)) {
  DT_CHECK(features_.size() == static_cast<size_t>(*rows() * inputs_), features_.size(), *rows(), inputs_);
}

void FloatSet::Gather(const int64_t* rows, int64_t count, float* inputs, int32_t* labels,
                      float* targets) const {
  for (int64_t i = 0; i < count; ++i) {
    if (inputs != nullptr) {
      std::copy_n(features_.data() + rows[i] * inputs_, inputs_, inputs + i * inputs_);
    }
    if (classes_.has_value()) {
      labels[i] = labels_[static_cast<size_t>(rows[i])];
    } else {
      targets[i] = targets_[static_cast<size_t>(rows[i])];
    }
  }
}

}  // namespace dtrain
