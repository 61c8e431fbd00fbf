// Plain loops for the compiler's vectoriser, compiled for each instruction set (Highway). No operation is
// fused, so all of them give the same bits.
#include "net/compress.h"

// foreach_target.h includes this file again for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "net/compress.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace dtrain::net {
namespace HWY_NAMESPACE {

constexpr uint32_t kMagnitude = 0x7fffffffu, kExponent = 0x7f800000u;
constexpr float kLargestCode = 127;
// Below it a group counts as zeros: the inverse of its scale would be infinite.
constexpr float kSmallestMax = 1e-36f;

HWY_INLINE uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

HWY_INLINE float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Rounds to even. The largest NaN of all would become 0, so the mantissa of a NaN is cut.
HWY_INLINE uint32_t RoundedBits(float value) {
  const uint32_t bits = BitsOf(value);
  const uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1);
  return (bits & kMagnitude) > kExponent ? (bits | 0x400000u) >> 16 : rounded >> 16;
}

HWY_INLINE float Bf16AsFloat(uint16_t half) { return FloatOf(uint32_t{half} << 16); }

HWY_INLINE float LeftOut(float value, float sent) {
  const float rest = value - sent;
  return (BitsOf(rest) & kExponent) == kExponent ? 0.0f : rest;
}

// A group with its residual, and the largest magnitude, as bits: of numbers these are in the same order, and
// behind them come those of infinity and NaN.
struct Group {
  int64_t size;
  uint32_t max = 0;
  alignas(64) float values[kGroupValues];

  HWY_INLINE void Read(const float* from, const float* residual, int64_t count) {
    size = count;
    if (residual == nullptr) {
      std::memcpy(values, from, static_cast<size_t>(count) * sizeof(float));
    } else {
      for (int64_t i = 0; i < count; ++i) values[i] = from[i] + residual[i];
    }
    uint32_t largest = 0;
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t magnitude = BitsOf(values[i]) & kMagnitude;
      largest = magnitude > largest ? magnitude : largest;
    }
    max = largest;
  }
};

void ToBf16(const float* values, float* residual, int64_t count, std::byte* out) {
  if (residual == nullptr) {
    for (int64_t i = 0; i < count; ++i) {
      const auto half = static_cast<uint16_t>(RoundedBits(values[i]));
      std::memcpy(out + i * 2, &half, sizeof half);
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const float value = values[i] + residual[i];
    const uint32_t half = RoundedBits(value);
    const auto sent = static_cast<uint16_t>(half);
    std::memcpy(out + i * 2, &sent, sizeof sent);
    residual[i] = LeftOut(value, FloatOf(half << 16));
  }
}

void FromBf16(const std::byte* data, int64_t count, float* values) {
  for (int64_t i = 0; i < count; ++i) {
    uint16_t half;
    std::memcpy(&half, data + i * 2, sizeof half);
    values[i] = Bf16AsFloat(half);
  }
}

// The scale of a group as int8, and what its values are multiplied by.
struct Scale {
  HWY_INLINE explicit Scale(uint32_t max_bits) : finite(max_bits < kExponent) {
    const float max = FloatOf(max_bits);
    const bool zero = max < kSmallestMax;
    value = !finite ? FloatOf(kExponent | 0x400000u) : zero ? 0.0f : max / kLargestCode;
    inverse = !finite || zero ? 0.0f : kLargestCode / max;
  }
  bool finite;
  float value;
  float inverse;
};

// Adding 1.5 x 2^23 rounds to even, and leaves the number in the lowest bits.
HWY_INLINE void QuantiseGroup(const Group& group, float* residual, std::byte* out) {
  constexpr float kRounds = 12582912.0f;
  const Scale scale(group.max);
  std::memcpy(out, &scale.value, sizeof scale.value);
  auto* const codes = reinterpret_cast<int8_t*>(out + sizeof scale.value);
  for (int64_t i = 0; i < group.size; ++i) {
    const float rounded = (scale.finite ? group.values[i] : 0.0f) * scale.inverse + kRounds;
    codes[i] = static_cast<int8_t>(static_cast<uint8_t>(BitsOf(rounded)));
    if (residual != nullptr) residual[i] = LeftOut(group.values[i], (rounded - kRounds) * scale.value);
  }
}

// 32 random bits for each place: the place and half of a seed, mixed with its other half by the constants of
// Wellons (Prospecting for hash functions, 2018).
struct Dice {
  HWY_INLINE explicit Dice(uint64_t seed)
      : first(static_cast<uint32_t>(seed)), second(static_cast<uint32_t>(seed >> 32)) {}
  HWY_INLINE uint32_t At(uint32_t place) const {
    uint32_t bits = place + first;
    bits = (bits ^ bits >> 16) * 0x21f0aaadu ^ second;
    bits = (bits ^ bits >> 15) * 0x735a2d97u;
    return bits ^ bits >> 15;
  }
  uint32_t first;
  uint32_t second;
};

void ToBf16AtRandom(const float* values, uint64_t seed, int64_t count, std::byte* out) {
  const Dice dice(seed);
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t bits = BitsOf(values[i]), up = bits + (dice.At(static_cast<uint32_t>(i)) >> 16);
    const bool is_nan = (bits & kMagnitude) > kExponent;
    const auto half = static_cast<uint16_t>((is_nan ? bits | 0x400000u : up) >> 16);
    std::memcpy(out + i * 2, &half, sizeof half);
  }
}

