#include "trainer/ps/step_grants.h"

#include <doctest/doctest.h>

namespace dtrain {
namespace {

TEST_CASE("step grants: exactly the total is granted, and given-back steps are granted again") {
  StepGrants grants(10);
  CHECK(grants.Take(7) == 7);
  CHECK(grants.Take(7) == 3);
  CHECK(grants.Take(1) == 0);
  for (int i = 0; i < 6; ++i) grants.Applied();
  grants.GiveBack(4);
  CHECK_FALSE(grants.over());
  CHECK(grants.Take(9) == 4);
  for (int i = 0; i < 4; ++i) grants.Applied();
  CHECK(grants.over());
  CHECK(grants.applied() == 10);
}

TEST_CASE("step grants: without a total there is always a next step") {
  StepGrants grants(std::nullopt);
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(grants.Take(3) == 3);
    for (int j = 0; j < 3; ++j) grants.Applied();
  }
  CHECK_FALSE(grants.over());
}

}  // namespace
}  // namespace dtrain
