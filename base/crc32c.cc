#include "base/crc32c.h"

#include <nmmintrin.h>

#include <array>
#include <cstring>

namespace dtrain {
namespace {

// A linear map of the 32 CRC bits, as columns over GF(2).
using BitMatrix = std::array<uint32_t, 32>;

uint32_t Times(const BitMatrix& matrix, uint32_t vector) {
  uint32_t sum = 0;
  for (int bit = 0; vector != 0; ++bit, vector >>= 1) {
    if (vector & 1) sum ^= matrix[bit];
  }
  return sum;
}

BitMatrix Squared(const BitMatrix& matrix) {
  BitMatrix square{};
  for (int bit = 0; bit < 32; ++bit) square[bit] = Times(matrix, matrix[bit]);
  return square;
}

// The map of one zero bit that is shifted in.
BitMatrix OneZeroBit() {
  BitMatrix matrix{};
  matrix[0] = 0x82f63b78u;
  for (int bit = 1; bit < 32; ++bit) matrix[bit] = 1u << (bit - 1);
  return matrix;
}

// The map of `bytes` zeros that are shifted in, a power of two.
BitMatrix ZerosOf(uint64_t bytes) {
  BitMatrix zeros = OneZeroBit();
  for (uint64_t bits = 1; bits < 8 * bytes; bits *= 2) zeros = Squared(zeros);
  return zeros;
}

uint64_t WordAt(const unsigned char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

constexpr size_t kLane = 64;

// The same map of kLane bytes, as a sum over the bytes of a vector.
uint32_t AfterLane(uint64_t vector) {
  using Tables = std::array<std::array<uint32_t, 256>, 4>;
  static const Tables kTables = [] {
    const BitMatrix zeros = ZerosOf(kLane);
    Tables tables{};
    for (size_t byte = 0; byte < tables.size(); ++byte) {
      for (uint32_t value = 0; value < 256; ++value) tables[byte][value] = Times(zeros, value << 8 * byte);
    }
    return tables;
  }();
  return kTables[0][vector & 255] ^ kTables[1][vector >> 8 & 255] ^ kTables[2][vector >> 16 & 255] ^
         kTables[3][vector >> 24 & 255];
}

}  // namespace

uint32_t Crc32cExtend(uint32_t crc, const void* data, size_t size) {
  const unsigned char* bytes = static_cast<const unsigned char*>(data);
  uint64_t state = static_cast<uint32_t>(~crc);
  // Three lanes beside each other, because a step waits three cycles for the step before.
  for (; size >= 3 * kLane; bytes += 3 * kLane, size -= 3 * kLane) {
    uint64_t second = 0, third = 0;
    for (size_t at = 0; at < kLane; at += 8) {
      state = _mm_crc32_u64(state, WordAt(bytes + at));
      second = _mm_crc32_u64(second, WordAt(bytes + kLane + at));
      third = _mm_crc32_u64(third, WordAt(bytes + 2 * kLane + at));
    }
    state = AfterLane(AfterLane(state) ^ second) ^ third;
  }
  for (; size >= 8; bytes += 8, size -= 8) state = _mm_crc32_u64(state, WordAt(bytes));
  for (; size > 0; ++bytes, --size) state = _mm_crc32_u8(static_cast<uint32_t>(state), *bytes);
  return ~static_cast<uint32_t>(state);
}

uint32_t Crc32cCombine(uint32_t crc_a, uint32_t crc_b, uint64_t size_b) {
  // Appending B shifts A's register by 8 * size_b zero bits; the map for 2^k bits is a repeated square.
  BitMatrix zeros = ZerosOf(1);
  for (; size_b != 0; size_b >>= 1, zeros = Squared(zeros)) {
    if (size_b & 1) crc_a = Times(zeros, crc_a);
  }
  return crc_a ^ crc_b;
}

}  // namespace dtrain
