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

std::string ShellLine(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + ShellQuoted(word);
  return line;
}

std::string SetText(const std::string& key, const std::string& value) {
  return key + "=" + Json(value).dump();  // a text of JSON is one of YAML
}

}  // namespace dtrain
