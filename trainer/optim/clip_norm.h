// train.optimizer.clip_norm: a gradient whose L2 norm over the whole model is larger than it is scaled down
// to it (Pascanu, Mikolov, Bengio 2013). Sums are exact (gpu/square_sum.h), so that neither the layout of the
// model nor the number of ps changes a bit. Thread: any; pure functions.
#pragma once

#include "gpu/ops.h"
#include "gpu/square_sum.h"

namespace dtrain {

// What a gradient with this sum of squares is multiplied by: clip_norm / norm where the norm is larger, and
// otherwise 1. Also 1 where a value is infinite or not a number: clipping would turn the others into zeros or
// the infinite ones into nan, and what is wrong would show somewhere else.
double ClipScale(const gpu::SquareSum& squares, double clip_norm);

// Clips `gradient`, a whole one, in place.
void ClipToNorm(double clip_norm, gpu::Span<float> gradient);

}  // namespace dtrain
