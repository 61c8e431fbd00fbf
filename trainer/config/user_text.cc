#include "trainer/config/user_text.h"

#include <fmt/core.h>

namespace dtrain {
namespace {

constexpr size_t kShownBytes = 80;

std::string Escaped(char c) { return fmt::format("\\x{:02x}", static_cast<unsigned char>(c)); }

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

bool IsInsideCharacter(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// The number of bytes of the character that begins with `lead`; 0: none begins so.
size_t CharacterBytes(unsigned char lead) {
  if (lead < 0x20) return lead == '\t' || lead == '\n' || lead == '\r' ? 1 : 0;
  if (lead < 0x7f) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  return 0;
}

}  // namespace

size_t FirstNonText(const std::string& text) {
  for (size_t i = 0; i < text.size();) {
    const size_t bytes = CharacterBytes(static_cast<unsigned char>(text[i]));
    if (bytes == 0 || i + bytes > text.size()) return i;
    for (size_t k = 1; k < bytes; ++k) {
      if (!IsInsideCharacter(text[i + k])) return i;
    }
    i += bytes;
  }
  return std::string::npos;
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += IsControl(c) ? Escaped(c) : std::string(1, c);
  }
  return quoted + "\"";
}

std::string Shown(const std::string& text) {
  const bool ascii_only = FirstNonText(text) != std::string::npos;
  std::string shown;
  for (char c : text) {
    if (shown.size() >= kShownBytes && !IsInsideCharacter(c)) return shown + "...";
    const bool plain = !IsControl(c) && (!ascii_only || static_cast<unsigned char>(c) < 0x80);
    shown += plain ? std::string(1, c) : Escaped(c);
  }
  return shown;
}

}  // namespace dtrain
