// A float is m * 2^(e - 150) with m below 2^24, so a word holds the sum of many m^2. The squares are summed
// by exponent, and each of these sums is shifted into its place at the end.
#include "gpu/optimizer_ops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace dtrain::gpu {
namespace {

constexpr int kExponents = 256;
constexpr int kNotFinite = 255;  // the exponent of infinities and NaN
constexpr int kUnitExponent = -298;
constexpr int kWordBits = 64;
// Neighbours often have the same exponent; with a sum for each lane they need not wait for each other.
constexpr int kLanes = 4;
constexpr int64_t kMaxAdded = 1 << 16;  // to one sum: 2^16 * (2^24)^2 is 2^64

using Counts = uint64_t[kLanes][kExponents];

void Count(const std::byte* value, uint64_t* counts) {
  uint32_t bits = 0;
  std::memcpy(&bits, value, sizeof bits);
  const uint32_t exponent = bits >> 23 & 0xff;
  const uint32_t hidden = exponent == 0 ? 0 : 1u << 23;
  const uint64_t mantissa = (bits & 0x7fffff) | hidden;
  counts[exponent] += mantissa * mantissa;
}

// Adds value * 2^shift to the sum, in its units.
void AddShifted(uint64_t value, int shift, SquareSum* sum) {
  size_t word = static_cast<size_t>(shift / kWordBits);
  unsigned __int128 carry = static_cast<unsigned __int128>(value) << (shift % kWordBits);
  for (; carry != 0 && word < sum->words.size(); ++word) {
    // The upper half is below 2^64 - 1, so that this does not overflow.
    carry += sum->words[word];
    sum->words[word] = static_cast<uint64_t>(carry);
    carry >>= kWordBits;
  }
}

void AddCounts(const Counts& counts, SquareSum* sum) {
  for (int exponent = 0; exponent < kExponents; ++exponent) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const uint64_t count = counts[lane][exponent];
      if (count == 0) continue;
      if (exponent == kNotFinite) {
        sum->finite = false;
      } else {
        AddShifted(count, 2 * (std::max(exponent, 1) - 1),
                   sum);  // exponent 0 stands for 1, without the hidden bit
      }
    }
  }
}

}  // namespace

void AddSquares(Stream& stream, const std::byte* values, int64_t count, SquareSum* sum) {
  DT_CHECK(stream.backend() == Backend::kCpu);
  constexpr int64_t kSize = sizeof(float);
  for (int64_t begin = 0; begin < count; begin += kLanes * kMaxAdded) {
    const int64_t end = std::min(count, begin + kLanes * kMaxAdded);
    Counts counts = {};
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) Count(values + (i + lane) * kSize, counts[lane]);
    }
    for (; i < end; ++i) Count(values + i * kSize, counts[i % kLanes]);
    AddCounts(counts, sum);
  }
}

void AddSum(const SquareSum& part, SquareSum* sum) {
  sum->finite = sum->finite && part.finite;
  for (size_t i = 0; i < part.words.size(); ++i) {
    AddShifted(part.words[i], static_cast<int>(i) * kWordBits, sum);
  }
}

double Total(const SquareSum& sum) {
  if (!sum.finite) return std::numeric_limits<double>::infinity();
  size_t word = sum.words.size();
  while (word > 0 && sum.words[word - 1] == 0) --word;
  if (word == 0) return 0;
  // Takes the 64 bits from the first set one; any set bit below them decides a tie.
  --word;
  const int empty = __builtin_clzll(sum.words[word]);
  uint64_t top = sum.words[word] << empty;
  bool below = false;
  if (word > 0) {
    if (empty > 0) top |= sum.words[word - 1] >> (kWordBits - empty);
    below = sum.words[word - 1] << empty != 0;
    for (size_t i = 0; i + 1 < word; ++i) below = below || sum.words[i] != 0;
  }
  const int exponent = static_cast<int>(word) * kWordBits - empty + kUnitExponent;
  return std::ldexp(static_cast<double>(top | (below ? 1 : 0)), exponent);
}

}  // namespace dtrain::gpu
