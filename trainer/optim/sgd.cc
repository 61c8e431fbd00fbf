#include "trainer/optim/sgd.h"

#include "base/check.h"

namespace dtrain {

Sgd::Sgd(double learning_rate, int64_t size)
    : learning_rate_(static_cast<float>(learning_rate)), size_(size), stream_(gpu::Backend::kCpu) {}

void Sgd::Apply(int64_t first, const float* weights, float* updated, const std::byte* gradient,
                int64_t size) {
  DT_CHECK(first >= 0 && first + size <= size_, first, size, size_);
  gpu::SgdStep(stream_, {weights, size}, gradient, learning_rate_, {updated, size});
}

}  // namespace dtrain