// A code has 23 more bits while a number below 1 is added to it.
void ToInt8AtRandom(const float* values, uint64_t seed, int64_t count, std::byte* out) {
  constexpr int32_t kOne = 1 << 23, kMax = static_cast<int32_t>(kLargestCode) * kOne;
  const Dice dice(seed);
  Group group;
  for (int64_t begin = 0; begin < count; begin += kGroupValues) {
    group.Read(values + begin, nullptr, count - begin < kGroupValues ? count - begin : kGroupValues);
    const Scale scale(group.max);
    std::memcpy(out, &scale.value, sizeof scale.value);
    auto* const codes = reinterpret_cast<int8_t*>(out + sizeof scale.value);
    for (int64_t i = 0; i < group.size; ++i) {
      const float code = (scale.finite ? group.values[i] : 0.0f) * scale.inverse;
      auto fixed = static_cast<int32_t>(code * static_cast<float>(kOne));
      fixed = fixed > kMax ? kMax : fixed < -kMax ? -kMax : fixed;
      const uint32_t below_one = dice.At(static_cast<uint32_t>(begin + i)) >> 9;
      codes[i] = static_cast<int8_t>((fixed + static_cast<int32_t>(below_one)) >> 23);
    }
    out += static_cast<int64_t>(sizeof scale.value) + group.size;
  }
}

HWY_INLINE void DequantiseGroup(const std::byte* data, int64_t count, float* values) {
  float scale;
  std::memcpy(&scale, data, sizeof scale);
  const auto* const codes = reinterpret_cast<const int8_t*>(data + sizeof scale);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(codes[i]) * scale;
}

// Returns the largest bits that at least `wanted` magnitudes reach; if exactly as many do, smaller ones may
// be returned.
HWY_INLINE uint32_t ThresholdOf(const uint32_t* magnitudes, int64_t size, uint32_t max, uint32_t wanted) {
  uint32_t low = 0, high = max + 1;  // enough reach `low`, and too few `high`
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    uint32_t count = 0;
    for (int64_t i = 0; i < size; ++i) count += magnitudes[i] >= middle ? 1u : 0u;
    if (count == wanted) return middle;
    (count > wanted ? low : high) = middle;
  }
  return low;
}

// Among values of equal magnitude the first ones are taken.
HWY_INLINE void SelectGroup(const Group& group, float* residual, std::byte* out) {
  alignas(64) uint32_t magnitudes[kGroupValues];
  for (int64_t i = 0; i < group.size; ++i) magnitudes[i] = BitsOf(group.values[i]) & kMagnitude;
  const auto wanted = static_cast<uint32_t>(group.size < kTopValues ? group.size : kTopValues);
  const uint32_t threshold = ThresholdOf(magnitudes, group.size, group.max, wanted);
  uint32_t above = 0;
  for (int64_t i = 0; i < group.size; ++i) above += magnitudes[i] > threshold ? 1u : 0u;
  // With exactly as many as are wanted at or above the threshold, none of those at it is left.
  uint32_t equal = above < wanted ? wanted - above : 0;
  uint8_t places[kTopValues + 1];
  uint32_t taken = 0;
  for (int64_t i = 0; i < group.size; ++i) {
    const bool ties = magnitudes[i] == threshold && equal > 0;
    equal -= ties ? 1u : 0u;
    places[taken] = static_cast<uint8_t>(i);
    taken += (magnitudes[i] > threshold || ties) ? 1u : 0u;
  }
  if (residual != nullptr) {
    for (int64_t i = 0; i < group.size; ++i) residual[i] = LeftOut(group.values[i], 0.0f);
  }
  std::memcpy(out, places, wanted);
  for (uint32_t i = 0; i < wanted; ++i) {
    const float value = group.values[places[i]];
    const auto half = static_cast<uint16_t>(RoundedBits(value));
    std::memcpy(out + wanted + i * sizeof half, &half, sizeof half);
    if (residual != nullptr) residual[places[i]] = LeftOut(value, Bf16AsFloat(half));
  }
}

