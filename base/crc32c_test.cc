#include "base/crc32c.h"

#include <doctest/doctest.h>

#include <cstring>
#include <string>

namespace dtrain {
namespace {

TEST_CASE("crc32c: the check value of RFC 3720") {
  CHECK(Crc32cExtend(0, "123456789", 9) == 0xe3069283u);
  const std::string zeros(32, '\0');
  CHECK(Crc32cExtend(0, zeros.data(), zeros.size()) == 0x8a9136aau);
}

TEST_CASE("crc32c: parts combine to the whole wherever it is cut") {
  std::string text;
  for (int i = 0; i < 777; ++i) text += static_cast<char>(i * 31 + i / 7);
  const uint32_t whole = Crc32cExtend(0, text.data(), text.size());
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    const uint32_t front = Crc32cExtend(0, text.data(), cut);
    CHECK(Crc32cExtend(front, text.data() + cut, text.size() - cut) == whole);
    const uint32_t back = Crc32cExtend(0, text.data() + cut, text.size() - cut);
    CHECK(Crc32cCombine(front, back, text.size() - cut) == whole);
  }
}

}  // namespace
}  // namespace dtrain
