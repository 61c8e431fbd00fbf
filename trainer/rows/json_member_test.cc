#include "trainer/rows/json_member.h"

#include <doctest/doctest.h>

#include <string>

namespace dtrain {
namespace {

std::string IdOf(std::string_view object) { return std::string(MemberText(object, "id")); }

TEST_CASE("json member: its text is as it was written, wherever it stands and whatever is around it") {
  CHECK(IdOf(R"({"id":123456789012345678901234567890})") == "123456789012345678901234567890");
  CHECK(IdOf(R"( { "a" : [1, {"id": 2}] , "id" : 1.10 , "b": "id" } )") == "1.10");
  CHECK(IdOf(R"({"id": {"id": [1, "}, \"]"]} })") == R"({"id": [1, "}, \"]"]})");
  CHECK(IdOf(R"({"a": "\\", "i\u0064": "x\"y"})") == R"("x\"y")");
  CHECK(IdOf(R"({"id": 1, "id":  null	})") == "null");
}

TEST_CASE("json member: one that is not there is empty") {
  CHECK(IdOf("{}") == "");
  CHECK(IdOf(" { } ") == "");
  CHECK(IdOf(R"({"a": "id", "b": {"id": 1}, "idx": 2})") == "");
}

}  // namespace
}  // namespace dtrain
