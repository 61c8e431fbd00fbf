// SquareSum: an exact sum of squares, for the norm of a gradient whose parts lie on several ps. Being exact
// it is the same for every cut into parts and every order of adding them, and so is the norm that is rounded
// from it. Thread: any; plain data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gpu/ops.h"

namespace dtrain::gpu {

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
