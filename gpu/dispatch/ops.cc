// The dispatcher of gpu/ops.h and gpu/optimizer_ops.h: checks shapes for every backend alike and calls the
// backend of the stream.
#include "gpu/ops.h"

#include "base/check.h"
#include "gpu/cpu/ops.h"
#include "gpu/cuda/ops.h"
#include "gpu/optimizer_ops.h"

namespace dtrain::gpu {
namespace {

bool OnDevice(const Stream& stream) { return stream.backend() == Backend::kCuda; }

template <typename Target>
void CheckPointLoss(const PointLoss& loss, bool of_classes, Span<const float> outputs,
                    Span<const Target> targets, Span<float> slopes) {
  DT_CHECK(LossRowOf(loss.kind).of_classes == of_classes, LossRowOf(loss.kind).name);
  DT_CHECK(outputs.size == targets.size && outputs.size == slopes.size, outputs.size, targets.size,
           slopes.size);
}

void CheckForward(int64_t rows, int64_t inputs, MatrixView<const float> w, Span<const float> b,
                  MatrixView<float> out) {
  DT_CHECK(inputs == w.rows && b.size == w.cols && out.rows == rows && out.cols == w.cols, inputs, w.rows,
           b.size, w.cols, out.rows, rows, out.cols);
}

void CheckGradient(int64_t rows, int64_t inputs, MatrixView<const float> dout, MatrixView<float> dw,
                   Span<float> db) {
  DT_CHECK(rows == dout.rows && dw.rows == inputs && dw.cols == dout.cols && db.size == dout.cols, rows,
           dout.rows, dw.rows, inputs, dw.cols, dout.cols, db.size);
}

void CheckByteOutputs(const Stream& stream, int64_t outputs) {
  DT_CHECK(outputs >= 1 && (!OnDevice(stream) || outputs <= kMaxByteOutputs), outputs);
}

void CheckSizes(const Update& update) {
  DT_CHECK(update.weights.size == update.updated.size, update.weights.size, update.updated.size);
}
void CheckSizes(const Update& update, Span<float> slot) {
  CheckSizes(update);
  DT_CHECK(update.weights.size == slot.size, update.weights.size, slot.size);
}

}  // namespace

void SetThreads(int threads) {
  DT_CHECK(threads >= 1, threads);
  cpu::SetThreads(threads);
}

void LinearForward(Stream& stream, MatrixView<const float> x, MatrixView<const float> w, Span<const float> b,
                   MatrixView<float> out, std::optional<Activation> activation) {
  CheckForward(x.rows, x.cols, w, b, out);
  if (OnDevice(stream)) return cuda::LinearForward(stream.queue(), x, w, b, out, activation);
  cpu::LinearForward(stream, x, w, b, out, activation);
}

void LinearForward(Stream& stream, const ByteRows& x, MatrixView<const float> w, Span<const float> b,
                   MatrixView<float> out, std::optional<Activation> activation) {
  CheckForward(x.rows.size, x.table.cols, w, b, out);
  CheckByteOutputs(stream, w.cols);
  if (OnDevice(stream)) return cuda::LinearForward(stream.queue(), x, w, b, out, activation);
  cpu::LinearForward(stream, x, w, b, out, activation);
}

void LinearGradient(Stream& stream, MatrixView<const float> x, MatrixView<const float> dout,
                    MatrixView<float> dw, Span<float> db) {
  CheckGradient(x.rows, x.cols, dout, dw, db);
  if (OnDevice(stream)) return cuda::LinearGradient(stream.queue(), x, dout, dw, db);
  cpu::LinearGradient(x, dout, dw, db);
}

void LinearGradient(Stream& stream, const ByteRows& x, MatrixView<const float> dout, MatrixView<float> dw,
                    Span<float> db) {
  CheckGradient(x.rows.size, x.table.cols, dout, dw, db);
  CheckByteOutputs(stream, dout.cols);
  if (OnDevice(stream)) return cuda::LinearGradient(stream.queue(), x, dout, dw, db);
  cpu::LinearGradient(x, dout, dw, db);
}

void LinearInputGradient(Stream& stream, MatrixView<const float> dout, MatrixView<const float> w,
                         MatrixView<float> dx) {
  DT_CHECK(dx.rows == dout.rows && dx.cols == w.rows && dout.cols == w.cols, dx.rows, dout.rows, dx.cols,
           w.rows, dout.cols, w.cols);
  if (OnDevice(stream)) return cuda::LinearInputGradient(stream.queue(), dout, w, dx);
  cpu::LinearInputGradient(dout, w, dx);
}

bool BytesAreFaster(const Stream& stream, int64_t rows, int64_t outputs) {
  return outputs <= kMaxByteOutputs && (OnDevice(stream) || cpu::BytesAreFaster(rows, outputs));
}

bool BytesAreFaster(const Stream& stream, const ByteRows& x, int64_t outputs) {
  return OnDevice(stream) ? BytesAreFaster(stream, x.rows.size, outputs) : cpu::BytesAreFaster(x, outputs);
}

void Activate(Stream& stream, Activation kind, Span<float> values) {
  if (OnDevice(stream)) return cuda::Activate(stream.queue(), kind, values);
  cpu::Activate(kind, values);
}

void ActivationGradient(Stream& stream, Activation kind, Span<const float> outputs, Span<float> gradient) {
  DT_CHECK(outputs.size == gradient.size, outputs.size, gradient.size);
  if (OnDevice(stream)) return cuda::ActivationGradient(stream.queue(), kind, outputs, gradient);
  cpu::ActivationGradient(kind, outputs, gradient);
}

void MeanSquaredError(Stream& stream, Span<const float> y, Span<const float> t, Span<float> dy, float* loss) {
  DT_CHECK(y.size == t.size && y.size == dy.size, y.size, t.size, dy.size);
  if (OnDevice(stream)) return cuda::MeanSquaredError(stream.queue(), y, t, dy, loss);
  cpu::MeanSquaredError(y, t, dy, loss);
}

void SigmoidXent(Stream& stream, Span<const float> logits, Span<const int32_t> labels, Span<float> dlogits,
                 float* loss) {
  DT_CHECK(logits.size == labels.size && logits.size == dlogits.size, logits.size, labels.size, dlogits.size);
  if (OnDevice(stream)) return cuda::SigmoidXent(stream.queue(), logits, labels, dlogits, loss);
  cpu::SigmoidXent(logits, labels, dlogits, loss);
}

void MeanPointLoss(Stream& stream, const PointLoss& loss, Span<const float> outputs,
                   Span<const float> targets, Span<float> slopes, float* result) {
  if (loss.kind == LossKind::kSquared) return MeanSquaredError(stream, outputs, targets, slopes, result);
  CheckPointLoss(loss, false, outputs, targets, slopes);
  if (OnDevice(stream)) {
    return cuda::MeanPointLoss(stream.queue(), loss, outputs, targets, slopes, result);
  }
  cpu::MeanPointLoss(loss, outputs, targets, slopes, result);
}

void MeanPointLoss(Stream& stream, const PointLoss& loss, Span<const float> outputs,
                   Span<const int32_t> labels, Span<float> slopes, float* result) {
  CheckPointLoss(loss, true, outputs, labels, slopes);
  if (OnDevice(stream)) return cuda::MeanPointLoss(stream.queue(), loss, outputs, labels, slopes, result);
  cpu::MeanPointLoss(loss, outputs, labels, slopes, result);
}

void SoftmaxXent(Stream& stream, MatrixView<const float> logits, Span<const int32_t> labels,
                 MatrixView<float> dlogits, float* loss) {
  DT_CHECK(logits.rows == labels.size && logits.rows == dlogits.rows && logits.cols == dlogits.cols,
           logits.rows, labels.size, dlogits.rows, logits.cols, dlogits.cols);
  if (OnDevice(stream)) return cuda::SoftmaxXent(stream.queue(), logits, labels, dlogits, loss);
  cpu::SoftmaxXent(logits, labels, dlogits, loss);
}

void CountArgmaxCorrect(Stream& stream, MatrixView<const float> scores, Span<const int32_t> labels,
                        int64_t* correct) {
  DT_CHECK(scores.rows == labels.size, scores.rows, labels.size);
  if (OnDevice(stream)) return cuda::CountArgmaxCorrect(stream.queue(), scores, labels, correct);
  cpu::CountArgmaxCorrect(scores, labels, correct);
}

void CountSignCorrect(Stream& stream, Span<const float> logits, Span<const int32_t> labels,
                      int64_t* correct) {
  DT_CHECK(logits.size == labels.size, logits.size, labels.size);
  if (OnDevice(stream)) return cuda::CountSignCorrect(stream.queue(), logits, labels, correct);
  cpu::CountSignCorrect(logits, labels, correct);
}

void Sum(Stream& stream, Span<const std::byte* const> inputs, Span<float> sum) {
  DT_CHECK(inputs.size >= 1, inputs.size);
  if (OnDevice(stream)) return cuda::Sum(stream.queue(), inputs, sum);
  cpu::Sum(inputs, sum);
}

void WeightedSum(Stream& stream, Span<const float* const> inputs, Span<const float> weights,
                 Span<float> sum) {
  DT_CHECK(inputs.size >= 1 && inputs.size == weights.size, inputs.size, weights.size);
  if (OnDevice(stream)) return cuda::WeightedSum(stream.queue(), inputs, weights, sum);
  cpu::WeightedSum(inputs, weights, sum);
}

void Scale(Stream& stream, float factor, Span<float> values) {
  if (OnDevice(stream)) return cuda::Scale(stream.queue(), factor, values);
  cpu::Scale(factor, values);
}

void CheckFinite(Stream& stream, Span<const float> values, int64_t* non_finite) {
  if (OnDevice(stream)) return cuda::CheckFinite(stream.queue(), values, non_finite);
  *non_finite = cpu::AnyNonFinite(reinterpret_cast<const std::byte*>(values.data), values.size) ? 1 : 0;
}

bool AnyNonFinite(Stream& stream, const std::byte* values, int64_t count) {
  if (OnDevice(stream)) return cuda::AnyNonFinite(stream.queue(), values, count);
  return cpu::AnyNonFinite(values, count);
}

void GatherBytes(Stream& stream, const ByteRows& x, MatrixView<float> out) {
  DT_CHECK(out.rows == x.rows.size && out.cols == x.table.cols, out.rows, x.rows.size, out.cols,
           x.table.cols);
  if (OnDevice(stream)) return cuda::GatherBytes(stream.queue(), x, out);
  cpu::GatherBytes(x, out);
}

void GatherFloats(Stream& stream, MatrixView<const float> table, Span<const int64_t> rows,
                  MatrixView<float> out) {
  DT_CHECK(out.rows == rows.size && out.cols == table.cols, out.rows, rows.size, out.cols, table.cols);
  if (OnDevice(stream)) return cuda::GatherFloats(stream.queue(), table, rows, out);
  cpu::GatherFloats(table, rows, out);
}

void ToHalf(Stream& stream, Half format, Span<const float> in, Span<uint16_t> out) {
  DT_CHECK(in.size == out.size, in.size, out.size);
  if (OnDevice(stream)) return cuda::ToHalf(stream.queue(), format, in, out);
  cpu::ToHalf(format, in, out);
}

void FromHalf(Stream& stream, Half format, Span<const uint16_t> in, Span<float> out) {
  DT_CHECK(in.size == out.size, in.size, out.size);
  if (OnDevice(stream)) return cuda::FromHalf(stream.queue(), format, in, out);
  cpu::FromHalf(format, in, out);
}

void SgdStep(Stream& stream, const Update& update, float learning_rate) {
  CheckSizes(update);
  if (OnDevice(stream)) return cuda::SgdStep(stream.queue(), update, learning_rate);
  cpu::SgdStep(update, learning_rate);
}

void MomentumStep(Stream& stream, const Update& update, const MomentumRule& rule, Span<float> velocity) {
  CheckSizes(update, velocity);
  if (OnDevice(stream)) return cuda::MomentumStep(stream.queue(), update, rule, velocity);
  cpu::MomentumStep(update, rule, velocity);
}

void AdagradStep(Stream& stream, const Update& update, const AdagradRule& rule, Span<float> accumulator) {
  CheckSizes(update, accumulator);
  if (OnDevice(stream)) return cuda::AdagradStep(stream.queue(), update, rule, accumulator);
  cpu::AdagradStep(update, rule, accumulator);
}

void RmspropStep(Stream& stream, const Update& update, const RmspropRule& rule, Span<float> mean_square) {
  CheckSizes(update, mean_square);
  if (OnDevice(stream)) return cuda::RmspropStep(stream.queue(), update, rule, mean_square);
  cpu::RmspropStep(update, rule, mean_square);
}

void AdamStep(Stream& stream, const Update& update, const AdamRule& rule, Span<float> m, Span<float> v) {
  CheckSizes(update, m);
  CheckSizes(update, v);
  if (OnDevice(stream)) return cuda::AdamStep(stream.queue(), update, rule, m, v);
  cpu::AdamStep(update, rule, m, v);
}

void FtrlStep(Stream& stream, const Update& update, const FtrlRule& rule, Span<float> z, Span<float> n) {
  CheckSizes(update, z);
  CheckSizes(update, n);
  if (OnDevice(stream)) return cuda::FtrlStep(stream.queue(), update, rule, z, n);
  cpu::FtrlStep(update, rule, z, n);
}

}  // namespace dtrain::gpu
