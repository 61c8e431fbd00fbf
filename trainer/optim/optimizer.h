// Optimizer: turns gradients into new weights for one range of the flat vector, on the ps that owns it.
// What an optimizer remembers between gradients (its slots) lives in here, per element of the range.
// Implementations: sgd.h. Owner: ParameterShard. Thread: the ps loop only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "trainer/config/config.h"

namespace dtrain {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Applies one gradient to elements [first, first + size) of the range: `size` float32 at any address, as
  // they lie in a frame. `weights` points to element `first`.
  // Writes the new weights to `updated`, which is `weights` itself or overlaps neither input.
  // Element i of the result depends on element i of the inputs alone: the same bits however the flat
  // vector is cut into ranges.
  virtual void Apply(int64_t first, const float* weights, float* updated, const std::byte* gradient,
                     int64_t size) = 0;
};

// The optimizer that train.optimizer names, for a range of `size` elements.
std::unique_ptr<Optimizer> MakeOptimizer(const Config& config, int64_t size);

}  // namespace dtrain
