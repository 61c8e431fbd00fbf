// One update of weights by each optimizer: the operations of a ps. Beside gpu/ops.h, whose rules hold here
// too. All are element-wise and make one pass over memory: element i of what is written depends on element i
// of what is read alone, and every step of the arithmetic is rounded once, so that the bits are the same
// wherever a range starts or is cut and whatever vectors the processor has. ref/optimizer_ref.h is the
// oracle. Formulas with their sources: docs/optimizers.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "gpu/ops.h"

namespace dtrain::gpu {

// What every update reads and writes, and how the gradient becomes the slope g of the formulas below:
//   g = scale * gradient, cut to [-clip_value, clip_value], plus l1 * sign(weight) + l2 * weight
// What is not a number stays so.
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
  float inverse_rate = 1;         // 1 / learning_rate
  float inverse_rate_before = 0;  // that of the update before; 0 at the first: z then starts from the weights
  float beta = 0;
  float l1 = 0;  // of FTRL itself: update.l1 and .l2 are parts of the slope, here as anywhere
  float l2 = 0;
};
// With d = inverse_rate * (beta + sqrt(n)):
// n [n], read and OVERWRITTEN: n + g^2
// z [n], read and OVERWRITTEN: z + g - (d after - d before) * weights
// updated = 0 where |z| <= l1, else (l1 * sign(z) - z) / (d after + l2)
void FtrlStep(Stream& stream, const Update& update, const FtrlRule& rule, Span<float> z, Span<float> n);

// SquareSum: an exact sum of squares, for the norm of a gradient whose parts lie on several ps. Being exact
// it is the same for every cut into parts and every order of adding them, and so is the norm that is rounded
// from it. Thread: any; plain data.
struct SquareSum {
  // The sum in units of 2^-298, the smallest square of a float, as one whole number; least significant word
  // first. Good for 2^62 floats of any size.
  std::array<uint64_t, 10> words{};
  bool finite = true;  // no value was infinite or not a number
};

// Adds the squares of `count` f32 at `values` (any address). On this processor only (checked): norms are
// taken where the ps is.
void AddSquares(Stream& stream, const std::byte* values, int64_t count, SquareSum* sum);

// Adds the sum of another part.
void AddSum(const SquareSum& part, SquareSum* sum);

// The sum, rounded once; infinite where it is not finite.
double Total(const SquareSum& sum);

}  // namespace dtrain::gpu
