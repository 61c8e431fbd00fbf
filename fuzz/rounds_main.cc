// rounds [--runs N] [--seed N] [--keep DIRECTORY] CORPUS [TARGET...]: long rounds of the targets, by any
// compiler and sanitizer.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "fuzz/rounds.h"
#include "fuzz/target.h"

namespace dtrain::fuzz {
namespace {

int Main(const std::vector<std::string>& arguments) {
  RoundsOptions options;
  std::vector<std::string> names;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool last = i + 1 == arguments.size();
    if (arguments[i] == "--runs" && !last) {
      options.runs = std::stoull(arguments[++i]);
    } else if (arguments[i] == "--seed" && !last) {
      options.seed = std::stoull(arguments[++i]);
    } else if (arguments[i] == "--keep" && !last) {
      options.keep = arguments[++i];
    } else if (options.corpus.empty()) {
      options.corpus = arguments[i];
    } else {
      names.push_back(arguments[i]);
    }
  }
  size_t found = 0;
  for (const Target& target : Targets()) {
    if (!names.empty() && std::count(names.begin(), names.end(), target.name) == 0) continue;
    ++found;
    RunRounds(target, options);
  }
  if (found > 0 && found >= names.size()) return 0;
  std::fprintf(stderr, "usage: rounds [--runs N] [--seed N] [--keep DIRECTORY] CORPUS [TARGET...]\n");
  return 2;
}

}  // namespace
}  // namespace dtrain::fuzz

int main(int count, char** arguments) {
  return dtrain::fuzz::Main(std::vector<std::string>(arguments + 1, arguments + count));
}
