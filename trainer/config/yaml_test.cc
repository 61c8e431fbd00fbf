#include "trainer/config/yaml.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/random.h"

namespace dtrain {
namespace {

using Kind = YamlNode::Kind;

// The error's text; empty when there is none.
std::string ErrorOf(const std::string& text) {
  try {
    ParseYaml(text);
    return "";
  } catch (const YamlError& error) {
    return error.what();
  }
}

TEST_CASE("yaml: maps, lists and scalars keep their lines") {
  const YamlNode root = ParseYaml("# comment\na: 1\nb:\n  - x\n  - 'y'\nc: {d: null}\n");
  REQUIRE(root.kind == Kind::kMap);
  REQUIRE(root.children.size() == 3);
  const YamlNode& a = root.children[0];
  CHECK((a.key == "a" && a.key_line == 2 && a.text == "1" && !a.quoted));
  const YamlNode& b = root.children[1];
  REQUIRE(b.children.size() == 2);
  CHECK((b.kind == Kind::kList && b.key_line == 3 && b.children[0].line == 4));
  CHECK((b.children[1].text == "y" && b.children[1].quoted && b.children[1].line == 5));
  CHECK(root.children[2].children[0].kind == Kind::kNull);
}

TEST_CASE("yaml: null is written in several ways, and quoted it is text") {
  const YamlNode root = ParseYaml("[null, ~, , 'null', nil]");
  CHECK(root.children[0].kind == Kind::kNull);
  CHECK(root.children[1].kind == Kind::kNull);
  CHECK(root.children.back().kind == Kind::kScalar);
  CHECK(root.children[root.children.size() - 2].text == "null");
}

TEST_CASE("yaml: addresses in a flow list are scalars") {
  const YamlNode root = ParseYaml("[a:1, 10.0.0.1:9001, \"[::1]:9001\"]");
  REQUIRE(root.children.size() == 3);
  CHECK(root.children[0].text == "a:1");
  CHECK(root.children[1].text == "10.0.0.1:9001");
  CHECK(root.children[2].text == "[::1]:9001");
}

TEST_CASE("yaml: a byte order mark and lines that end in CR LF are fine") {
  const YamlNode root = ParseYaml(
      "\xef\xbb\xbf"
      "a:\r\n  b: 1\r\n  c: 2\r\n");
  REQUIRE(root.children.size() == 1);
  REQUIRE(root.children[0].children.size() == 2);
  CHECK(root.children[0].children[1].text == "2");
  CHECK(root.children[0].children[1].line == 3);
}

TEST_CASE("yaml: an alias is a copy under the key that it stands at") {
  const YamlNode root = ParseYaml("a: &x {n: 1}\nb: *x\n");
  REQUIRE(root.children.size() == 2);
  CHECK((root.children[1].key == "b" && root.children[1].key_line == 2));
  CHECK(root.children[1].children[0].text == "1");
}

TEST_CASE("yaml: nothing but comments is null") {
  CHECK(ParseYaml("").kind == Kind::kNull);
  CHECK(ParseYaml("# a\n---\n# b\n").kind == Kind::kNull);
}

TEST_CASE("yaml: what would exhaust memory or stack is refused") {
  CHECK(ErrorOf(std::string(33, '[') + std::string(33, ']')).find("nested too deeply") == 0);
  CHECK(ErrorOf(std::string(32, '[') + std::string(32, ']')) == "");
  CHECK(ErrorOf(std::string(100000, '[')) != "");
  CHECK(ErrorOf(std::string(100000, '{')) != "");
  std::string steps;
  for (int i = 0; i < 5000; ++i) steps += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  CHECK(ErrorOf(steps).find("nested too deeply") == 0);
}

TEST_CASE("yaml: the bytes that anchors and aliases copy are bounded, however they are nested") {
  const std::string large(600000, 'x');
  const std::string rule = "anchors and aliases copy more than 4194304 bytes";
  CHECK(ErrorOf("a: &x " + large + "\nb: [*x, *x, *x, *x, *x]\n") == "");
  CHECK(ErrorOf("a: &x " + large + "\nb: [*x, *x, *x, *x, *x, *x]\n").find(rule) == 0);
  const std::string key = "{" + std::string(1000, 'k') + ": 1}";
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "*k,";
  CHECK(ErrorOf("a: &k " + key + "\nb: [" + many + "]\n").find(rule) == 0);
  std::string nested;
  for (int i = 0; i < 30; ++i) nested += fmt::format("&a{} [", i);
  CHECK(ErrorOf(nested + large + std::string(30, ']')).find(rule) == 0);
  std::string small;
  for (int i = 0; i < 90000; ++i) small += "a,";
  CHECK(ErrorOf(nested + small + std::string(30, ']')).find("more than 100000 values") == 0);
}

TEST_CASE("yaml: damaged texts are parsed or refused, never worse") {
  const std::string good =
      "cluster: &c\n  ps: [\"a:1\", 'b:2']\nmodel: {kind: x, init: {seed: 1}}\nd: |\n  t\n? k\n: *c\n";
  for (size_t size = 0; size <= good.size(); ++size) (void)ErrorOf(good.substr(0, size));
  const CounterRandom random(7);
  for (uint64_t i = 0; i < 3000; ++i) {
    std::string bad = good;
    for (uint64_t k = 0; k < 3; ++k) {
      const CounterRandom stream = random.Stream(k);
      bad[stream.Below(2 * i, bad.size())] = "{}[]:,&*!|>'\"%@`#-? \n\t\\ax0"[stream.Below(2 * i + 1, 27)];
    }
    (void)ErrorOf(bad);
  }
  CHECK(ErrorOf(good) == "");
}

}  // namespace
}  // namespace dtrain
