// The checksums of what one ps holds, variable by variable: its part of model_crc.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/model/layout.h"

namespace dtrain {

// Of the rows of one variable that a ps owns.
struct PartChecksum {
  std::string name;
  int64_t first_row = 0;
  int64_t bytes = 0;
  uint32_t crc = 0;  // CRC-32C
};

// `weights_of(block)`: the values of a block (model/blocks.h) of that ps's range, valid until the next call.
std::vector<PartChecksum> ChecksumParts(const Layout& layout, int ps_index,
                                        const std::function<const float*(int64_t)>& weights_of);

}  // namespace dtrain
