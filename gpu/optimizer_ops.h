// Optimizer steps: one update of weights by each optimizer, as a ps makes it. The rules of gpu/ops.h hold
// here too. All are element-wise and make one pass over memory: an output element depends only on the input
// elements with its index, and each step of the arithmetic is rounded once. So the bits do not depend on
// where a range starts or is cut, nor on the processor's vectors. The tests compare with ref/optimizer_ref.h.
// Formulas and their sources: docs/optimizers.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "gpu/ops.h"

namespace dtrain::gpu {

// Update: what every step reads and writes, and how the gradient becomes the slope g of the formulas below:
//   g = scale * gradient, cut to [-clip_value, clip_value], plus l1 * sign(weight) + l2 * weight
// NaN stays NaN.
struct Update {
  Span<const float> weights;            // [n], read
  const std::byte* gradient = nullptr;  // [n] f32, read, at any address (a float's on a device): it may lie
                                        // in a network frame
  Span<float> updated;                  // [n], OVERWRITTEN; is weights itself or overlaps nothing
  float scale = 1;
  float clip_value = std::numeric_limits<float>::infinity();
  float l1 = 0;
  float l2 = 0;
};

// updated = weights - learning_rate * g
void SgdStep(Stream& stream, const Update& update, float learning_rate);

struct MomentumRule {
  float learning_rate = 0;
  float momentum = 0;
  bool nesterov = false;
};
// velocity [n], read and OVERWRITTEN: momentum * velocity + g
// updated = weights - learning_rate * velocity; nesterov: ... * (g + momentum * velocity)
void MomentumStep(Stream& stream, const Update& update, const MomentumRule& rule, Span<float> velocity);

struct AdagradRule {
  float learning_rate = 0;
  float epsilon = 0;
};
// accumulator [n], read and OVERWRITTEN: accumulator + g^2
// updated = weights - learning_rate * g / (sqrt(accumulator) + epsilon)
void AdagradStep(Stream& stream, const Update& update, const AdagradRule& rule, Span<float> accumulator);

struct RmspropRule {
  float learning_rate = 0;
  float rho = 0;
  float new_share = 1;  // 1 - rho, rounded once
  float epsilon = 0;
};
// mean_square [n], read and OVERWRITTEN: rho * mean_square + new_share * g^2
// updated = weights - learning_rate * g / (sqrt(mean_square) + epsilon)
void RmspropStep(Stream& stream, const Update& update, const RmspropRule& rule, Span<float> mean_square);

struct AdamRule {
  float step = 0;  // learning_rate / (1 - beta1^t)
  float beta1 = 0;
  float new_share1 = 1;  // 1 - beta1
  float beta2 = 0;
  float new_share2 = 1;  // 1 - beta2
  float root_scale = 1;  // 1 / sqrt(1 - beta2^t)
  float epsilon = 0;
};
// m [n], read and OVERWRITTEN: beta1 * m + new_share1 * g
// v [n], read and OVERWRITTEN: beta2 * v + new_share2 * g^2
// updated = weights - step * m / (sqrt(v) * root_scale + epsilon)
void AdamStep(Stream& stream, const Update& update, const AdamRule& rule, Span<float> m, Span<float> v);

struct FtrlRule {
  float inverse_rate = 1;  // 1 / learning_rate
  // 1 / the learning rate of the update before; 0 at the first update, where z starts from the weights.
  float inverse_rate_before = 0;
  float beta = 0;
  float l1 = 0;  // FTRL's own; update.l1 and update.l2 are part of the slope, as everywhere
  float l2 = 0;
};
// With d = inverse_rate * (beta + sqrt(n)):
// n [n], read and OVERWRITTEN: n + g^2
// z [n], read and OVERWRITTEN: z + g - (d after - d before) * weights
// updated = 0 where |z| <= l1, else (l1 * sign(z) - z) / (d after + l2)
void FtrlStep(Stream& stream, const Update& update, const FtrlRule& rule, Span<float> z, Span<float> n);

// SquareSum: an exact sum of squares, for the norm of a gradient that is spread over several ps. Because it
// is exact, the sum does not depend on how the gradient is cut or in which order parts are added, and neither
// does the norm. Thread: any; plain data.
struct SquareSum {
  // The sum in units of 2^-298, the square of the smallest float, as one integer with the least significant
  // word first. It has room for 2^62 floats of any size.
  std::array<uint64_t, 10> words{};
  bool finite = true;  // no value was infinite or NaN
};

// Adds the squares of `count` f32 at `values` (any address). On this processor only (checked), because norms
// are computed on the ps.
void AddSquares(Stream& stream, const std::byte* values, int64_t count, SquareSum* sum);

// Adds the sum of another part.
void AddSum(const SquareSum& part, SquareSum* sum);

// Returns the sum, rounded once; infinity if it is not finite.
double Total(const SquareSum& sum);

}  // namespace dtrain::gpu
