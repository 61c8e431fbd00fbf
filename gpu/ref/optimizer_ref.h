// The operations of gpu/optimizer_ops.h as plain loops in double, as ref.h has the others. For tests only.
#pragma once

#include "gpu/optimizer_ops.h"
#include "gpu/view.h"

namespace dtrain::gpu::ref {

// Update: gpu::Update with doubles. Of `shaping` only the numbers are used, not the spans.
struct Update {
  Span<const double> weights;
  Span<const double> gradient;
  Span<double> updated;
  gpu::Update shaping;
};

void SgdStep(const Update& update, double learning_rate);
void MomentumStep(const Update& update, const MomentumRule& rule, Span<double> velocity);
void AdagradStep(const Update& update, const AdagradRule& rule, Span<double> accumulator);
void RmspropStep(const Update& update, const RmspropRule& rule, Span<double> mean_square);
void AdamStep(const Update& update, const AdamRule& rule, Span<double> m, Span<double> v);
void FtrlStep(const Update& update, const FtrlRule& rule, Span<double> z, Span<double> n);

}  // namespace dtrain::gpu::ref
