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

TEST_CASE("step grants: ended early none is granted, and what is open may be applied or given back") {
  StepGrants grants(std::nullopt);
  CHECK(grants.Take(5) == 5);
  grants.Applied();
  grants.EndEarly(0);
  CHECK(grants.Take(1) == 0);
  grants.Applied();
  grants.GiveBack(2);
  CHECK(grants.Take(1) == 0);
  grants.EndEarly(0);
  CHECK_FALSE(grants.over());
  grants.Applied();
  CHECK(grants.over());
  CHECK(grants.applied() == 3);
}

TEST_CASE("step grants: ended early with more to come (rounds that are decided) those are still taken") {
  StepGrants grants(100);
  grants.EndEarly(2);
  for (int i = 0; i < 2; ++i) {
    CHECK_FALSE(grants.over());
    CHECK(grants.Take(1) == 1);
    grants.Applied();
  }
  CHECK(grants.over());
}

TEST_CASE("step grants: begun at a checkpoint, the total counts the steps before it") {
  StepGrants grants(10, 7);
  CHECK(grants.applied() == 7);
  CHECK(grants.Take(5) == 3);
  for (int i = 0; i < 3; ++i) grants.Applied();
  CHECK(grants.over());
  CHECK(grants.applied() == 10);
}

TEST_CASE("step grants: a checkpoint that has all of the steps, or more, leaves none") {
  for (const int64_t total : {int64_t{7}, int64_t{3}}) {
    StepGrants grants(total, 7);
    CHECK(grants.over());
    CHECK(grants.Take(1) == 0);
    CHECK(grants.applied() == 7);
  }
}

}  // namespace
}  // namespace dtrain
