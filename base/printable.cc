#include "base/printable.h"

#include <fmt/core.h>

#include <cstdint>

namespace dtrain {
namespace {

struct Character {
  size_t bytes = 1;
  bool shown = false;
};

bool IsShown(uint32_t code) {
  const bool control = (code < 0x20 && code != '\t') || (code >= 0x7f && code < 0xa0);
  const bool separates = code == 0x2028 || code == 0x2029;
  const bool turns = code == 0x061c || code == 0x200e || code == 0x200f ||
                     (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
  return !control && !separates && !turns;
}

// The first character of `text`, which is not empty. Bytes that are not UTF-8 are characters of one byte that
// are not shown.
Character FirstOf(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {1, IsShown(first)};
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || bytes > text.size()) return {};
  uint32_t code = first & (0xffu >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  const bool too_long = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  if (too_long || surrogate || code > 0x10ffff) return {};
  return {bytes, IsShown(code)};
}

std::string Escaped(std::string_view character) {
  if (character == "\n") return "\\n";
  std::string escaped;
  for (const char byte : character) escaped += fmt::format("\\x{:02x}", static_cast<uint8_t>(byte));
  return escaped;
}

}  // namespace

std::string Printable(std::string_view text, size_t max_bytes) {
  std::string printable;
  while (!text.empty()) {
    const Character first = FirstOf(text);
    const std::string_view bytes = text.substr(0, first.bytes);
    const size_t before = printable.size();
    first.shown ? printable.append(bytes) : printable.append(Escaped(bytes));
    if (printable.size() > max_bytes) {
      printable.resize(before);
      return printable + "...";
    }
    text.remove_prefix(first.bytes);
  }
  return printable;
}

}  // namespace dtrain
