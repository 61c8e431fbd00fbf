#include "gpu/ref/ref.h"

#include <algorithm>
#include <cmath>

namespace dtrain::gpu::ref {

void LinearForward(Matrix x, Matrix w, Vector b, MatrixView<double> out) {
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < w.cols; ++j) {
      double sum = b[j];
      for (int64_t p = 0; p < x.cols; ++p) sum += x.row(i)[p] * w.row(p)[j];
      out.row(i)[j] = sum;
    }
  }
}

void LinearGradient(Matrix x, Matrix dout, MatrixView<double> dw, Span<double> db) {
  for (int64_t j = 0; j < dout.cols; ++j) {
    db[j] = 0;
    for (int64_t i = 0; i < x.rows; ++i) db[j] += dout.row(i)[j];
    for (int64_t p = 0; p < x.cols; ++p) {
      double sum = 0;
      for (int64_t i = 0; i < x.rows; ++i) sum += x.row(i)[p] * dout.row(i)[j];
      dw.row(p)[j] = sum;
    }
  }
}

void LinearInputGradient(Matrix dout, Matrix w, MatrixView<double> dx) {
  for (int64_t i = 0; i < dout.rows; ++i) {
    for (int64_t p = 0; p < w.rows; ++p) {
      double sum = 0;
      for (int64_t j = 0; j < w.cols; ++j) sum += dout.row(i)[j] * w.row(p)[j];
      dx.row(i)[p] = sum;
    }
  }
}

void Activate(Activation kind, Span<double> values) {
  for (double& value : values) {
    if (kind == Activation::kSigmoid) value = 1 / (1 + std::exp(-value));
    if (kind == Activation::kTanh) value = std::tanh(value);
    if (kind == Activation::kRelu) value = value < 0 ? 0 : value;
  }
}

void ActivationGradient(Activation kind, Vector outputs, Span<double> gradient) {
  for (int64_t i = 0; i < outputs.size; ++i) {
    const double y = outputs[i];
    if (kind == Activation::kSigmoid) gradient[i] *= y * (1 - y);
    if (kind == Activation::kTanh) gradient[i] *= 1 - y * y;
    if (kind == Activation::kRelu) gradient[i] *= y > 0 ? 1 : 0;
  }
}

double MeanSquaredError(Vector y, Vector t, Span<double> dy) {
  double sum = 0;
  for (int64_t i = 0; i < y.size; ++i) {
    const double difference = y[i] - t[i];
    sum += difference * difference;
    dy[i] = 2 * difference / static_cast<double>(y.size);
  }
  return y.size == 0 ? 0 : sum / static_cast<double>(y.size);
}

double SigmoidXent(Vector logits, Labels labels, Span<double> dlogits) {
  double sum = 0;
  for (int64_t i = 0; i < logits.size; ++i) {
    const double z = logits[i];
    sum += std::max(z, 0.0) - z * labels[i] + std::log1p(std::exp(-std::abs(z)));
    dlogits[i] = (1 / (1 + std::exp(-z)) - labels[i]) / static_cast<double>(logits.size);
  }
  return logits.size == 0 ? 0 : sum / static_cast<double>(logits.size);
}

double MeanPointLoss(const PointLoss& loss, Vector z, Vector t, Span<double> dz) {
  const LossRow& row = LossRowOf(loss.kind);
  double sum = 0;
  for (int64_t i = 0; i < z.size; ++i) {
    sum += row.value(z[i], t[i], loss.parameter);
    dz[i] = row.slope(z[i], t[i], loss.parameter) / static_cast<double>(z.size);
  }
  return z.size == 0 ? 0 : sum / static_cast<double>(z.size);
}

double SoftmaxXent(Matrix logits, Labels labels, MatrixView<double> dlogits) {
  double loss = 0;
  for (int64_t i = 0; i < logits.rows; ++i) {
    const double* z = logits.row(i);
    double largest = z[0];
    for (int64_t j = 1; j < logits.cols; ++j) largest = std::max(largest, z[j]);
    double sum = 0;
    for (int64_t j = 0; j < logits.cols; ++j) sum += std::exp(z[j] - largest);
    loss += largest + std::log(sum) - z[labels[i]];
    for (int64_t j = 0; j < logits.cols; ++j) {
      const double probability = std::exp(z[j] - largest) / sum;
      dlogits.row(i)[j] = (probability - (j == labels[i] ? 1 : 0)) / static_cast<double>(logits.rows);
    }
  }
  return logits.rows == 0 ? 0 : loss / static_cast<double>(logits.rows);
}

