// Every target over its corpus and a short round by chance. Longer ones: scripts/check_all.sh fuzz,
// scripts/fuzz.sh.
#include "fuzz/rounds.h"

#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace dtrain::fuzz {
namespace {

TEST_CASE("fuzz: no target finds anything in its corpus, its past findings and a thousand changes of them") {
  CHECK(Targets().size() == 24);
  for (const Target& target : Targets()) {
    CAPTURE(target.name);
    RoundsOptions options;
    options.corpus = "fuzz/testdata";
    CHECK(std::filesystem::is_directory(options.corpus + "/" + target.name));
    RunRounds(target, options);
  }
}

// What the seeds of a target reach: gradients that a ps applies or a worker sends, batches that are fed.
TEST_CASE("fuzz: the undamaged seeds of whole tasks get through the door, train, save and restore") {
  struct Expected {
    const char* seeds;  // all whose names begin so
    uint64_t steps;     // at least, of each
    int seen = 0;
  } expected[] = {
      {"feed/seed-fed-", 12},   {"feed/seed-feeds-", 14},
      {"ps/seed-0-", 12},       {"ps/seed-1-", 6},
      {"ps/seed-2-", 12},       {"ps/seed-follow-", 4},
      {"ps/seed-table-", 4},    {"ps/seed-hash-", 4},
      {"ps/seed-joint-", 4},    {"ps/seed-delta-", 4},
      {"ps/seed-saves-", 4},    {"ps/seed-restores-", 4},
      {"worker/seed-0-", 12},   {"worker/seed-1-", 12},
      {"worker/seed-2-", 12},   {"worker/seed-in-flight", 12},
      {"ps/seed-compress-", 6}, {"worker/seed-compress-", 12},
      {"worker/seed-goes-", 8},
  };
  for (const Target& target : Targets()) {
    for (const auto& entry : std::filesystem::directory_iterator("fuzz/testdata/" + target.name)) {
      const std::string seed = target.name + "/" + entry.path().filename().string();
      CAPTURE(seed);
      for (Expected& each : expected) {
        if (seed.compare(0, std::strlen(each.seeds), each.seeds) != 0) continue;
        std::ifstream stream(entry.path(), std::ios::binary);
        const uint64_t before = StepsReached();
        RunOne(target, std::string(std::istreambuf_iterator<char>(stream), {}));
        CHECK(StepsReached() - before >= each.steps);
        ++each.seen;
      }
    }
  }
  for (const Expected& each : expected) {
    CAPTURE(each.seeds);
    CHECK(each.seen > 0);
  }
}

}  // namespace
}  // namespace dtrain::fuzz
