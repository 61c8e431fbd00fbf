#include "cmd/common/program.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string_view>

#include "base/json.h"

namespace dtrain {
namespace {

// scripts/package.sh writes the commit into this section of the finished program, so that a new commit causes
// no compilation or linking. Volatile, because the compiler must not assume its content.
__attribute__((section(".dtrain_commit"), used)) const volatile char kCommit[64] = {0};

}  // namespace

std::string ProgramCommit() {
  std::string commit;
  for (const volatile char* at = kCommit; at < kCommit + sizeof kCommit && *at != 0; ++at) commit += *at;
  return commit;
}

std::vector<std::string> OwnWords() {
  std::ifstream file("/proc/self/cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

std::string ShellQuoted(const std::string& word) {
  constexpr std::string_view kPlain = "_-+.,:/@%=";
  const bool plain = std::all_of(word.begin(), word.end(), [&](unsigned char c) {
    return (c < 0x80 && std::isalnum(c)) || kPlain.find(static_cast<char>(c)) != std::string_view::npos;
  });
  // zsh takes a word with "=" in front for a program's path, and other shells take "%" for a job.
  if (plain && !word.empty() && word[0] != '=' && word[0] != '%') return word;
  std::string quoted = "'";
  for (const char c : word) {
    // fish interprets a backslash within quotes, and csh a "!", so these stand outside of them.
    const bool outside = c == '\'' || c == '\\' || c == '!';
    quoted += outside ? std::string("'\\") + c + "'" : std::string(1, c);
  }
  return quoted + "'";
}

std::string ShellLine(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + ShellQuoted(word);
  return line;
}

std::string SetText(const std::string& key, const std::string& value) {
  return key + "=" + Json(value).dump();  // a text of JSON is one of YAML
}

}  // namespace dtrain
