#include "trainer/worker/round_versions.h"

#include <doctest/doctest.h>

namespace dtrain {
namespace {

TEST_CASE(
    "round versions: weights whose blocks differ are torn until others come, and count as their oldest") {
  RoundVersions versions;
  CHECK_FALSE(versions.torn());
  versions.OnAnswer(0, 5);
  versions.OnAnswer(0, 4);
  versions.OnWhole(/*gradient=*/false);
  CHECK(versions.torn());
  CHECK(versions.version() == 4);
  versions.OnAnswer(1, 5);
  versions.OnAnswer(1, 5);
  versions.OnWhole(/*gradient=*/false);
  CHECK_FALSE(versions.torn());
  CHECK(versions.version() == 5);
}

TEST_CASE("round versions: a gradient that made another version than the next one missed its round") {
  RoundVersions versions;
  versions.OnAnswer(0, 5);
  versions.OnWhole(/*gradient=*/false);
  versions.OnAnswer(1, 6);
  versions.OnWhole(/*gradient=*/true);
  CHECK(versions.too_late() == 0);
  versions.OnAnswer(2, 8);
  versions.OnWhole(/*gradient=*/true);
  CHECK(versions.too_late() == 1);
}

}  // namespace
}  // namespace dtrain
