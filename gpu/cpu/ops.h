// The operations of gpu/ops.h and gpu/optimizer_ops.h on this processor. They are done when they return.
// gpu/dispatch/ops.cc checks shapes. Thread: any.
#pragma once

#include <cstdint>
#include <optional>

#include "gpu/ops.h"
#include "gpu/optimizer_ops.h"

namespace dtrain::gpu::cpu {

void SetThreads(int threads);

// The rows of a shuffled batch lie anywhere in a large table, so the processor cannot predict the next one.
inline void PrefetchRow(const uint8_t* row, int64_t bytes) {
  constexpr int64_t kCacheLine = 64;
  for (int64_t i = 0; i < bytes; i += kCacheLine) __builtin_prefetch(row + i);
}

// `scratch` provides the scratch memory.
void LinearForward(Stream& scratch, MatrixView<const float> x, MatrixView<const float> w, Span<const float> b,
                   MatrixView<float> out, std::optional<Activation> activation);
void LinearForward(Stream& scratch, const ByteRows& x, MatrixView<const float> w, Span<const float> b,
                   MatrixView<float> out, std::optional<Activation> activation);
void LinearGradient(MatrixView<const float> x, MatrixView<const float> dout, MatrixView<float> dw,
                    Span<float> db);
void LinearGradient(const ByteRows& x, MatrixView<const float> dout, MatrixView<float> dw, Span<float> db);
void LinearInputGradient(MatrixView<const float> dout, MatrixView<const float> w, MatrixView<float> dx);
bool BytesAreFaster(int64_t rows, int64_t outputs);
bool BytesAreFaster(const ByteRows& x, int64_t outputs);

void Activate(Activation kind, Span<float> values);
void ActivationGradient(Activation kind, Span<const float> outputs, Span<float> gradient);
// values = e^values, for values below 88; agrees with the exact result to 2^-23 relative.
void Exponentiate(Span<float> values);
// values = ln(values), for finite values above 0; agrees to 2^-21 relative.
void Logarithms(Span<float> values);

void MeanSquaredError(Span<const float> y, Span<const float> t, Span<float> dy, float* loss);
void SigmoidXent(Span<const float> logits, Span<const int32_t> labels, Span<float> dlogits, float* loss);
// `Target`: float or int32_t, as gpu/ops.h has them.
template <typename Target>
void MeanPointLoss(const PointLoss& loss, Span<const float> outputs, Span<const Target> targets,
                   Span<float> slopes, float* result);
void SoftmaxXent(MatrixView<const float> logits, Span<const int32_t> labels, MatrixView<float> dlogits,
                 float* loss);
void CountArgmaxCorrect(MatrixView<const float> scores, Span<const int32_t> labels, int64_t* correct);
void CountSignCorrect(Span<const float> logits, Span<const int32_t> labels, int64_t* correct);

void Sum(Span<const std::byte* const> inputs, Span<float> sum);
void WeightedSum(Span<const float* const> inputs, Span<const float> weights, Span<float> sum);
void Scale(float factor, Span<float> values);
bool AnyNonFinite(const std::byte* values, int64_t count);
void GatherBytes(const ByteRows& x, MatrixView<float> out);
void GatherFloats(MatrixView<const float> table, Span<const int64_t> rows, MatrixView<float> out);
void ToHalf(Half format, Span<const float> in, Span<uint16_t> out);
void FromHalf(Half format, Span<const uint16_t> in, Span<float> out);

void SgdStep(const Update& update, float learning_rate);
void MomentumStep(const Update& update, const MomentumRule& rule, Span<float> velocity);
void AdagradStep(const Update& update, const AdagradRule& rule, Span<float> accumulator);
void RmspropStep(const Update& update, const RmspropRule& rule, Span<float> mean_square);
void AdamStep(const Update& update, const AdamRule& rule, Span<float> m, Span<float> v);
void FtrlStep(const Update& update, const FtrlRule& rule, Span<float> z, Span<float> n);

}  // namespace dtrain::gpu::cpu
