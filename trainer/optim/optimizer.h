// Optimizer: turns gradients into new weights for one range of the flat vector, on the ps that owns it.
// What an optimizer remembers between gradients (its slots) lives in here, per element of the range: 4 bytes
// times the number of slots. Formulas and their sources: docs/optimizers.md.
// Owner: ParameterShard. Thread: the ps loop only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu/ops.h"
#include "gpu/optimizer_ops.h"
#include "gpu/view.h"
#include "trainer/config/config.h"

namespace dtrain::gpu::cuda {
class Queue;
}

namespace dtrain {

// Which update of its range a gradient makes.
struct UpdateStep {
  int64_t number = 1;  // how many this range has had, with this one: learning rates and biases follow from it
  float scale = 1;     // the gradient is multiplied by this first: 1 / contributors where it is a sum
};

// One number for each element of the range, under its name: "velocity".
struct Slot {
  std::string name;
  gpu::Span<float> values;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Applies one gradient to elements [first, first + size) of the range: `size` float32 at any address, as
  // they lie in a frame. `weights` points to element `first`.
  // Writes the new weights to `updated`, which is `weights` itself or overlaps neither input.
  // Element i of the result and of the slots depends on element i of the inputs and on `step` alone: the same
  // bits however the flat vector is cut into ranges.
  virtual void Apply(const UpdateStep& step, int64_t first, const float* weights, float* updated,
                     const std::byte* gradient, int64_t size) = 0;
  // All that Apply() remembers: with the weights and the number of updates the whole state, to be saved and,
  // by writing to the spans, restored. In a fixed order; the spans stay valid as long as the optimizer. With
  // a queue they are in its device's memory.
  virtual std::vector<Slot> Slots() = 0;
};

// The optimizer that train.optimizer names, for a range of `size` elements. With a queue, which outlives it,
// everything lies in that device's memory, and Apply() is queued there.
std::unique_ptr<Optimizer> MakeOptimizer(const Config& config, int64_t size,
                                         gpu::cuda::Queue* queue = nullptr);
// The names of the optimizer's slots, in the order of Slots().
std::vector<std::string> SlotNames(const Config& config);

// The learning rate of update `number`, from 1 on (train.optimizer.schedule): 0 to 1e30. During the warm-up
// number / warmup_steps of the full rate. Thread: any, as for all functions below.
double LearningRate(const OptimizerConfig& optimizer, int64_t number);

// base^exponent, exponent >= 0, by multiplications: unlike the C library's power the same on every processor.
double WholePower(double base, int64_t exponent);

// The factor by which train.optimizer.clip_norm scales a gradient with this sum of squares over the whole
// model: clip_norm / norm where the norm is larger, otherwise 1 (Pascanu, Mikolov, Bengio 2013). Also 1 where
// a value is infinite or not a number: clipping would turn the others into zeros or the infinite ones into
// nan, and the fault would show somewhere else. Sums are exact (gpu/optimizer_ops.h), so that neither the
// layout of the model nor the number of ps changes a bit.
double ClipScale(const gpu::SquareSum& squares, double clip_norm);

// Scales `gradient`, a whole one, by that factor in place.
void ClipToNorm(double clip_norm, gpu::Span<float> gradient);

}  // namespace dtrain
