#include "trainer/config/user_text.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

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

namespace {

// "lr" of "learning_rate".
std::string Initials(const std::string& name) {
  std::string initials;
  for (size_t i = 0; i < name.size(); ++i) {
    if (i == 0 || name[i - 1] == '_') initials += name[i];
  }
  return initials;
}

// "batch" of "batch_size".
bool Begins(const std::string& text, const std::string& begin) {
  return begin.size() >= 3 && text.compare(0, begin.size(), begin) == 0;
}

// "evaluate" of "eval", but not "model_dir" of "model".
bool GoesOn(const std::string& name, const std::string& known) {
  return Begins(name, known) && name.size() <= known.size() + 4 &&
         name.find('_', known.size()) == std::string::npos;
}

}  // namespace

int EditDistance(const std::string& from, const std::string& to) {
  std::vector<std::vector<int>> d(from.size() + 1, std::vector<int>(to.size() + 1));
  for (size_t i = 0; i <= from.size(); ++i) {
    for (size_t j = 0; j <= to.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = static_cast<int>(i + j);
        continue;
      }
      const int replaced = d[i - 1][j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[from.size()][to.size()];
}

std::string LowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string ClosestName(const std::string& written, const std::vector<std::string>& names) {
  if (written.size() > kMaxNameBytes) return "";
  const std::string name = LowerCase(written);
  for (const std::string& candidate : names) {
    if (name == LowerCase(candidate)) return candidate;
  }
  std::string closest;
  int min_distance = static_cast<int>(name.size() / 4 + 2);  // from here on it is another word
  for (const std::string& candidate : names) {
    const std::string known = LowerCase(candidate);
    if (name.size() > 1 && name == Initials(known)) return candidate;
    if (name.size() < 3 && known.size() <= name.size()) continue;  // "l3" is not "l1"; "ok" may be "oak"
    const bool part = Begins(known, name) || GoesOn(name, known);
    const int distance = part ? 1 : EditDistance(name, known);
    if (distance < min_distance && distance < static_cast<int>(known.size())) {
      min_distance = distance;
      closest = candidate;
    }
  }
  return closest;
}

std::string SimilarPathHint(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr size_t kMaxNames = 1000;  // of larger directories the first that are listed
  fs::path whole(path);
  if (!whole.has_filename()) whole = whole.parent_path();  // "runs/one/"
  const fs::path directory = whole.parent_path();
  std::vector<std::string> names;
  std::error_code failed;
  fs::directory_iterator entry(directory.empty() ? "." : directory, failed);
  for (; !failed && entry != fs::directory_iterator() && names.size() < kMaxNames; entry.increment(failed)) {
    names.push_back(entry->path().filename().string());
  }
  const std::string close = ClosestName(whole.filename().string(), names);
  return close.empty() ? "" : fmt::format(" Did you mean {}?", (directory / Shown(close)).string());
}

std::string ListText(const std::vector<std::string>& items, const std::string& last_word) {
  std::string text;
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += i + 1 == items.size() ? " " + last_word + " " : ", ";
    text += items[i];
  }
  return text;
}

}  // namespace dtrain
