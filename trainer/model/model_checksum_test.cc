#include "trainer/model/layout.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <string>
#include <vector>

#include "base/crc32c.h"

namespace dtrain {
namespace {

uint32_t Crc(const std::string& text) { return Crc32cExtend(0, text.data(), text.size()); }

TEST_CASE("model checksum: it is over names in byte order and rows in order, however it is cut") {
  const uint32_t whole =
      Crc("biases"
          "first rows"
          "later rows");
  const std::vector<ModelPart> parts = {{"weights/W1", 10, 10, Crc("later rows")},
                                        {"biases/b1", 0, 6, Crc("biases")},
                                        {"weights/W1", 0, 10, Crc("first rows")}};
  CHECK(ModelChecksum(parts) == fmt::format("{:08x}", whole));
  CHECK(ModelChecksum({{"weights/W1", 0, 20, Crc("first rowslater rows")},
                       {"biases/b1", 0, 6, Crc("biases")}}) == fmt::format("{:08x}", whole));
}

}  // namespace
}  // namespace dtrain
