// model_crc: one checksum for the weights of a whole model, whatever parts they lie in.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace dtrain {

// Consecutive rows of one variable.
struct ModelPart {
  std::string name;
  int64_t first_row = 0;
  int64_t bytes = 0;
  uint32_t crc = 0;  // CRC-32C of the little-endian float32 values
};

// CRC-32C over all weights, variables by name in byte order, rows in order; 8 hex digits.
std::string ModelChecksum(std::vector<ModelPart> parts);

}  // namespace dtrain
