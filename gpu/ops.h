// The operations of training, one header for all backends: cpu/ and cuda/. ref/ref.h has the same operations
// as plain loops in double; the tests compare with it.
// Shapes must agree; DT_CHECK tests them. Outputs are overwritten and alias no input unless an operation says
// so. 0 rows are allowed everywhere; losses are then 0.
// On a device all operands lie in its memory and operations are queued: an output is valid when its queue has
// reached that point. Single results (a loss, a count) may also lie in pinned memory; each is written by one
// store. Nothing is allocated, except a stream's scratch memory when a new shape appears. Thread: any, one at
// a time per Stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/point_loss.h"
#include "gpu/view.h"

namespace dtrain::gpu {

namespace cuda {
class Queue;
}

enum class Backend { kCpu, kCuda };

enum class Activation { kSigmoid, kTanh, kRelu };

// Stream: where operations run, and in which order.
class Stream {
 public:
  Stream() = default;  // this processor: an operation is done when it returns
  explicit Stream(cuda::Queue& queue) : queue_(&queue) {}  // a device; `queue` must outlive this
  Backend backend() const { return queue_ == nullptr ? Backend::kCpu : Backend::kCuda; }
  cuda::Queue& queue() const { return *queue_; }
  // Returns scratch memory of `size` floats for use inside one operation, at the begin of a cache line. The
  // next operation may overwrite it.
  float* Scratch(int64_t size) {
    constexpr size_t kLine = 64;
    const size_t floats = static_cast<size_t>(size) + kLine / sizeof(float);
    if (floats > scratch_.size()) scratch_.resize(floats);
    size_t bytes = scratch_.size() * sizeof(float);
    void* memory = scratch_.data();
    return static_cast<float*>(std::align(kLine, static_cast<size_t>(size) * sizeof(float), memory, bytes));
  }

