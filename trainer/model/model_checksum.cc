#include "trainer/model/model_checksum.h"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "base/crc32c.h"

namespace dtrain {

std::string ModelChecksum(std::vector<ModelPart> parts) {
  std::sort(parts.begin(), parts.end(), [](const ModelPart& a, const ModelPart& b) {
    return std::tie(a.name, a.first_row) < std::tie(b.name, b.first_row);
  });
  uint32_t crc = 0;
  for (const ModelPart& part : parts) crc = Crc32cCombine(crc, part.crc, static_cast<uint64_t>(part.bytes));
  return fmt::format("{:08x}", crc);
}

}  // namespace dtrain
