// Every target over its corpus and a short round by chance. Longer ones: scripts/check_all.sh fuzz,
// scripts/fuzz.sh.
#include "fuzz/rounds.h"

#include <doctest/doctest.h>

#include <filesystem>

namespace dtrain::fuzz {
namespace {

TEST_CASE("fuzz: no target finds anything in its corpus, its past findings and a thousand changes of them") {
  CHECK(Targets().size() == 15);
  for (const Target& target : Targets()) {
    CAPTURE(target.name);
    RoundsOptions options;
    options.corpus = "fuzz/testdata";
    CHECK(std::filesystem::is_directory(options.corpus + "/" + target.name));
    RunRounds(target, options);
  }
}

}  // namespace
}  // namespace dtrain::fuzz
