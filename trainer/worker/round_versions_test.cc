#include "trainer/worker/round_versions.h"

#include <doctest/doctest.h>

namespace dtrain {
namespace {

TEST_CASE("round versions: a gradient that made the next version was in time") {
  RoundVersions versions;
  versions.OnAnswer(0, 4);
  versions.OnWhole(false);
  CHECK(versions.version() == 4);
  versions.OnAnswer(1, 5);
  versions.OnWhole(true);
  CHECK(versions.version() == 5);
  CHECK(versions.too_late() == 0);
}

TEST_CASE("round versions: a gradient that was answered with a later version was too late") {
  RoundVersions versions;
  versions.OnAnswer(0, 4);
  versions.OnWhole(false);
  versions.OnAnswer(1, 6);
  versions.OnWhole(true);
  CHECK(versions.too_late() == 1);
  CHECK(versions.version() == 6);
}

TEST_CASE("round versions: answers of several versions are torn, until those of one exchange agree") {
  RoundVersions versions;
  versions.OnAnswer(0, 4);
  versions.OnAnswer(0, 5);
  versions.OnWhole(false);
  CHECK(versions.torn());
  CHECK(versions.version() == 4);
  versions.OnAnswer(1, 5);
  versions.OnAnswer(1, 5);
  versions.OnWhole(false);
  CHECK_FALSE(versions.torn());
  CHECK(versions.version() == 5);
}

}  // namespace
}  // namespace dtrain
