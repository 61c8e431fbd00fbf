// Lines of Vowpal Wabbit's format: what is a row and what is a fault. That the numbers of features are Vowpal
// Wabbit's own is in cmd/test/vw_test.cc, with its parser beside ours; the numbers here are from there.
#include "trainer/rows/vw_line.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace dtrain {
namespace {

using Features = std::vector<std::pair<uint64_t, float>>;

DataConfig ConfigOf(std::vector<std::string> crosses = {}) {
  DataConfig data;
  data.train.format = DataFormat::kVw;
  data.crosses = std::move(crosses);
  return data;
}

// A line as a row, which it must be.
struct Row {
  SparseLine line;
  explicit Row(std::string_view text, const DataConfig& data = ConfigOf()) {
    std::optional<LineFault> fault;
    const bool parsed = MakeVwParser(data, std::nullopt)->Parse(text, &line, &fault);
    CHECK_MESSAGE(parsed, text);
    CHECK_MESSAGE(!fault, (fault ? fault->rule : ""));
  }
  Features features() const {
    Features all;
    for (size_t i = 0; i < line.ids.size(); ++i) all.emplace_back(line.ids[i], line.values[i]);
    return all;
  }
};

// "12: rule", or "" without a fault.
std::string FaultOf(std::string_view text, std::optional<int64_t> inputs = std::nullopt,
                    const DataConfig& data = ConfigOf()) {
  SparseLine line;
  std::optional<LineFault> fault;
  MakeVwParser(data, inputs)->Parse(text, &line, &fault);
  return fault ? std::to_string(fault->at) + ": " + fault->rule : "";
}

TEST_CASE("murmur3: is that of its published test vectors") {
  const auto hash = [](std::string_view bytes, uint32_t seed) { return Murmur3(bytes, seed); };
  CHECK(hash("", 0) == 0);
  CHECK(hash("", 1) == 0x514e28b7);
  CHECK(hash("", 0xffffffff) == 0x81f16f39);
  CHECK(hash("\xff\xff\xff\xff", 0) == 0x76293b50);
  CHECK(hash("\x21\x43\x65\x87", 0) == 0xf55b516b);
  CHECK(hash("\x21\x43\x65\x87", 0x5082edee) == 0x2362f9de);
  CHECK(hash("\x21\x43\x65", 0) == 0x7e4a8634);
  CHECK(hash("\x21\x43", 0) == 0xa0f7b07a);
  CHECK(hash("\x21", 0) == 0x72661cf4);
  CHECK(hash(std::string(4, '\0'), 0) == 0x2362f9de);
  CHECK(hash("abc", 0x9747b28c) == 0xc84a62dd);
  CHECK(hash("Hello, world!", 0x9747b28c) == 0x24884cba);
  CHECK(hash("The quick brown fox jumps over the lazy dog", 0x9747b28c) == 0x2fa826cd);
}

TEST_CASE("vw: a row has a label, a weight, a tag and features of namespaces with weights") {
  const Row row("1 2.5 tag|a:2 x y:3 12 foo:0 |b z:0.5 17 |a q");
  CHECK(row.line.label == "1");
  CHECK(row.line.weight == 2.5);
  CHECK(row.line.tag == "tag");
  CHECK(row.features() ==
        Features{{55432, 2}, {42847, 6}, {92606, 2}, {124687, 0.5}, {163348, 1}, {200833, 1}});
}

TEST_CASE("vw: the last word before the bar is a tag if nothing or a quote separates them") {
  CHECK(Row("1 |a x").line.label == "1");
  CHECK(Row("1 |a x").line.tag.empty());
  CHECK(Row("1|a x").line.label.empty());
  CHECK(Row("1|a x").line.tag == "1");
  CHECK(Row("1 'tag |a x").line.tag == "tag");
  CHECK(Row("1 0.5 'tag |a x").line.weight == 0.5);
  CHECK(Row("  -1   |a x").line.label == "-1");
  CHECK(Row("1 ' |a x").line.tag.empty());
}

TEST_CASE("vw: a row may lack its label, which is then empty, and its features") {
  CHECK(Row("|a x").line.label.empty());
  CHECK(Row(" |a x").line.weight == 1);
  CHECK(Row("1 |").features().empty());
  CHECK(Row("1 | ||a").features().empty());
}

TEST_CASE("vw: names of digits alone are numbers, also of namespaces, and others are texts") {
  CHECK(Row("|12 3").features() == Features{{15, 1}});
  CHECK(Row("|0 x").features() == Row("| x").features());
  CHECK(Row("| 5 05").features() == Features{{5, 1}, {5, 1}});
  CHECK(Row("| +5 -5").features() == Features{{178844, 1}, {201131, 1}});
  CHECK(Row("| 18446744073709551615").features() == Features{{262143, 1}});
  CHECK(Row("| \x01"
            "5\x02 x\x03")
            .features() == Features{{5, 1}, {170779, 1}});
}

TEST_CASE("vw: features without a name are counted from their namespace, with those of value 0") {
  CHECK(Row("|12 :3 x:0 :0 :2").features() == Features{{12, 3}, {14, 2}});
}

TEST_CASE("vw: a text in place of a value is hashed behind its feature, and is 1") {
  CHECK(Row("| a:b").features() == Features{{144016, 1}});
  CHECK(Row("|n:2 a:b :b").features() == Features{{19794, 1}, {233442, 1}});
  CHECK(Row("| a:-x c").features() == Features{{228859, 1}, {185951, 1}});
  CHECK(Row("|n a:b|c d").features() == Features{{130077, 1}, {190078, 1}});
}

TEST_CASE("vw: values are the nearest float32, and those that are 0 are left out") {
  CHECK(Row("| a:0.1").features()[0].second == 0.1f);
  CHECK(Row("| a:+3").features()[0].second == 3);
  CHECK(Row("| a:0 b:-0 c:1e-60").features().empty());
  CHECK(Row("|a:0 x y").features().empty());
}

TEST_CASE("vw: crosses are pairs of features of two namespaces, each once") {
  const Row row("1 |b z:2 |a x y:3 |a w", ConfigOf({"ba", "aa", "ab"}));
  CHECK(row.features() == Features{{124687, 2},
                                   {55432, 1},
                                   {42847, 3},
                                   {9575, 1},
                                   // a with a
                                   {1680, 1},
                                   {31047, 3},
                                   {64383, 1},
                                   {253394, 9},
                                   {221162, 3},
                                   {181314, 1},
                                   // a with b
                                   {80151, 2},
                                   {171394, 6},
                                   {198186, 2}});
  CHECK(Row("1 |c z:2 |7 x y:3", ConfigOf({"c7"})).features() ==
        Features{{243768, 2}, {13408, 1}, {132948, 3}, {209992, 2}, {67452, 6}});
  CHECK(Row("|c z:2 |7 x y:3", ConfigOf({"c7", "7c"})).features() ==
        Features{{243768, 2}, {13408, 1}, {132948, 3}, {117528, 2}, {143620, 6}});
  CHECK(Row("|a x", ConfigOf({"ab"})).features() == Row("|a x").features());
  CHECK(Row("| x |a y", ConfigOf({" a"})).features().size() == 3);
}

TEST_CASE("vw: the letter : in a cross is each namespace of the row, and each pair comes once") {
  const std::string line = "1 |b z:2 |a x";
  const Features alone = Row(line).features();
  Features all = alone;
  for (const auto& pair : Features{{1680, 1}, {80151, 2}, {220050, 4}}) all.push_back(pair);
  CHECK(Row(line, ConfigOf({"::"})).features() == all);
  CHECK(Row(line, ConfigOf({"ab", "::", ":b", "a:"})).features() == all);
  all.pop_back();
  CHECK(Row(line, ConfigOf({"a:"})).features() == all);
  CHECK(Row(line, ConfigOf({"c:"})).features() == alone);
  // Of :S and S: the first in their order is taken.
  const Features with_s{{218612, 1}, {28755, 1}, {203496, 1}, {231261, 1}};
  Features both = Row("1 |S s1 | n1", ConfigOf({"S:", ":S"})).features();
  std::sort(both.begin() + 2, both.end());
  CHECK(both == with_s);
}

TEST_CASE("vw: data.hash_bits says how many low bits of a number count") {
  DataConfig data = ConfigOf();
  data.hash_bits = 8;
  CHECK(Row("1 |a x", data).features() == Features{{55432 % 256, 1}});
}

TEST_CASE("vw: an empty line is no row") {
  SparseLine line;
  std::optional<LineFault> fault;
  const auto parser = MakeVwParser(ConfigOf(), std::nullopt);
  CHECK_FALSE(parser->Parse("", &line, &fault));
  CHECK_FALSE(parser->Parse("  ", &line, &fault));
  CHECK_FALSE(fault);
}

TEST_CASE("vw: a fault tells its byte in the line, the rule and a remedy") {
  CHECK(FaultOf("1 x y").find("5: a row must have a \"|\"") == 0);
  CHECK(FaultOf("1 1 0.5 |a x").find("4: before the first | must be at most a label, a weight and a tag.") ==
        0);
  CHECK(FaultOf("1 2 3 4 5 |a x").find("8: before the first |") == 0);
  CHECK(FaultOf("1\t2 |a x").find("1: label, weight and tag must be separated by blanks.") == 0);
  CHECK(FaultOf("1 abc |a x") == "2: the weight must be a number. Correct it, or remove the row.");
  CHECK(FaultOf("1 -1 |a x").find("2: the weight must be at least 0") == 0);
  CHECK(FaultOf("1 |a:x y").find("5: the weight of a namespace must be a number") == 0);
  CHECK(FaultOf("1 |a: y").find("5: the weight of a namespace must be a number") == 0);
  CHECK(FaultOf("1 |:2 y").find("3: a namespace with a weight must have a name") == 0);
  CHECK(FaultOf("1 |a y: z").find("7: a colon must have a value behind it") == 0);
  CHECK(FaultOf("1 |a y:1x").find("7: the value must be a number") == 0);
  CHECK(FaultOf("1 |a y:1:2").find("7: the value must be a number") == 0);
  CHECK(FaultOf("1 |a y:nan").find("7: the value must be a finite number") == 0);
  CHECK(FaultOf("1 |a y:INFO").find("7: the value must be a number") == 0);
  CHECK(FaultOf("1 |a y:-").find("7: the value must be a number") == 0);
  CHECK(FaultOf("1 |a y:e5").find("7: the value must be a number") == 0);
  CHECK(FaultOf("1 |a y:1e50").find("7: the value must be a number within float32") == 0);
  CHECK(FaultOf("1 |a:1e30 y:1e30").find("10: the value times the weight of its namespace") == 0);
  CHECK(FaultOf("1 |a y\rz").find("6: behind a name or a value must be a blank or a |.") == 0);
  CHECK(FaultOf("|a x:1e30 |b y:1e30", std::nullopt, ConfigOf({"ab"})).find("0: the product of two values") ==
        0);
}

TEST_CASE("vw: a number beyond model.inputs is a fault, also of a pair") {
  CHECK(FaultOf("|a x", 55433) == "");
  CHECK(
      FaultOf("1 |a x", 55432) ==
      "5: the feature's hash 55432 must be below model.inputs = 55432. Set model.inputs: 262144, or smaller "
      "data.hash_bits.");
  CHECK(FaultOf("1 |b z:2 |a x", 130000, ConfigOf({"ab"})) == "");
  CHECK(FaultOf("1 |b t |a 5", 249070, ConfigOf({"ab"})) == "");
}

TEST_CASE("vw: a line cannot ask for more features than a row may have") {
  std::string line = "1 |a";
  for (int i = 0; i < 2000; ++i) line += " " + std::to_string(i + 1);
  CHECK(FaultOf(line) == "");
  CHECK(FaultOf(line, std::nullopt, ConfigOf({"aa"})).find("2: a row must have at most 1048576 features") ==
        0);
}

TEST_CASE("vw: crosses that are not two letters are refused") {
  CHECK_THROWS_AS(MakeVwParser(ConfigOf({"abc"}), std::nullopt), const UserError&);
  CHECK_THROWS_AS(MakeVwParser(ConfigOf({":"}), std::nullopt), const UserError&);
  CHECK_THROWS_AS(MakeVwParser(ConfigOf({""}), std::nullopt), const UserError&);
}

}  // namespace
}  // namespace dtrain
