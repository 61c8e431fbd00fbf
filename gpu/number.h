// Conversion of one number between float and 16 bits, without branches, so that loops of it vectorise. The
// same code runs on this processor and on devices. ToHalf() and FromHalf() in gpu/ops.h say what it means.
#pragma once

#include <cstdint>
#include <cstring>

#include "gpu/kernel_thread.h"
#include "gpu/ops.h"

namespace dtrain::gpu {

DT_KERNEL_BODY inline uint32_t BitsOf(float value) {
  uint32_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

DT_KERNEL_BODY inline float FloatOf(uint32_t bits) {
  float value = 0;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// Returns byte / 255, correctly rounded. 1/255 is split into two parts. A byte times the upper part (9 bits)
// is exact, so the sum of the two products, which no compiler may fuse, is rounded once in effect. A test
// compares all 256 results with the division.
DT_KERNEL_BODY inline float ByteAsFloat(uint8_t byte) {
  constexpr float kUpper = 0x1.01p-8f;
  constexpr float kLower = static_cast<float>(1.0 / 255.0 - 0x1.01p-8);
  const float value = static_cast<float>(byte);
  return value * kUpper + value * kLower;
}

template <Half format>
struct HalfOf;

template <>
struct HalfOf<Half::kBfloat16> {
  DT_KERNEL_BODY static uint16_t From(float value) {
    const uint32_t bits = BitsOf(value);
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    const uint32_t rounded = bits + 0x7fffu + (bits >> 16 & 1u);
    return static_cast<uint16_t>((is_nan ? bits | 0x400000u : rounded) >> 16);
  }
  DT_KERNEL_BODY static float To(uint16_t half) { return FloatOf(static_cast<uint32_t>(half) << 16); }
};

template <>
struct HalfOf<Half::kFloat16> {
  DT_KERNEL_BODY static uint16_t From(float value) {
    const uint32_t bits = BitsOf(value);
    const uint32_t size = bits & 0x7fffffffu;
    // Too large, infinite or NaN.
    const uint32_t special = size > 0x7f800000u ? 0x7e00u : 0x7c00u;
    // Below 2^-14: adding the float to 0.5 rounds it to units of 2^-24.
    const uint32_t tiny = BitsOf(FloatOf(size) + 0.5f) - 0x3f000000u;
    // Changes the exponent's bias from 127 to 15 and the mantissa from 23 bits to 10. A carry moves into the
    // exponent.
    const uint32_t normal = (size - (112u << 23) + 0xfffu + (size >> 13 & 1u)) >> 13;
    const uint32_t finite = size < (113u << 23) ? tiny : normal;
    return static_cast<uint16_t>((size >= (143u << 23) ? special : finite) | (bits >> 16 & 0x8000u));
  }
  DT_KERNEL_BODY static float To(uint16_t half) {
    const uint32_t size = static_cast<uint32_t>(half & 0x7fffu) << 13;
    const uint32_t exponent = size & (31u << 23);
    const uint32_t normal = size + (112u << 23);
    const uint32_t special = size + (224u << 23);                                      // infinite or NaN
    const uint32_t tiny = BitsOf(FloatOf(size + (113u << 23)) - FloatOf(113u << 23));  // units of 2^-24
    const uint32_t finite = exponent == 0 ? tiny : normal;
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    return FloatOf((exponent == 31u << 23 ? special : finite) | sign);
  }
};

}  // namespace dtrain::gpu
