// Optimizer: turns gradients into new weights for one range of the flat vector, on the ps that owns it. Its
// slots hold what it remembers between gradients, for each element of the range: 4 bytes times the number of
// slots. Formulas and their sources: docs/optimizers.md. Owner: Part. Thread: the ps loop only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu/ops.h"
#include "gpu/optimizer_ops.h"
#include "gpu/view.h"
#include "trainer/config/choices.h"
#include "trainer/optim/model_slots.h"

namespace dtrain::gpu::cuda {
class Queue;
}

namespace dtrain {

// UpdateStep: which update of the range this is, and what it does with the gradient.
struct UpdateStep {
  int64_t number = 1;  // of this update in the range, from 1; sets the learning rate
  float scale = 1;     // factor of the gradient: 1 / contributors if it is a sum
  bool decay = true;   // l1, l2 and weight_decay act on these elements
  // Updates of the slots before the first of the range, in the run that they come from
  // (checkpoint.start_from).
  int64_t earlier = 0;
  // The number of this update in the slots, from 1; sets the bias correction.
  int64_t age() const { return number + earlier; }
  int64_t decay_steps = 0;  // what schedule.decay_steps: auto is; 0: the config has a number
};

// Slot: one number for each element of the range, with a name: "velocity".
struct Slot {
  std::string name;
  gpu::Span<float> values;
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  // Applies one gradient to elements [first, first + size) of the range. `gradient` is `size` float32 at any
  // address, as in a network frame. `weights` points to element `first`. Writes the new weights to `updated`,
  // which is `weights` itself or overlaps neither input. An element of the result and of the slots depends
  // only on that element of the inputs and on `step`, so the bits do not depend on how the flat vector is cut
  // into ranges.
  virtual void Apply(const UpdateStep& step, int64_t first, const float* weights, float* updated,
                     const std::byte* gradient, int64_t size) = 0;
  // Returns the slots in a fixed order. With the weights and the number of updates they are the whole state:
  // it is saved by reading them and restored by writing to them. The spans are valid as long as the
  // optimizer. With a queue they are in its device's memory.
  virtual std::vector<Slot> Slots() = 0;
};

// Returns the optimizer of these settings, for a range of `size` elements. With a queue, which outlives it,
// everything is in that device's memory and Apply() is queued there.
std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerConfig& optimizer, int64_t size,
                                         gpu::cuda::Queue* queue = nullptr);
// The same for a range of the flat vector, of a run.
std::unique_ptr<Optimizer> MakeOptimizer(const Config& config, int64_t size,
                                         gpu::cuda::Queue* queue = nullptr);

// The slots that a model's optimizers keep, by name.
ModelSlots SlotsOf(const Config& config);
// Returns the names of the slots of the flat vector's tensors, in the order of Slots().
std::vector<std::string> SlotNames(const Config& config);

// Returns the value of each slot before the first update, the same for all elements.
std::vector<float> InitialSlots(const OptimizerConfig& optimizer);

// Returns the learning rate of update `number`, from 1 (train.optimizer.schedule): 0 to 1e30. During the
// warm-up it is number / warmup_steps of the full rate. `decay_steps`: what schedule.decay_steps: auto is; 0:
// the config has a number. Thread: any, as for all functions below.
double LearningRate(const OptimizerConfig& optimizer, int64_t number, int64_t decay_steps = 0);

// Returns base^exponent, exponent >= 0, by multiplications; unlike the C library's pow() it is the same on
// every processor.
double WholePower(double base, int64_t exponent);

// Returns the factor by which train.optimizer.clip_norm scales a gradient with this sum of squares over the
// whole model: clip_norm / norm if the norm is larger, else 1 (Pascanu, Mikolov, Bengio 2013). Also 1 if a
// value is infinite or NaN, because clipping would spread the fault to other values and hide its origin. The
// sum is exact (gpu/optimizer_ops.h), so the result does not depend on the layout or the number of ps.
double ClipScale(const gpu::SquareSum& squares, double clip_norm);

// Scales `gradient`, which is that of the whole model, by that factor in place.
void ClipToNorm(double clip_norm, gpu::Span<float> gradient);

}  // namespace dtrain
