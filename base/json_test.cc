#include "base/json.h"

#include <doctest/doctest.h>

#include <limits>
#include <stdexcept>

namespace dtrain {
namespace {

TEST_CASE("Json: a text is read and written again as it was") {
  const std::string text =
      R"({"b":[1,-2,0.5,1e+300,18446744073709551615],"a":{"x":null,"y":true},"t":"a \"b\"\n"})";
  CHECK(Json::Parse(text).dump() == text);
  CHECK(Json::Parse("[ ]").dump() == "[]");
  CHECK(Json::Parse(R"({"a": [1]})").dump(2) == "{\n  \"a\": [\n    1\n  ]\n}");
}

TEST_CASE("Json: what is no JSON is null") {
  for (const char* text : {"", "{", "[1,]", "{\"a\":1} x", "nan", "[1e999]", "\"\xff\""}) {
    CAPTURE(text);
    CHECK(Json::Parse(text).is_null());
  }
  CHECK(Json::Parse(std::string(1 << 20, '[')).is_null());
}

TEST_CASE("Json: of two members of one name the later counts, and strictly the text is refused") {
  const char* const text = R"({"a": 1, "b": {"a": 2}, "a": [3]})";
  CHECK(Json::Parse(text).dump() == R"({"a":[3],"b":{"a":2}})");
  Json::Problem problem;
  CHECK(Json::ParseStrictly(text, 10, &problem).is_null());
  CHECK(problem.kind == Json::Problem::kRepeated);
  CHECK(problem.text == "a");
}

TEST_CASE("Json: a text that is nested too deep or damaged is refused with the reason") {
  Json::Problem none, deep, syntax;
  CHECK(Json::ParseStrictly("[[1]]", 2, &none).size() == 1);
  CHECK(none.kind == Json::Problem::kNone);
  CHECK(Json::ParseStrictly("[[[1]]]", 2, &deep).is_null());
  CHECK(deep.kind == Json::Problem::kDepth);
  CHECK(Json::ParseStrictly("[1 2]", 2, &syntax).is_null());
  CHECK(syntax.kind == Json::Problem::kSyntax);
  CHECK(syntax.text.rfind("parse error at line 1, column 4", 0) == 0);
}

TEST_CASE("Json: braces make an object where each element is a name and a value, else an array") {
  const Json object = {{"name", "x"}, {"sizes", std::vector<int>{1, 2}}, {"none", nullptr}};
  CHECK(object.dump() == R"({"name":"x","sizes":[1,2],"none":null})");
  CHECK(Json({300, 300}).dump() == "[300,300]");
  Json grown;
  grown["a"]["b"] = 1.5;
  grown["a"]["c"].push_back("d");
  CHECK(grown.dump() == R"({"a":{"b":1.5,"c":["d"]}})");
}

TEST_CASE("Json: values are equal by what they are worth, members in any order") {
  CHECK(Json::Parse(R"({"a": 1, "b": 2.0})") == Json::Parse(R"({"b": 2, "a": 1})"));
  CHECK(Json::Parse("[1, 2]") != Json::Parse("[2, 1]"));
  CHECK(Json(3) == 3);
  CHECK(Json("3") != Json(3));
}

TEST_CASE("Json: reading what is not there throws") {
  const Json json = Json::Parse(R"({"a": [1]})");
  CHECK(json.at("a")[0].get<int64_t>() == 1);
  CHECK(json.Find("b") == nullptr);
  CHECK_THROWS_AS(json.at("b"), std::logic_error);
  CHECK_THROWS_AS(json.at("a").at(1), std::logic_error);
  CHECK_THROWS_AS(json.at("a").get<std::string>(), std::logic_error);
}

TEST_CASE("Json: members of a value that may be anything") {
  const Json json = Json::Parse(R"({"a": 1, "b": "c", "d": [2]})");
  CHECK(NumberIn(json, "a") == 1);
  CHECK(TextIn(json, "b") == "c");
  for (const char* name : {"b", "d", "none"}) CHECK_FALSE(NumberIn(json, name));
  for (const char* name : {"a", "d", "none"}) CHECK(TextIn(json, name).empty());
  CHECK_FALSE(NumberIn(Json({{"a", std::numeric_limits<double>::infinity()}}), "a"));
  CHECK(TextIn(Json(), "a").empty());
  CHECK_FALSE(NumberIn(Json::Parse("[1]"), "a"));
}

TEST_CASE("Json: what is no UTF-8 is written as U+FFFD") {
  CHECK(Json("a\xff").dump() == "\"a\xef\xbf\xbd\"");
}

}  // namespace
}  // namespace dtrain
