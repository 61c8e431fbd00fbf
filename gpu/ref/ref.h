// The operations of gpu/ops.h as plain loops in double: the reference for every backend. Shapes and meanings
// are those of ops.h. For tests only.
#pragma once

#include <cstdint>

#include "gpu/ops.h"
#include "gpu/view.h"

namespace dtrain::gpu::ref {

using Matrix = MatrixView<const double>;
using Vector = Span<const double>;
using Labels = Span<const int32_t>;

void LinearForward(Matrix x, Matrix w, Vector b, MatrixView<double> out);
void LinearGradient(Matrix x, Matrix dout, MatrixView<double> dw, Span<double> db);
void LinearInputGradient(Matrix dout, Matrix w, MatrixView<double> dx);
void Activate(Activation kind, Span<double> values);
void ActivationGradient(Activation kind, Vector outputs, Span<double> gradient);
double MeanSquaredError(Vector y, Vector t, Span<double> dy);
double SigmoidXent(Vector logits, Labels labels, Span<double> dlogits);
// `t`: of classes 1 and -1.
double MeanPointLoss(const PointLoss& loss, Vector z, Vector t, Span<double> dz);
double SoftmaxXent(Matrix logits, Labels labels, MatrixView<double> dlogits);
int64_t CountArgmaxCorrect(Matrix scores, Labels labels);
int64_t CountSignCorrect(Vector logits, Labels labels);
void Sum(Span<const Vector> inputs, Span<double> sum);
void WeightedSum(Span<const Vector> inputs, Vector weights, Span<double> sum);
void Scale(double factor, Span<double> values);
double Norm(Vector values);  // L2
bool AnyNonFinite(Vector values);
void GatherFloats(Matrix table, Span<const int64_t> rows, MatrixView<double> out);
uint16_t ToHalf(Half format, double value);
double FromHalf(Half format, uint16_t half);
void GatherBytes(MatrixView<const uint8_t> table, Span<const int64_t> rows, MatrixView<double> out);

}  // namespace dtrain::gpu::ref
