#include "trainer/sets/data_set.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "gpu/ops.h"

namespace dtrain {
namespace {

constexpr double kWeight = 2;
constexpr double kBias = 10;
constexpr double kNoise = 0.33;

}  // namespace

ByteSet::ByteSet(LargeVector<uint8_t> bytes, std::vector<uint8_t> labels, int64_t inputs, int64_t classes)
    : bytes_(std::move(bytes)), labels_(std::move(labels)), inputs_(inputs), classes_(classes) {
  DT_CHECK(bytes_.size() == labels_.size() * static_cast<size_t>(inputs), bytes_.size(), labels_.size(),
           inputs);
}

void ByteSet::Gather(const int64_t* rows, int64_t count, float* inputs, int32_t* labels, float*) const {
  if (inputs != nullptr) {
    gpu::Stream stream;
    gpu::GatherBytes(stream, {bytes(), {rows, count}}, {inputs, count, inputs_});
  }
  for (int64_t i = 0; i < count; ++i) labels[i] = labels_[rows[i]];
}

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

std::unique_ptr<BatchSource> ForwardedSet::Stream(const Config& config, int worker, int workers) const {
  return set_->Stream(config, worker, workers);
}

uint64_t WeightedSet::Checksum() const {
  const uint64_t rows = ForwardedSet::Checksum();
  if (rows == 0 || weights_.empty()) return rows;
  return FeatureChecksum(static_cast<FeatureForm>(rows & 0xff), {BytesOf(&rows, 1), BytesOf(weights_)});
}

SyntheticLinear::SyntheticLinear(uint64_t seed, std::string_view part, int64_t inputs,
                                 std::optional<int64_t> rows)
    : random_(CounterRandom(seed).Stream("synthetic linear").Stream(part)), inputs_(inputs), rows_(rows) {}

void SyntheticLinear::Gather(const int64_t* rows, int64_t count, float* inputs, int32_t*,
                             float* targets) const {
  for (int64_t i = 0; i < count; ++i) {
    // A row takes inputs_ + 1 numbers: the inputs, then the noise.
    const uint64_t first = static_cast<uint64_t>(rows[i]) * static_cast<uint64_t>(inputs_ + 1);
    double sum = 0;
    for (int64_t j = 0; j < inputs_; ++j) {
      const float x = static_cast<float>(random_.Normal(first + static_cast<uint64_t>(j)));
      if (inputs != nullptr) inputs[i * inputs_ + j] = x;
      sum += x;
    }
    const double noise = kNoise * random_.Normal(first + static_cast<uint64_t>(inputs_));
    targets[i] = static_cast<float>(kWeight * sum + kBias + noise);
  }
}

}  // namespace dtrain
