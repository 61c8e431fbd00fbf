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

}  // namespace

uint32_t Crc32cExtend(uint32_t crc, const void* data, size_t size) {
  const unsigned char* bytes = static_cast<const unsigned char*>(data);
  uint64_t state = static_cast<uint32_t>(~crc);
  for (; size >= 8; bytes += 8, size -= 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    state = _mm_crc32_u64(state, word);
  }
  for (; size > 0; ++bytes, --size) state = _mm_crc32_u8(static_cast<uint32_t>(state), *bytes);
  return ~static_cast<uint32_t>(state);
}

uint32_t Crc32cCombine(uint32_t crc_a, uint32_t crc_b, uint64_t size_b) {
  // Appending B shifts A's register by 8 * size_b zero bits; the map for 2^k bits is a repeated square.
  BitMatrix zeros = OneZeroBit();
  for (int doubling = 0; doubling < 3; ++doubling) zeros = Squared(zeros);
  for (; size_b != 0; size_b >>= 1, zeros = Squared(zeros)) {
    if (size_b & 1) crc_a = Times(zeros, crc_a);
  }
  return crc_a ^ crc_b;
}

}  // namespace dtrain
