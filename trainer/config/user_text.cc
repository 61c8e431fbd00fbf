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
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return 2;
  if (lead >= 0xe0 && lead <= 0xef) return 3;
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  return 0;
}

// Whether three or four bytes are more than the character needs, half of a UTF-16 pair, or beyond
// the last character.
bool IsOutOfRange(unsigned char lead, unsigned char second) {
  return (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
         (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f);
}

// The number of bytes of the character at `at`; 0: there is none.
size_t CharacterAt(std::string_view text, size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  const size_t bytes = CharacterBytes(lead);
  if (bytes == 0 || at + bytes > text.size()) return 0;
  if (bytes > 1 && IsOutOfRange(lead, static_cast<unsigned char>(text[at + 1]))) return 0;
  for (size_t k = 1; k < bytes; ++k) {
    if (!IsInsideCharacter(text[at + k])) return 0;
  }
  return bytes;
}

bool IsNoText(char c) { return IsControl(c) && c != '\t' && c != '\n' && c != '\r'; }

}  // namespace

size_t FirstNonText(const std::string& text) {
  for (size_t i = 0; i < text.size();) {
    const size_t bytes = CharacterAt(text, i);
    if (bytes == 0 || IsNoText(text[i])) return i;
    i += bytes;
  }
  return std::string::npos;
}

bool IsUtf8(std::string_view text) {
  size_t bytes = 1;
  for (size_t i = 0; i < text.size() && bytes > 0; i += bytes) bytes = CharacterAt(text, i);
  return bytes > 0;
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
