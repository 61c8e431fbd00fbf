// CRC-32C (Castagnoli polynomial 0x1EDC6F41, reflected; RFC 3720 appendix B.4): the model checksum.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dtrain {

// The checksum of `size` bytes appended to data whose checksum is `crc` (0 for none).
uint32_t Crc32cExtend(uint32_t crc, const void* data, size_t size);

// The checksum of A followed by B, from the two checksums and the length of B: each ps sums its own
// ranges, and the leader combines them without seeing the bytes.
uint32_t Crc32cCombine(uint32_t crc_a, uint32_t crc_b, uint64_t size_b);

}  // namespace dtrain
