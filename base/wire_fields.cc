#include "base/wire_fields.h"

namespace dtrain {

// As protobuf, takes ten bytes at most, and leaves out bits beyond 64.
bool WireFields::ReadLongVarint(uint64_t* value) {
  *value = 0;
  for (unsigned shift = 0; shift < 70 && at_ != end_; shift += 7) {
    const auto byte = static_cast<unsigned char>(*at_++);
    if (shift < 64) *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

void AppendVarint(uint64_t number, std::string* out) {
  for (; number >= 0x80; number >>= 7) *out += static_cast<char>(number | 0x80);
  *out += static_cast<char>(number);
}

}  // namespace dtrain
