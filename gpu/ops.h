// The operations of training, one header for every backend. The backend that runs them is in cpu/;
// ref/ref.h has the same operations as plain loops in double, the oracle of the tests.
// Shapes must agree (checked, a mistake of ours). Outputs may hold anything before and are overwritten;
// they alias no input unless an operation says so. 0 rows are allowed everywhere: losses are then 0.
// No allocation, but for a stream's scratch when a shape comes first. Thread: any, one at a time per Stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/view.h"

namespace dtrain::gpu {

enum class Backend { kCpu };

enum class Activation { kSigmoid, kTanh, kRelu };

// Where operations run, and in which order relative to each other.
class Stream {
 public:
  explicit Stream(Backend backend) : backend_(backend) {}
  Backend backend() const { return backend_; }
  // `size` floats for the inside of one operation; the next one may overwrite them.
  float* Scratch(int64_t size) {
    if (static_cast<size_t>(size) > scratch_.size()) scratch_.resize(static_cast<size_t>(size));
    return scratch_.data();
  }

 private:
  Backend backend_;
  std::vector<float> scratch_;
};

// How many threads one matrix product may use, in the whole process; 1 or more. Call it first thing in
// every process, also in one that computes nothing: OpenBLAS starts a thread per core when it is loaded,
// and each spins for about 0.1 s unless it is stopped here.
void SetThreads(int threads);

// A dense layer.
//   x    [n, k] f32 row-major, read      w [k, m] f32 row-major, read      b [m] f32, read
//   out  [n, m] f32, OVERWRITTEN: out = x * w + b
// f32 sums in the backend's order: agrees with ref to k * 2^-24 relative to the sum of magnitudes.
void LinearForward(Stream& stream, MatrixView<const float> x, MatrixView<const float> w, Span<const float> b,
                   MatrixView<float> out);

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
bool BytesPay(int64_t rows, int64_t outputs);  // whether these are faster than GatherBytes and the two above
void LinearForward(Stream& stream, const ByteRows& x, MatrixView<const float> w, Span<const float> b,
                   MatrixView<float> out);
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
//   returns the mean over n of (y - t)^2
// The loss is summed in f64 from f32 differences: agrees with ref to 2^-22 relative.
float MeanSquaredError(Stream& stream, Span<const float> y, Span<const float> t, Span<float> dy);

// Mean binary cross-entropy of logits and its gradient.
//   logits  [n] f32, read              labels [n] i32, each 0 or 1
//   dlogits [n] f32, OVERWRITTEN: (sigmoid(logit) - label) / n, may alias logits
//   returns the loss in nats, mean over n
// Stable for any finite logit: log(1 + e^z) is taken as max(z, 0) + log1p(e^-|z|). Agrees with ref to
// 2e-6 relative.
float SigmoidXent(Stream& stream, Span<const float> logits, Span<const int32_t> labels, Span<float> dlogits);

// Mean softmax cross-entropy and its gradient.
//   logits  [n, classes] f32, read     labels [n] i32, each in [0, classes)
//   dlogits [n, classes] f32, OVERWRITTEN: (softmax - onehot) / n, may alias logits
//   returns the loss in nats, mean over n
// f32 sums after subtracting the row maximum: agrees with ref to 2e-6 relative plus 1e-6 absolute.
float SoftmaxXent(Stream& stream, MatrixView<const float> logits, Span<const int32_t> labels,
                  MatrixView<float> dlogits);

// Rows whose largest score is at their label; of equal scores the first counts.
//   scores [n, classes] f32, read      labels [n] i32
int64_t CountArgmaxCorrect(Stream& stream, MatrixView<const float> scores, Span<const int32_t> labels);

// Rows whose logit has the label's sign: above 0 is class 1, all else class 0.
//   logits [n] f32, read               labels [n] i32, each 0 or 1
int64_t CountSignCorrect(Stream& stream, Span<const float> logits, Span<const int32_t> labels);

// The element-wise sum of gradients.
//   inputs [k], k >= 1: each [n] f32, read, at any address: they may lie in network frames
//   sum    [n] f32, OVERWRITTEN: (inputs[0] + inputs[1]) + ..., overlaps no input
// k - 1 roundings per element, in this order: the same bits wherever a range starts or is cut. Agrees with
// ref to k * 2^-24 relative to the sum of magnitudes.
void Sum(Stream& stream, Span<const std::byte* const> inputs, Span<float> sum);

// The weighted sum of gradients.
//   inputs [k], k >= 1: each [n] f32, read      weights [k], read
//   sum    [n] f32, OVERWRITTEN: (weights[0] * inputs[0] + weights[1] * inputs[1]) + ..., is inputs[0] itself
//          or overlaps no input
// 2 k - 1 roundings per element, in this order: the same bits wherever a range starts or is cut. Agrees with
// ref to (k + 1) * 2^-24 relative to the sum of magnitudes.
void WeightedSum(Stream& stream, Span<const float* const> inputs, Span<const float> weights, Span<float> sum);

// Multiplies every value, in place; one rounding per element.
//   values [n] f32: replaced by factor * values
void Scale(Stream& stream, float factor, Span<float> values);

// Whether one of `count` f32 at `values` (any address) is infinite or not a number.
bool AnyNonFinite(Stream& stream, const std::byte* values, int64_t count);

// Rows of bytes as floats in [0, 1].
//   x   [n, k], read
//   out [n, k] f32, OVERWRITTEN: the values of x, correctly rounded
void GatherBytes(Stream& stream, const ByteRows& x, MatrixView<float> out);

}  // namespace dtrain::gpu