int64_t CountArgmaxCorrect(Matrix scores, Labels labels) {
  int64_t correct = 0;
  for (int64_t i = 0; i < scores.rows; ++i) {
    const double* row = scores.row(i);
    if (std::max_element(row, row + scores.cols) - row == labels[i]) ++correct;
  }
  return correct;
}

int64_t CountSignCorrect(Vector logits, Labels labels) {
  int64_t correct = 0;
  for (int64_t i = 0; i < logits.size; ++i) {
    if ((logits[i] > 0 ? 1 : 0) == labels[i]) ++correct;
  }
  return correct;
}

void Sum(Span<const Vector> inputs, Span<double> sum) {
  for (int64_t i = 0; i < sum.size; ++i) {
    sum[i] = 0;
    for (const Vector& input : inputs) sum[i] += input[i];
  }
}

void WeightedSum(Span<const Vector> inputs, Vector weights, Span<double> sum) {
  for (int64_t i = 0; i < sum.size; ++i) {
    sum[i] = 0;
    for (int64_t k = 0; k < inputs.size; ++k) sum[i] += weights[k] * inputs[k][i];
  }
}

void Scale(double factor, Span<double> values) {
  for (int64_t i = 0; i < values.size; ++i) values[i] *= factor;
}

double Norm(Vector values) {
  double sum = 0;
  for (int64_t i = 0; i < values.size; ++i) sum += values[i] * values[i];
  return std::sqrt(sum);
}

bool AnyNonFinite(Vector values) {
  for (int64_t i = 0; i < values.size; ++i) {
    if (!std::isfinite(values[i])) return true;
  }
  return false;
}

void GatherBytes(MatrixView<const uint8_t> table, Span<const int64_t> rows, MatrixView<double> out) {
  for (int64_t i = 0; i < rows.size; ++i) {
    for (int64_t j = 0; j < table.cols; ++j) out.row(i)[j] = table.row(rows[i])[j] / 255.0;
  }
}

void GatherFloats(Matrix table, Span<const int64_t> rows, MatrixView<double> out) {
  for (int64_t i = 0; i < rows.size; ++i) {
    for (int64_t j = 0; j < table.cols; ++j) out.row(i)[j] = table.row(rows[i])[j];
  }
}

double FromHalf(Half format, uint16_t half) {
  const int mantissa_bits = format == Half::kFloat16 ? 10 : 7, bias = format == Half::kFloat16 ? 15 : 127;
  const int mantissa = half & ((1 << mantissa_bits) - 1), exponent = (half & 0x7fff) >> mantissa_bits;
  const double sign = half & 0x8000 ? -1 : 1;
  if (exponent == 2 * bias + 1) return mantissa == 0 ? sign * HUGE_VAL : std::nan("");
  const int whole = exponent == 0 ? mantissa : mantissa + (1 << mantissa_bits);
  return sign * std::ldexp(whole, std::max(exponent, 1) - bias - mantissa_bits);
}

// Returns the nearer of two neighbours: the last number that is not above |value| and the one after it. At
// equal distance it returns the even one.
uint16_t ToHalf(Half format, double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0,
                 infinite = format == Half::kFloat16 ? 0x7c00 : 0x7f80;
  if (std::isnan(value)) return static_cast<uint16_t>(sign | infinite | 1);
  const double size = std::abs(value);
  uint16_t below = 0;
  for (int bit = 0x4000; bit > 0; bit /= 2) {
    if (below + bit <= infinite && FromHalf(format, static_cast<uint16_t>(below + bit)) <= size) below += bit;
  }
  if (below == infinite) return sign | infinite;
  // The number after the largest finite one is infinity; its distance is that of the numbers before.
  const double ulp = FromHalf(format, below + 1 == infinite ? below : below + 1) -
                     FromHalf(format, below + 1 == infinite ? below - 1 : below);
  const double rest = (size - FromHalf(format, below)) / ulp;
  const bool up = rest > 0.5 || (rest == 0.5 && below % 2 == 1);
  return static_cast<uint16_t>(sign | (below + (up ? 1 : 0)));
}

}  // namespace dtrain::gpu::ref
