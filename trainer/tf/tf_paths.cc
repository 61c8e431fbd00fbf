#include "trainer/tf/tf_paths.h"

#include <fmt/core.h>
#include <glob.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "base/error.h"
#include "base/names.h"
#include "trainer/config/user_text.h"
#include "trainer/tf/sorted_table.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndex = ".index";
constexpr char kState[] = "checkpoint", kField[] = "model_checkpoint_path";
constexpr size_t kMaxStateBytes = 1 << 20;

bool IsFile(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::vector<std::string> Glob(const std::string& pattern) {
  glob_t found{};
  std::vector<std::string> paths;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0)
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return paths;
}

// The text as a part of a pattern.
std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) escaped += '\\';
    escaped += c;
  }
  return escaped;
}

constexpr char kParts[] = "-[0-9][0-9][0-9][0-9][0-9]-of-[0-9][0-9][0-9][0-9][0-9]";

// Returns the files PREFIX-00000-of-00002 and so on. Throws UserError unless they are all of one set.
std::vector<std::string> PartsOf(const std::string& prefix) {
  const std::vector<std::string> parts = Glob(Escaped(prefix) + kParts);
  for (const std::string& part : parts) {
    const size_t count = std::stoul(part.substr(part.size() - 5));
    if (count == parts.size()) continue;
    throw UserError(
        "{}: its name says that the checkpoint has {} parts, and {} are there. Fetch those that are missing, "
        "or remove those of another checkpoint.",
        part, count, parts.size());
  }
  return parts;
}

// The text in quotes that begins at *at, without them and its escapes; *at goes behind it.
std::string TakeQuoted(std::string_view text, size_t* at) {
  const char quote = text[(*at)++];
  std::string taken;
  while (*at < text.size() && text[*at] != quote) {
    char c = text[(*at)++];
    if (c == '\\' && *at < text.size()) {
      c = text[(*at)++];
      const bool hex = c == 'x';
      int value = 0, digits = 0;
      if (!hex) --*at;
      while (*at < text.size() && digits < (hex ? 2 : 3)) {
        const char digit = text[*at];
        const bool is_one =
            hex ? std::isxdigit(static_cast<unsigned char>(digit)) != 0 : digit >= '0' && digit < '8';
        if (!is_one) break;
        const int low = digit <= '9' ? digit - '0' : (digit | 32) - 'a' + 10;
        value = value * (hex ? 16 : 8) + low;
        ++digits;
        ++*at;
      }
      if (digits == 0 && !hex) ++*at;
      c = digits > 0 ? static_cast<char>(value) : c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
    }
    taken += c;
  }
  if (*at < text.size()) ++*at;
  return taken;
}

// What a prefix means; unset: nothing.
std::optional<TfPaths> FromPrefix(const std::string& prefix) {
  if (IsFile(prefix + std::string(kIndex))) return TfPaths{prefix, "", prefix + std::string(kIndex), {}};
  std::vector<std::string> tables;
  const size_t any = prefix.find("-?");
  if (IsFile(prefix)) {
    tables = {prefix};
  } else {
    tables = PartsOf(prefix.substr(0, any));
  }
  const bool are_tables = std::all_of(tables.begin(), tables.end(), [](const std::string& path) {
    return IsFile(path) && SortedTable::IsTable(SourceFile(path));
  });
  if (tables.empty() || !are_tables) return std::nullopt;
  return TfPaths{prefix, "", "", tables};
}

std::optional<TfPaths> FromDirectory(const std::string& directory) {
  const std::string state = directory + "/" + kState;
  if (IsFile(state)) {
    std::ifstream file(state, std::ios::binary);
    std::string text(kMaxStateBytes, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(file.gcount()));
    const std::string latest = LatestCheckpoint(text);
    if (latest.empty()) return std::nullopt;
    const fs::path path(latest);
    std::optional<TfPaths> found = FromPrefix(path.is_absolute() ? latest : directory + "/" + latest);
    // The directory may have been moved.
    if (!found) found = FromPrefix(directory + "/" + path.filename().string());
    if (!found) {
      throw UserError("{}: names {}, which is not there. Name the checkpoint itself.", state,
                      Quoted(Shown(latest)));
    }
    found->said_by = state;
    return found;
  }
  if (auto saved_model = FromPrefix(directory + "/variables/variables")) return saved_model;
  std::vector<std::string> prefixes;
  for (const std::string& index : Glob(Escaped(directory) + "/*" + std::string(kIndex)))
    prefixes.push_back(index.substr(0, index.size() - kIndex.size()));
  if (prefixes.size() < 2) return prefixes.empty() ? std::nullopt : FromPrefix(prefixes[0]);
  throw UserError(
      "{}: has {} checkpoints and no file \"checkpoint\" that names the newest. Name one, such as {}.",
      directory, prefixes.size(), prefixes.back());
}

}  // namespace

std::string LatestCheckpoint(const std::string& text) {
  std::string name, latest;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (c == '"' || c == '\'') {
      std::string value;  // texts behind each other are one
      while (at < text.size() && (text[at] == '"' || text[at] == '\'')) {
        value += TakeQuoted(text, &at);
        at = std::min(text.find_first_not_of(" \t\r\n", at), text.size());
      }
      if (name == kField) latest = value;
    } else if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      const size_t end = std::min(
          text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.", at),
          text.size());
      name = text.substr(at, end - at);
      at = end;
    } else {
      ++at;
    }
  }
  return latest;
}

std::optional<TfPaths> FindTfCheckpoint(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return FromDirectory(path);
  const size_t data = path.rfind(".data-");
  if (EndsWith(path, kIndex)) return FromPrefix(path.substr(0, path.size() - kIndex.size()));
  if (data != path.npos) {
    if (auto found = FromPrefix(path.substr(0, data))) return found;
  }
  return FromPrefix(path);
}

}  // namespace dtrain
