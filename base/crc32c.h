// CRC-32C (Castagnoli polynomial 0x1EDC6F41, reflected; RFC 3720 appendix B.4): the model checksum.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dtrain {

// Returns the checksum of data followed by `size` more bytes. `crc` is the checksum of the data, 0 for none.
uint32_t Crc32cExtend(uint32_t crc, const void* data, size_t size);

// Returns the checksum of A followed by B, computed from the two checksums and the length of B. The leader
// combines the checksums of the shards this way without seeing their bytes.
uint32_t Crc32cCombine(uint32_t crc_a, uint32_t crc_b, uint64_t size_b);

}  // namespace dtrain
