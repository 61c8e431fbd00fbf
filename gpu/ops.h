// The operations of training, one header for every backend: cpu/ and cuda/. ref/ref.h has the same operations
// as plain loops in double, the oracle of the tests.
// Shapes must agree (checked, a mistake of ours). Outputs may hold anything before and are overwritten;
// they alias no input unless an operation says so. 0 rows are allowed everywhere: losses are then 0.
// On a device everything lies in its memory, and an operation is queued: what it writes is there when its
// queue has come so far. Single results (a loss, a count) may lie in pinned memory too; each is written by
// one store. No allocation, but for a stream's scratch when a shape comes first. Thread: any, one at a time
// per Stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "gpu/view.h"

namespace dtrain::gpu {

namespace cuda {
class Queue;
}

enum class Backend { kCpu, kCuda };

enum class Activation { kSigmoid, kTanh, kRelu };

// Where operations run, and in which order relative to each other.
class Stream {
 public:
  Stream() = default;                                      // this processor: done when they return
  explicit Stream(cuda::Queue& queue) : queue_(&queue) {}  // a device; not longer than the queue
  Backend backend() const { return queue_ == nullptr ? Backend::kCpu : Backend::kCuda; }
  cuda::Queue& queue() const { return *queue_; }
  // `size` floats for the inside of one operation; the next one may overwrite them.
  float* Scratch(int64_t size) {
    if (static_cast<size_t>(size) > scratch_.size()) scratch_.resize(static_cast<size_t>(size));
    return scratch_.data();
  }

 private:
  cuda::Queue* queue_ = nullptr;
  std::vector<float> scratch_;
};

// How many threads one matrix product may use, in the whole process; 1 or more. Call it first thing in
// every process, also in one that computes nothing: OpenBLAS starts a thread per core when it is loaded,
// and each spins for about 0.1 s unless it is stopped here.
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

// The two above for rows of bytes, which are read as they lie, without a copy as floats. For layers of few
// outputs; for others gather the rows first.
//   x   values [n, k] as ByteRows says, row numbers not checked; all else as above. Up to 16 outputs
//       (checked). Agrees with ref as above, plus 2^-24 relative.
constexpr int64_t kMaxByteOutputs = 16;
// Whether these are faster than GatherBytes and the two above.
bool BytesPay(const Stream& stream, int64_t rows, int64_t outputs);
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

// Mean softmax cross-entropy and its gradient.
//   logits  [n, classes] f32, read     labels [n] i32, each in [0, classes)
//   dlogits [n, classes] f32, OVERWRITTEN: (softmax - onehot) / n, may alias logits
//   loss    OVERWRITTEN: in nats, mean over n
// f32 sums after subtracting the row maximum: agrees with ref to 2e-6 relative plus 1e-6 absolute; on this
// processor, which adds one class after the other, 1e-9 more for each.
void SoftmaxXent(Stream& stream, MatrixView<const float> logits, Span<const int32_t> labels,
                 MatrixView<float> dlogits, float* loss);

// Rows whose largest score is at their label; of equal scores the first counts.
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

// Whether one of `count` f32 at `values` (any address; a float's on a device) is infinite or not a number.
// Waits for the answer.
bool AnyNonFinite(Stream& stream, const std::byte* values, int64_t count);

// The same without a wait, for whole floats.
//   non_finite OVERWRITTEN: above 0 where one of `values` is infinite or not a number, else 0
void CheckFinite(Stream& stream, Span<const float> values, int64_t* non_finite);

// Rows of bytes as floats in [0, 1].
//   x   [n, k], read
//   out [n, k] f32, OVERWRITTEN: the values of x, correctly rounded
void GatherBytes(Stream& stream, const ByteRows& x, MatrixView<float> out);

// Rows of a table of floats, as they are.
//   table [rows, k], read      rows [n], each in [0, rows), not checked
//   out   [n, k] f32, OVERWRITTEN
void GatherFloats(Stream& stream, MatrixView<const float> table, Span<const int64_t> rows,
                  MatrixView<float> out);

// Numbers of 16 bits: IEEE 754 binary16, and bfloat16, the upper half of a float.
enum class Half { kFloat16, kBfloat16 };
// Rounded to the nearest, ties to even; too large ones become infinite, what is not a number stays none.
//   in [n] f32, read      out [n], OVERWRITTEN
void ToHalf(Stream& stream, Half format, Span<const float> in, Span<uint16_t> out);
// Exact.
void FromHalf(Stream& stream, Half format, Span<const uint16_t> in, Span<float> out);

}  // namespace dtrain::gpu
