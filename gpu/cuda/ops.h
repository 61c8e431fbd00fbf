// The operations of gpu/ops.h and gpu/optimizer_ops.h on a device, with what each one launches.
// gpu/dispatch/ops.cc checks shapes. Lists of pointers are in this machine's memory and are read before the
// call returns. Thread: the queue's.
#pragma once

#include <cstdint>
#include <optional>

#include "gpu/cuda/queue.h"
#include "gpu/ops.h"
#include "gpu/optimizer_ops.h"

namespace dtrain::gpu::cuda {

// A product (a fill if there are no inputs), then biases and activation.
void LinearForward(Queue& queue, MatrixView<const float> x, MatrixView<const float> w, Span<const float> b,
                   MatrixView<float> out, std::optional<Activation> activation);
// One launch.
void LinearForward(Queue& queue, const ByteRows& x, MatrixView<const float> w, Span<const float> b,
                   MatrixView<float> out, std::optional<Activation> activation);
// A product, then sums of columns.
void LinearGradient(Queue& queue, MatrixView<const float> x, MatrixView<const float> dout,
                    MatrixView<float> dw, Span<float> db);
// One launch; for more than 256 rows a second one adds up the parts.
void LinearGradient(Queue& queue, const ByteRows& x, MatrixView<const float> dout, MatrixView<float> dw,
                    Span<float> db);
// A product.
void LinearInputGradient(Queue& queue, MatrixView<const float> dout, MatrixView<const float> w,
                         MatrixView<float> dx);

// Each of these is one launch; sums of more than 16 inputs take one for every 15 of them.
void Activate(Queue& queue, Activation kind, Span<float> values);
void ActivationGradient(Queue& queue, Activation kind, Span<const float> outputs, Span<float> gradient);
void MeanSquaredError(Queue& queue, Span<const float> y, Span<const float> t, Span<float> dy, float* loss);
void SigmoidXent(Queue& queue, Span<const float> logits, Span<const int32_t> labels, Span<float> dlogits,
                 float* loss);
template <typename Target>
void MeanPointLoss(Queue& queue, const PointLoss& loss, Span<const float> outputs, Span<const Target> targets,
                   Span<float> slopes, float* result);
void SoftmaxXent(Queue& queue, MatrixView<const float> logits, Span<const int32_t> labels,
                 MatrixView<float> dlogits, float* loss);
void CountArgmaxCorrect(Queue& queue, MatrixView<const float> scores, Span<const int32_t> labels,
                        int64_t* correct);
void CountSignCorrect(Queue& queue, Span<const float> logits, Span<const int32_t> labels, int64_t* correct);
void Sum(Queue& queue, Span<const std::byte* const> inputs, Span<float> sum);
void WeightedSum(Queue& queue, Span<const float* const> inputs, Span<const float> weights, Span<float> sum);
void Scale(Queue& queue, float factor, Span<float> values);
void CheckFinite(Queue& queue, Span<const float> values, int64_t* non_finite);
bool AnyNonFinite(Queue& queue, const std::byte* values, int64_t count);
void GatherBytes(Queue& queue, const ByteRows& x, MatrixView<float> out);
void GatherFloats(Queue& queue, MatrixView<const float> table, Span<const int64_t> rows,
                  MatrixView<float> out);
void ToHalf(Queue& queue, Half format, Span<const float> in, Span<uint16_t> out);
void FromHalf(Queue& queue, Half format, Span<const uint16_t> in, Span<float> out);

void SgdStep(Queue& queue, const Update& update, float learning_rate);
void MomentumStep(Queue& queue, const Update& update, const MomentumRule& rule, Span<float> velocity);
void AdagradStep(Queue& queue, const Update& update, const AdagradRule& rule, Span<float> accumulator);
void RmspropStep(Queue& queue, const Update& update, const RmspropRule& rule, Span<float> mean_square);
void AdamStep(Queue& queue, const Update& update, const AdamRule& rule, Span<float> m, Span<float> v);
void FtrlStep(Queue& queue, const Update& update, const FtrlRule& rule, Span<float> z, Span<float> n);

}  // namespace dtrain::gpu::cuda