HWY_INLINE bool ScatterGroup(const std::byte* data, int64_t count, float* values) {
  const int64_t taken = count < kTopValues ? count : kTopValues;
  std::memset(values, 0, static_cast<size_t>(count) * sizeof(float));
  int64_t before = -1;
  for (int64_t i = 0; i < taken; ++i) {
    const auto place = static_cast<int64_t>(data[i]);
    if (place <= before || place >= count) return false;
    before = place;
    uint16_t half;
    std::memcpy(&half, data + taken + i * 2, sizeof half);
    values[place] = Bf16AsFloat(half);
  }
  return true;
}

void ToGroups(Compression form, const float* values, float* residual, int64_t count, std::byte* out) {
  const auto bytes = static_cast<int64_t>(CompressedBytes(form, kGroupValues));
  Group group;
  for (int64_t begin = 0; begin < count; begin += kGroupValues, out += bytes) {
    float* const rest = residual == nullptr ? nullptr : residual + begin;
    group.Read(values + begin, rest, count - begin < kGroupValues ? count - begin : kGroupValues);
    form == Compression::kInt8 ? QuantiseGroup(group, rest, out) : SelectGroup(group, rest, out);
  }
}

bool FromGroups(Compression form, const std::byte* data, int64_t count, float* values) {
  const auto bytes = static_cast<int64_t>(CompressedBytes(form, kGroupValues));
  for (int64_t begin = 0; begin < count; begin += kGroupValues, data += bytes) {
    const int64_t size = count - begin < kGroupValues ? count - begin : kGroupValues;
    if (form == Compression::kInt8) {
      DequantiseGroup(data, size, values + begin);
    } else if (!ScatterGroup(data, size, values + begin)) {
      return false;
    }
  }
  return true;
}

}  // namespace HWY_NAMESPACE
}  // namespace dtrain::net
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dtrain::net {

HWY_EXPORT(ToBf16);
HWY_EXPORT(FromBf16);
HWY_EXPORT(ToBf16AtRandom);
HWY_EXPORT(ToInt8AtRandom);
HWY_EXPORT(ToGroups);
HWY_EXPORT(FromGroups);

const char* CompressionName(Compression form) {
  constexpr const char* kNames[] = {"none", "bf16", "int8", "topk"};
  return kNames[static_cast<size_t>(form)];
}

size_t CompressedBytes(Compression form, int64_t count) {
  const auto values = static_cast<size_t>(count);
  const size_t groups = (values + kGroupValues - 1) / kGroupValues;
  const size_t in_last = values % kGroupValues;
  const size_t of_last = in_last < kTopValues && in_last != 0 ? in_last : kTopValues;
  switch (form) {
    case Compression::kNone:
      break;
    case Compression::kBf16:
      return values * sizeof(uint16_t);
    case Compression::kInt8:
      return groups * sizeof(float) + values;
    case Compression::kTopk:
      return groups == 0 ? 0 : ((groups - 1) * kTopValues + of_last) * (1 + sizeof(uint16_t));
  }
  return values * sizeof(float);
}

void Compress(Compression form, const float* values, float* residual, int64_t count, std::byte* out) {
  if (form == Compression::kBf16) return HWY_DYNAMIC_DISPATCH(ToBf16)(values, residual, count, out);
  HWY_DYNAMIC_DISPATCH(ToGroups)(form, values, residual, count, out);
}

void CompressAtRandom(Compression form, const float* values, uint64_t seed, int64_t count, std::byte* out) {
  if (form == Compression::kBf16) return HWY_DYNAMIC_DISPATCH(ToBf16AtRandom)(values, seed, count, out);
  HWY_DYNAMIC_DISPATCH(ToInt8AtRandom)(values, seed, count, out);
}

bool Decompress(Compression form, const std::byte* data, size_t size, int64_t count, float* values) {
  if (size != CompressedBytes(form, count)) return false;
  if (form != Compression::kBf16) return HWY_DYNAMIC_DISPATCH(FromGroups)(form, data, count, values);
  HWY_DYNAMIC_DISPATCH(FromBf16)(data, count, values);
  return true;
}

}  // namespace dtrain::net
#endif  // HWY_ONCE
