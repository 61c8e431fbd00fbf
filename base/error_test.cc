#include "base/error.h"

#include <doctest/doctest.h>

#include <new>
#include <stdexcept>

namespace dtrain {
namespace {

TEST_CASE("error: a failure is told in its own words") {
  CHECK(FailureText(UserError("train.steps = {}; must be >= 1.", 0)) == "train.steps = 0; must be >= 1.");
}

TEST_CASE("error: memory that ran out is told with a remedy") {
  CHECK(FailureText(std::bad_alloc()).substr(0, 40) == "out of memory: the system gave no more. ");
}

TEST_CASE("error: what nobody expected is an internal error") {
  CHECK(FailureText(std::logic_error("broken")) == "internal error: broken");
}

}  // namespace
}  // namespace dtrain