 private:
  cuda::Queue* queue_ = nullptr;
  std::vector<float> scratch_;
};

// Sets how many threads one matrix product may use, for the whole process; at least 1. Call it first in every
// process, even in one that computes nothing: OpenBLAS starts a thread per core when it is loaded, and each
// spins for about 0.1 s unless it is stopped here.
void SetThreads(int threads);

// A dense layer.
//   x    [n, k] f32 row-major, read      w [k, m] f32 row-major, read      b [m] f32, read
//   out  [n, m] f32, OVERWRITTEN: out = x * w + b, or the activation of that
// f32 sums in the backend's order: agrees with ref to k * 2^-24 relative to the sum of magnitudes; the
// activation as Activate().
void LinearForward(Stream& stream, MatrixView<const float> x, MatrixView<const float> w, Span<const float> b,
                   MatrixView<float> out, std::optional<Activation> activation = {});

// The gradient of a dense layer with respect to its weights and biases.
//   x   [n, k] f32, read       dout [n, m] f32, read: gradient of the loss with respect to the output
//   dw  [k, m] f32, OVERWRITTEN: dw = x^T * dout
//   db  [m] f32, OVERWRITTEN: db = column sums of dout
// f32 sums: agrees with ref to n * 2^-24 relative to the sum of magnitudes.
void LinearGradient(Stream& stream, MatrixView<const float> x, MatrixView<const float> dout,
                    MatrixView<float> dw, Span<float> db);

// LinearForward and LinearGradient for rows of bytes, which are read in place, without a copy as floats. For
// layers with few outputs, and on this processor for rows that are mostly zero; for others, gather the rows
// first.
//   x   values [n, k] as in ByteRows, row numbers not checked; all else as above. On a device at most 16
//       outputs (checked). Agrees with ref as above, plus 2^-24 relative. With more outputs a byte that is 0
//       is skipped: its weight has no effect even if it is not finite.
constexpr int64_t kMaxByteOutputs = 16;
// Whether these two are faster than GatherBytes with the two above: for any rows, or for the bytes of `x`.
bool BytesAreFaster(const Stream& stream, int64_t rows, int64_t outputs);
bool BytesAreFaster(const Stream& stream, const ByteRows& x, int64_t outputs);
void LinearForward(Stream& stream, const ByteRows& x, MatrixView<const float> w, Span<const float> b,
                   MatrixView<float> out, std::optional<Activation> activation = {});
void LinearGradient(Stream& stream, const ByteRows& x, MatrixView<const float> dout, MatrixView<float> dw,
                    Span<float> db);

// The gradient of a dense layer with respect to its inputs.
//   dout [n, m] f32, read       w [k, m] f32 row-major, read
//   dx   [n, k] f32, OVERWRITTEN: dx = dout * w^T
// f32 sums: agrees with ref to m * 2^-24 relative to the sum of magnitudes.
void LinearInputGradient(Stream& stream, MatrixView<const float> dout, MatrixView<const float> w,
                         MatrixView<float> dx);

// A layer's activation, in place.
//   values [n] f32: replaced by sigmoid, tanh or max(0, .) of themselves
// Any value is allowed; agrees with ref to 2^-21 relative, or to 2^-126 where a sigmoid is smaller.
void Activate(Stream& stream, Activation kind, Span<float> values);

// The gradient with respect to an activation's inputs, in place.
//   outputs  [n] f32, read: what Activate() made
//   gradient [n] f32: of the loss with respect to the outputs; multiplied by the activation's slope, taken
//            from the outputs: y (1 - y), 1 - y^2, or 1 where y > 0 and else 0
// Agrees with ref to 2^-22 relative.
void ActivationGradient(Stream& stream, Activation kind, Span<const float> outputs, Span<float> gradient);

// Mean squared error and its gradient.
//   y  [n] f32, read: predictions      t [n] f32, read: targets
//   dy [n] f32, OVERWRITTEN: 2 (y - t) / n, may alias y
//   loss OVERWRITTEN: the mean over n of (y - t)^2
// The loss is summed in f64 from f32 differences: agrees with ref to 2^-22 relative.
void MeanSquaredError(Stream& stream, Span<const float> y, Span<const float> t, Span<float> dy, float* loss);

// Mean binary cross-entropy of logits and its gradient.
//   logits  [n] f32, read              labels [n] i32, each 0 or 1
//   dlogits [n] f32, OVERWRITTEN: (sigmoid(logit) - label) / n, may alias logits
//   loss    OVERWRITTEN: in nats, mean over n
// Stable for any finite logit: log(1 + e^z) is taken as max(z, 0) + log1p(e^-|z|). Agrees with ref to
// 2e-6 relative.
void SigmoidXent(Stream& stream, Span<const float> logits, Span<const int32_t> labels, Span<float> dlogits,
                 float* loss);

// The mean of a loss of one output and its gradient.
//   loss     which; the table and the kernels of gpu/point_loss.h say what it is
//   outputs  [n] f32, read: before the link      targets [n], read: f32 in the loss's range, or for losses of
//            classes i32, each 0 or 1
//   slopes   [n] f32, OVERWRITTEN: the derivative / n, may alias outputs
//   result   OVERWRITTEN: the mean over n
// Each row in f32, summed in f64: agrees with ref to 2e-6 relative to the terms of a row. Squared error is
// MeanSquaredError(), to the bit.
void MeanPointLoss(Stream& stream, const PointLoss& loss, Span<const float> outputs,
                   Span<const float> targets, Span<float> slopes, float* result);
void MeanPointLoss(Stream& stream, const PointLoss& loss, Span<const float> outputs,
                   Span<const int32_t> labels, Span<float> slopes, float* result);

// Mean softmax cross-entropy and its gradient.
//   logits  [n, classes] f32, read     labels [n] i32, each in [0, classes)
//   dlogits [n, classes] f32, OVERWRITTEN: (softmax - onehot) / n, may alias logits
//   loss    OVERWRITTEN: in nats, mean over n
// Sums after subtracting the row maximum, f64 on this processor and f32 trees on a device: agrees with ref to
// 2e-6 relative plus 1e-6 absolute; on this processor to 2e-7 of the largest value of the gradient, for any
// number of classes.
void SoftmaxXent(Stream& stream, MatrixView<const float> logits, Span<const int32_t> labels,
                 MatrixView<float> dlogits, float* loss);

// Counts the rows whose largest score is at their label; of equal scores the first counts.
//   scores  [n, classes] f32, read     labels [n] i32
//   correct OVERWRITTEN
void CountArgmaxCorrect(Stream& stream, MatrixView<const float> scores, Span<const int32_t> labels,
                        int64_t* correct);

// Rows whose logit has the label's sign: above 0 is class 1, all else class 0.
//   logits  [n] f32, read              labels [n] i32, each 0 or 1
//   correct OVERWRITTEN
void CountSignCorrect(Stream& stream, Span<const float> logits, Span<const int32_t> labels, int64_t* correct);

// The element-wise sum of gradients.
//   inputs [k], k >= 1: each [n] f32, read, at any address (a float's on a device): they may lie in network
//          frames. The list itself lies on this machine.
//   sum    [n] f32, OVERWRITTEN: (inputs[0] + inputs[1]) + ..., overlaps no input
// k - 1 roundings per element, in this order: the same bits wherever a range starts or is cut. Agrees with
// ref to k * 2^-24 relative to the sum of magnitudes.
void Sum(Stream& stream, Span<const std::byte* const> inputs, Span<float> sum);

// The weighted sum of gradients.
//   inputs [k], k >= 1: each [n] f32, read      weights [k], read; both lists lie on this machine
//   sum    [n] f32, OVERWRITTEN: (weights[0] * inputs[0] + weights[1] * inputs[1]) + ..., is inputs[0] itself
//          or overlaps no input
// 2 k - 1 roundings per element, in this order: the same bits wherever a range starts or is cut. Agrees with
// ref to (k + 1) * 2^-24 relative to the sum of magnitudes.
void WeightedSum(Stream& stream, Span<const float* const> inputs, Span<const float> weights, Span<float> sum);

// Multiplies every value, in place; one rounding per element.
//   values [n] f32: replaced by factor * values
void Scale(Stream& stream, float factor, Span<float> values);

// Whether one of `count` f32 at `values` (any address; that of a float on a device) is infinite or NaN. Waits
// for the answer.
bool AnyNonFinite(Stream& stream, const std::byte* values, int64_t count);

// The same for aligned floats, without waiting.
//   non_finite OVERWRITTEN: above 0 if one of `values` is infinite or NaN, else 0
void CheckFinite(Stream& stream, Span<const float> values, int64_t* non_finite);

// Rows of bytes as floats in [0, 1].
//   x   [n, k], read
//   out [n, k] f32, OVERWRITTEN: the values of x, correctly rounded
void GatherBytes(Stream& stream, const ByteRows& x, MatrixView<float> out);

// Copies rows of a table of floats.
//   table [rows, k], read      rows [n], each in [0, rows), not checked
//   out   [n, k] f32, OVERWRITTEN
void GatherFloats(Stream& stream, MatrixView<const float> table, Span<const int64_t> rows,
                  MatrixView<float> out);

// The formats of 16 bits: IEEE 754 binary16, and bfloat16, which is the upper half of a float.
enum class Half { kFloat16, kBfloat16 };
// Converts from f32: rounds to nearest, ties to even. Numbers that are too large become infinite; NaN stays
// NaN.
//   in [n] f32, read      out [n], OVERWRITTEN
void ToHalf(Stream& stream, Half format, Span<const float> in, Span<uint16_t> out);
// Converts to f32, exactly.
void FromHalf(Stream& stream, Half format, Span<const uint16_t> in, Span<float> out);

}  // namespace dtrain::gpu
