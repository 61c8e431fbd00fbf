#include "trainer/scheduler/environment.h"

#include <doctest/doctest.h>

#include "trainer/scheduler/testing.h"

namespace dtrain {
namespace {

TEST_CASE("environment: values keep their equals signs, and what has none is left out") {
  const char* const variables[] = {"A=1", "B=x=y", "nothing", "C=", nullptr};
  CHECK(EnvironmentOf(variables) == Environment{{"A", "1"}, {"B", "x=y"}, {"C", ""}});
}

TEST_CASE("environment: the first name that is set counts, and empty is not set") {
  const Environment environment = {{"A", ""}, {"B", "2"}, {"C", "3"}};
  REQUIRE(FindVariable(environment, {"A", "B", "C"}) != nullptr);
  CHECK(FindVariable(environment, {"A", "B", "C"})->first == "B");
  CHECK(FindVariable(environment, {"A", "D"}) == nullptr);
}

TEST_CASE("environment: a number is whole, or an error that names its variable") {
  CHECK(FindNumber({{"N", "17"}}, {"N"}) == 17);
  CHECK_FALSE(FindNumber({}, {"N"}).has_value());
  for (const char* bad : {"-1", "1x", " 1", "1.0", "99999999999"}) {
    CAPTURE(bad);
    const std::string text = ErrorOf([&] { FindNumber({{"N", bad}}, {"N"}); });
    CHECK(text.find("N = ") == 0);
    CHECK(Contains(text, "must be a whole number"));
  }
}

}  // namespace
}  // namespace dtrain
