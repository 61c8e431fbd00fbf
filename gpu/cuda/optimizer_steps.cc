#include <limits>

#include "gpu/cuda/launch.h"
#include "gpu/cuda/ops.h"

namespace dtrain::gpu::cuda {
namespace {

template <typename Rule>
void Step(Queue& queue, const Update& update, const Rule& rule, std::initializer_list<float*> slots) {
  const float* in[2 + Rule::kSlots] = {update.weights.data, FloatsAt(update.gradient)};
  float* out[1 + Rule::kSlots] = {update.updated.data};
  std::copy(slots.begin(), slots.end(), in + 2);
  std::copy(slots.begin(), slots.end(), out + 1);
  const int64_t size = update.updated.size;
  const bool plain = update.scale == 1 && update.l1 == 0 && update.l2 == 0 &&
                     update.clip_value == std::numeric_limits<float>::infinity();
  if (plain) {
    LaunchEach(queue, StepFunction<Rule, PlainSlope>{rule, {}}, in, out, size);
  } else {
    const ShapedSlope slope = {update.scale, update.clip_value, update.l1, update.l2};
    LaunchEach(queue, StepFunction<Rule, ShapedSlope>{rule, slope}, in, out, size);
  }
}

}  // namespace

void SgdStep(Queue& queue, const Update& update, float learning_rate) {
  Step(queue, update, SgdRule{learning_rate}, {});
}

void MomentumStep(Queue& queue, const Update& update, const MomentumRule& rule, Span<float> velocity) {
  if (rule.nesterov) {
    Step(queue, update, MomentumStepRule<true>{rule}, {velocity.data});
  } else {
    Step(queue, update, MomentumStepRule<false>{rule}, {velocity.data});
  }
}

void AdagradStep(Queue& queue, const Update& update, const AdagradRule& rule, Span<float> accumulator) {
  Step(queue, update, AdagradStepRule{rule}, {accumulator.data});
}

void RmspropStep(Queue& queue, const Update& update, const RmspropRule& rule, Span<float> mean_square) {
  Step(queue, update, RmspropStepRule{rule}, {mean_square.data});
}

void AdamStep(Queue& queue, const Update& update, const AdamRule& rule, Span<float> m, Span<float> v) {
  Step(queue, update, AdamStepRule{rule}, {m.data, v.data});
}

void FtrlStep(Queue& queue, const Update& update, const FtrlRule& rule, Span<float> z, Span<float> n) {
  Step(queue, update, FtrlStepRule{rule}, {z.data, n.data});
}

}  // namespace dtrain::gpu::cuda
