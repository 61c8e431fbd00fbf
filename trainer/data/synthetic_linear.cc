#include "trainer/data/synthetic_linear.h"

namespace dtrain {
namespace {

constexpr double kWeight = 2;
constexpr double kBias = 10;
constexpr double kNoise = 0.33;

}  // namespace

SyntheticLinear::SyntheticLinear(uint64_t seed, std::string_view part, int64_t inputs,
                                 std::optional<int64_t> rows)
    : random_(CounterRandom(seed).Stream("synthetic linear").Stream(part)), inputs_(inputs), rows_(rows) {}

void SyntheticLinear::Gather(const int64_t* rows, int64_t count, float* inputs, int32_t*,
                             float* targets) const {
  for (int64_t i = 0; i < count; ++i) {
    // inputs_ + 1 numbers per row: the inputs, then the noise.
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
