// A short round of scripts/chaos.sh, whose longer ones are in scripts/check_all.sh.
#include <doctest/doctest.h>
#include <stdio.h>

#include <string>

namespace dtrain::testing {
namespace {

TEST_CASE("chaos: two short runs of random kills, stops, cuts and damage end as undisturbed ones") {
  const std::string command =
      "python3 -B scripts/chaos/chaos.py --seed 7 --minutes 0.4 --steps 3000 --binary cmd/dtrain 2>&1";
  FILE* const chaos = popen(command.c_str(), "r");
  REQUIRE(chaos != nullptr);
  std::string said;
  char buffer[4096];
  while (const size_t got = fread(buffer, 1, sizeof buffer, chaos)) said.append(buffer, got);
  const int status = pclose(chaos);
  CAPTURE(said);
  CHECK(status == 0);
  CHECK(said.find("chaos: fine") != std::string::npos);
}

}  // namespace
}  // namespace dtrain::testing
