// Lines of libsvm's, Vowpal Wabbit's and Criteo's texts: what is a row and what is a fault. That the numbers
// of vw's features are Vowpal Wabbit's own is in cmd/test/vw_test.cc, with its parser beside ours; the
// numbers here are from there.
#include "trainer/rows/sparse_line.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "trainer/rows/hashed_feature.h"
#include "trainer/rows/sparse_file.h"
#include "trainer/rows/vw_line.h"

namespace dtrain {
namespace {

using Features = std::vector<std::pair<uint64_t, float>>;

struct Line {
  bool is_row = false;
  std::string label, tag;
  double weight = 0;
  Features features;
  std::string fault;  // "12: rule", with the byte in the line; "" without one
};

Line Parse(LineParser* parser, std::string_view text, SparseLine* row) {
  std::optional<LineFault> fault;
  Line line;
  line.is_row = parser->Parse(text, row, &fault);
  if (fault) line.fault = std::to_string(fault->at) + ": " + fault->rule;
  CHECK_FALSE((line.is_row && fault));
  if (!line.is_row) return line;
  line.label = row->label;
  line.tag = row->tag;
  line.weight = row->weight;
  REQUIRE(row->ids.size() == row->values.size());
  for (size_t i = 0; i < row->ids.size(); ++i) line.features.emplace_back(row->ids[i], row->values[i]);
  return line;
}

Line Parse(std::string_view text, const DataConfig& data, std::optional<int64_t> inputs = std::nullopt,
           bool labels = true) {
  SparseLine row;
  LineRules rules;
  rules.inputs = inputs;
  rules.labels = labels;
  rules.end_of_labels = 2;
  return Parse(MakeLineParser(data, rules).get(), text, &row);
}

// A line that must be a row.
Line RowOf(std::string_view text, const DataConfig& data) {
  Line line = Parse(text, data);
  CHECK_MESSAGE(line.is_row, text << line.fault);
  return line;
}

bool Begins(const std::string& text, const std::string& begin) { return text.find(begin) == 0; }
bool Contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

DataConfig Libsvm(int64_t base = 1) {
  DataConfig data;
  data.train.format = DataFormat::kLibsvm;
  data.index_base = base;
  return data;
}

DataConfig Vw(std::vector<std::string> crosses = {}) {
  DataConfig data;
  data.train.format = DataFormat::kVw;
  data.crosses = std::move(crosses);
  return data;
}
Line VwRow(std::string_view text, std::vector<std::string> crosses = {}) {
  return RowOf(text, Vw(std::move(crosses)));
}

DataConfig Criteo(std::optional<int64_t> bits = 40, bool by_column = false) {
  DataConfig data;
  data.train.format = DataFormat::kCriteo;
  data.hash_bits = bits;
  data.by_column = by_column;
  return data;
}

TEST_CASE("sparse line: an empty line is no row, and of libsvm a comment") {
  for (const DataConfig& data : {Libsvm(), Vw(), Criteo()}) CHECK_FALSE(Parse("", data).is_row);
  for (const char* line : {"  ", "\t", "# all of it", "   # 1 2:3"}) {
    CAPTURE(line);
    CHECK_FALSE(Parse(line, Libsvm()).is_row);
    CHECK(Parse(line, Libsvm()).fault == "");
  }
  CHECK_FALSE(Parse("  ", Vw()).is_row);
  CHECK(Parse("  ", Vw()).fault + Parse("", Vw()).fault + Parse("", Criteo()).fault == "");
}

TEST_CASE("libsvm: a row is its label and its features, in their order, with blanks, tabs and comments") {
  const auto check = [](const char* text, const char* label, const Features& features, int64_t base = 1) {
    CAPTURE(text);
    const Line row = RowOf(text, Libsvm(base));
    CHECK(row.label == label);
    CHECK(row.features == features);
  };
  check("+1 1:0.5 3:-2e3 7:1", "+1", {{0, 0.5f}, {2, -2000.0f}, {6, 1.0f}});
  check("1 0:2 3:1", "1", {{0, 2.0f}, {3, 1.0f}}, 0);
  check("0 5:1 2:3 5:4", "0", {{4, 1.0f}, {1, 3.0f}, {4, 4.0f}});
  check(" \t2\t 1:1  2:2 \t# 3:3", "2", {{0, 1.0f}, {1, 2.0f}});
  check("-1", "-1", {});
  check("-1# a comment", "-1", {});
  check("1 4:.5#no blank", "1", {{3, 0.5f}});
  check("3 qid:17 1:2", "3", {{0, 2.0f}});  // the group of a row is left out
  check("3 qid:17", "3", {});
  check("3 QID:17 1:2", "3", {{0, 2.0f}});
  check("1 4294967296:1", "1", {{4294967295, 1.0f}});
  CHECK(Parse("1 999999999999:1", Libsvm(), 1000000000000).features == Features{{999999999998, 1.0f}});
}

TEST_CASE("libsvm: a fault tells its byte in the line, the rule and a remedy") {
  const auto fault = [](const std::string& line, int64_t base = 1,
                        std::optional<int64_t> inputs = std::nullopt) {
    return Parse(line, Libsvm(base), inputs).fault;
  };
  for (const char* line : {"1 2", "1 -3:1", "1 1.5:2", "1 3 :4", "1 :4"}) CHECK(Begins(fault(line), "2: "));
  CHECK(Begins(fault("1  3"), "3: "));
  CHECK(Begins(fault("1 3: 4"), "4: "));
  CHECK(Begins(fault("1 1:1 qid:2"), "6: "));
  CHECK(
      fault("1 1:1 x:3") ==
      "6: x:3 must be INDEX:VALUE, where INDEX is a whole number from 1 on. Correct it, or remove the row.");
  CHECK(fault("1:2 3:4") ==
        "0: 1:2 stands where the label must; a row is LABEL INDEX:VALUE INDEX:VALUE. If it is the label with "
        "the weight of its row, set data.weight: label. Correct it, or remove the row.");
  CHECK(
      fault("1,2,3") ==
      "0: 1,2,3 is no label: a row has one. For a table with commas set data.train.format: csv. Correct it, "
      "or remove the row.");
  CHECK(fault("1 0:1") ==
        "2: feature 0; indexes begin at 1. If those of this file begin at 0, set data.index_base: 0.");
  CHECK(fault("1 3:1 4:1", 1, 3) ==
        "6: feature 4; must be 1 to 3 (model.inputs = 3; where it is not set, the features of data.train). "
        "Raise model.inputs, or remove the row.");
  CHECK(Begins(fault("1 3:1", 0, 3), "2: feature 3; must be 0 to 2"));
  CHECK(fault("1 1:1 99999999999:1") ==
        "6: feature 99999999999; must be 1 to 4294967296 where model.inputs is not set. Correct it, or set "
        "model.inputs, or model.table: hash, which takes any index.");
  for (const char* feature : {"4294967297", "18446744073709551617"}) {
    CHECK(Begins(fault(std::string("1 ") + feature + ":1"),
                 std::string("2: feature ") + feature + "; must be 1 to 4294967296 where"));
  }
  for (const char* labels : {"0,2 1:1.5 3:2", "1,2,3 1:1", "spam,ham 7:1"}) {
    CHECK(Contains(fault(labels), " are several labels, and a row has one"));
    CHECK_FALSE(Contains(fault(labels), "csv"));
  }
  // libffm's form, whatever the index base.
  for (const char* row : {"1 0:3:1.5 1:7:2", "1 2:3:1", "0 7:12:0.25", "1 3:1 2:5:1"}) {
    CHECK(Contains(fault(row), " is FIELD:INDEX:VALUE, libffm's form"));
    CHECK(Contains(fault(row, 0), " is FIELD:INDEX:VALUE, libffm's form"));
  }
  for (const char* value : {"nan", "inf", "-Infinity", "x", "", "1e99", "1,5", "0x10", "1:x"}) {
    CAPTURE(value);
    CHECK(Begins(fault(std::string("1 2:3 11:") + value), "9: the value of feature 11 "));
  }
  CHECK(fault("1 2:inf") ==
        "4: the value of feature 2 = inf; must be a finite number. Correct it, or remove the row.");
}

// What the format says, in the fewest words.
Features SimplyRead(std::string line, std::string* label) {
  Features features;
  line = line.substr(0, line.find('#'));
  std::istringstream words(line);
  words >> *label;
  for (std::string word; words >> word;) {
    const size_t colon = word.find(':');
    if (word.substr(0, colon) == "qid") continue;
    features.emplace_back(std::stoull(word) - 1, std::strtof(word.c_str() + colon + 1, nullptr));
  }
  return features;
}

TEST_CASE("libsvm: 20,000 random lines are read as a ten-line reader reads them") {
  std::mt19937_64 random(20260923);
  const auto below = [&](uint64_t n) { return random() % n; };
  const auto parser = MakeLineParser(Libsvm(), {1000000000000});
  SparseLine memory;
  for (int i = 0; i < 20000; ++i) {
    std::string line = std::vector<std::string>{"0", "1", "+1", "-1", "2.5", "name"}[below(6)];
    if (below(9) == 0) line += " qid:" + std::to_string(below(100));
    for (uint64_t left = below(20); left > 0; --left) {
      line += std::string(1 + below(2), below(4) == 0 ? '\t' : ' ');
      line += std::to_string(1 + below(uint64_t{1} << below(38))) + ":";
      char value[64];
      const char* const form =
          std::vector<const char*>{"%.0f", "%.3f", "%.9g", "%.17g", "%e", "%g"}[below(6)];
      std::snprintf(value, sizeof value, form,
                    std::ldexp(static_cast<double>(random()) - 9e18, -static_cast<int>(30 + below(60))));
      line += value;
    }
    if (below(7) == 0) line += "# 5:5";
    CAPTURE(line);
    std::string label;
    const Features expected = SimplyRead(line, &label);
    const Line row = Parse(parser.get(), line, &memory);
    REQUIRE(row.is_row);
    REQUIRE(row.label == label);
    REQUIRE(row.features == expected);
  }
}

TEST_CASE("libsvm: where labels are not needed a row may begin with its features") {
  for (const auto& [text, label] :
       std::vector<std::pair<std::string, std::string>>{{"3:1 5:2", ""},
                                                        {"  qid:7 3:1 5:2 # x", ""},
                                                        {"-4 3:1 5:2", "-4"},
                                                        {"none qid:1 3:1 5:2", "none"}}) {
    CAPTURE(text);
    const Line row = Parse(text, Libsvm(), 9, /*labels=*/false);
    CHECK(row.is_row);
    CHECK(row.label == label);
    CHECK(row.features == Features{{2, 1}, {4, 2}});
  }
  CHECK(Begins(Parse("3:x", Libsvm(), 9, /*labels=*/false).fault, "2: "));
}

TEST_CASE(
    "libsvm: where labels are not needed, the first row says what a word is that may be a label or a "
    "feature") {
  // Of a model with the classes 0 and 1.
  LineRules rules;
  rules.inputs = 9;
  rules.labels = false;
  rules.end_of_labels = 2;
  const auto read = [&](std::vector<std::string> lines, int64_t base = 1) {
    SparseLine row;
    const auto parser = MakeLineParser(Libsvm(base), rules);
    std::vector<Line> rows;
    for (const std::string& line : lines) rows.push_back(Parse(parser.get(), line, &row));
    return rows;
  };
  // A label with the weight of its row, which is passed over.
  for (const char* first : {"1 2:1", "-1 2:1", "-1:0.5 2:1", "1.0:3 2:1", "spam:1 2:1", "0:0.5 2:1"}) {
    CAPTURE(first);
    const std::vector<Line> rows = read({first, "1:0.5 2:2", "7:1 2:2"});
    CHECK(rows[0].features == Features{{1, 1}});
    CHECK(rows[1].label == "1");
    CHECK(rows[1].features == Features{{1, 2}});
    CHECK(rows[2].features == Features{{6, 1}, {1, 2}});  // no class is 7
  }
  const std::vector<Line> none = read({"2:1 3:1", "1:0.5 2:2"});  // no class is 2
  CHECK(none[1].label == "");
  CHECK(none[1].features == Features{{0, 0.5f}, {1, 2}});
  CHECK(none[0].features == Features{{1, 1}, {2, 1}});
  CHECK(read({"1 2:1", "1:0.5 2:2"})[1].features == Features{{1, 2}});
  CHECK(read({"2:1", "-1:4 2:2"})[1].features == Features{{1, 2}});
  CHECK(read({"qid:1 2:1", "1:0.5 2:2"})[1].features.size() == 2);
  for (const auto& [line, base] : {std::pair("1:0.5 2:2", 1), {"0:0.5 2:2", 0}, {"1:1", 0}}) {
    CHECK(Contains(read({line}, base)[0].fault, "may be a label with the weight of its row, or the first"));
  }
}

TEST_CASE("libsvm: with data.weight a label may have the weight of its row behind it, each row its own") {
  DataConfig data = Libsvm();
  data.weight = "label";
  const auto check = [&](const char* text, const char* label, double weight) {
    CAPTURE(text);
    const Line row = RowOf(text, data);
    CHECK(row.label == label);
    CHECK(row.weight == weight);
    CHECK(row.features == Features{{1, 3}});
  };
  check("1:0.5 2:3", "1", 0.5);
  check("-1 2:3", "-1", 1);
  check("0:0 2:3 # x", "0", 0);
  check("spam:2e1\t2:3", "spam", 20);
  check("2.5:4 qid:1 2:3", "2.5", 4);
  for (const char* bad : {"1:-1 2:3", "1:x 2:3", "1: 2:3", "1:nan 2:3", "1:2:3 2:3"}) {
    CHECK(Contains(Parse(bad, data).fault, "must be LABEL:WEIGHT, and the weight a number of at least 0"));
  }
}

TEST_CASE("libsvm: a comment that contradicts data.index_base is a fault") {
  const char* const zero = "# Column indices are zero-based";
  CHECK(
      Parse(zero, Libsvm(1)).fault ==
      "0: the comment says that indexes begin at 0, and data.index_base = 1: all features would be one off. "
      "Set data.index_base to 0, or if the comment is wrong remove the line.");
  CHECK(MakeLineParser(Libsvm(1), {})->HasRow(zero));
  CHECK(Parse(zero, Libsvm(0)).fault == "");
  CHECK_FALSE(MakeLineParser(Libsvm(0), {})->HasRow(zero));
  CHECK(Contains(Parse("  # Column indices are one-based", Libsvm(0)).fault, "begin at 1"));
  const std::pair<const char*, std::optional<int64_t>> comments[] = {
      {"# feature IDs: 0-based", 0},
      {"#INDEXES ARE 1-BASED", 1},
      {"# zero-based labels", {}},
      {"# columns, zero-based or one-based", {}},
      {"# indexed", {}},
      {"1 1:1 # Column indices are zero-based", {}},
      {"# index from zero, zero based", 0}};
  for (const auto& [line, base] : comments) {
    CAPTURE(line);
    CHECK(IndexBaseOf(line) == base);
  }
}

TEST_CASE("libsvm: features that a trained model has not are left out and counted") {
  int64_t beyond = 0;
  LineRules rules;
  rules.inputs = 6;
  rules.beyond = &beyond;
  SparseLine row;
  const auto parser = MakeLineParser(Libsvm(), rules);
  CHECK(Parse(parser.get(), "1 1:1 7:0.5 3:2 99999999999999999999:1", &row).features ==
        Features{{0, 1}, {2, 2}});
  CHECK(beyond == 2);
  CHECK(Parse(parser.get(), "1 9:1", &row).features.empty());
  CHECK(beyond == 3);
  CHECK(Contains(Parse(parser.get(), "1 0:1", &row).fault, "indexes begin at 1"));
  CHECK(Contains(Parse(parser.get(), "1 9:1:2", &row).fault, "libffm"));
}

TEST_CASE("sparse line: digits are read as one after the other would be, up to the first that is none") {
  std::mt19937 random(7);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (auto left = random() % 22; left > 0; --left) {
      text += static_cast<char>(random() % 12 != 0 ? '0' + random() % 10 : random() % 256);
    }
    uint64_t expected = 0, number = 1;
    const char* behind = text.data();
    const char* const end = text.data() + text.size();
    for (; behind < end && *behind >= '0' && *behind <= '9'; ++behind) {
      expected = 10 * expected + static_cast<uint64_t>(*behind - '0');
    }
    REQUIRE(ReadDigits(text.data(), end, &number) == behind);
    REQUIRE(number == expected);
  }
}

TEST_CASE("murmur3: is that of its published test vectors") {
  CHECK(Murmur3("", 0) == 0);
  CHECK(Murmur3("", 1) == 0x514e28b7);
  CHECK(Murmur3("", 0xffffffff) == 0x81f16f39);
  CHECK(Murmur3("\xff\xff\xff\xff", 0) == 0x76293b50);
  CHECK(Murmur3("\x21\x43\x65\x87", 0) == 0xf55b516b);
  CHECK(Murmur3("\x21\x43\x65\x87", 0x5082edee) == 0x2362f9de);
  CHECK(Murmur3("\x21\x43\x65", 0) == 0x7e4a8634);
  CHECK(Murmur3("\x21\x43", 0) == 0xa0f7b07a);
  CHECK(Murmur3("\x21", 0) == 0x72661cf4);
  CHECK(Murmur3(std::string(4, '\0'), 0) == 0x2362f9de);
  CHECK(Murmur3("abc", 0x9747b28c) == 0xc84a62dd);
  CHECK(Murmur3("Hello, world!", 0x9747b28c) == 0x24884cba);
  CHECK(Murmur3("The quick brown fox jumps over the lazy dog", 0x9747b28c) == 0x2fa826cd);
}

TEST_CASE("vw: a row has a label, a weight, a tag and features of namespaces with weights") {
  const Line row = VwRow("1 2.5 tag|a:2 x y:3 12 foo:0 |b z:0.5 17 |a q");
  CHECK(row.label == "1");
  CHECK(row.weight == 2.5);
  CHECK(row.tag == "tag");
  CHECK(row.features ==
        Features{{55432, 2}, {42847, 6}, {92606, 2}, {124687, 0.5}, {163348, 1}, {200833, 1}});
}

TEST_CASE(
    "vw: the last word before the bar is a tag if nothing or a quote separates them; all may be left out") {
  const auto check = [](const char* text, const char* label, double weight, const char* tag) {
    CAPTURE(text);
    const Line row = VwRow(text);
    CHECK(row.label == label);
    CHECK(row.weight == weight);
    CHECK(row.tag == tag);
  };
  check("1 |a x", "1", 1, "");
  check("1|a x", "", 1, "1");
  check("1 'tag |a x", "1", 1, "tag");
  check("1 0.5 'tag |a x", "1", 0.5, "tag");
  check("  -1   |a x", "-1", 1, "");
  check("1 ' |a x", "1", 1, "");
  check("|a x", "", 1, "");
  check(" |a x", "", 1, "");
  CHECK(VwRow("1 |").features.empty());
  CHECK(VwRow("1 | ||a").features.empty());
}

TEST_CASE("vw: a feature's number is that of its digits, or of its name, text or place in the namespace") {
  const auto check = [](const std::string& text, const Features& features) {
    CAPTURE(text);
    CHECK(VwRow(text).features == features);
  };
  check("|12 3", {{15, 1}});
  check("|0 x", VwRow("| x").features);
  check("| 5 05", {{5, 1}, {5, 1}});
  check("| +5 -5", {{178844, 1}, {201131, 1}});
  check("| 18446744073709551615", {{262143, 1}});
  check(
      "| \x01"
      "5\x02 x\x03",
      {{5, 1}, {170779, 1}});
  // Without a name they are counted, with those of value 0.
  check("|12 :3 x:0 :0 :2", {{12, 3}, {14, 2}});
  // A text in place of a value is hashed behind its feature, and is 1.
  check("| a:b", {{144016, 1}});
  check("|n:2 a:b :b", {{19794, 1}, {233442, 1}});
  check("| a:-x c", {{228859, 1}, {185951, 1}});
  check("|n a:b|c d", {{130077, 1}, {190078, 1}});
  // data.hash_bits says how many low bits count.
  DataConfig data = Vw();
  data.hash_bits = 8;
  CHECK(RowOf("1 |a x", data).features == Features{{55432 % 256, 1}});
}

TEST_CASE("vw: values are the nearest float32, and those that are 0 are left out") {
  CHECK(VwRow("| a:0.1").features[0].second == 0.1f);
  CHECK(VwRow("| a:+3").features[0].second == 3);
  CHECK(VwRow("| a:0 b:-0 c:1e-60").features.empty());
  CHECK(VwRow("|a:0 x y").features.empty());
}

TEST_CASE("vw: crosses are pairs of features of two namespaces, each once") {
  const Features crossed = VwRow("1 |b z:2 |a x y:3 |a w", {"ba", "aa", "ab"}).features;
  const Features alone{{124687, 2}, {55432, 1}, {42847, 3}, {9575, 1}},
      a_with_a{{1680, 1}, {31047, 3}, {64383, 1}, {253394, 9}, {221162, 3}, {181314, 1}},
      a_with_b{{80151, 2}, {171394, 6}, {198186, 2}};
  Features expected = alone;
  expected.insert(expected.end(), a_with_a.begin(), a_with_a.end());
  expected.insert(expected.end(), a_with_b.begin(), a_with_b.end());
  CHECK(crossed == expected);
  CHECK(VwRow("1 |c z:2 |7 x y:3", {"c7"}).features ==
        Features{{243768, 2}, {13408, 1}, {132948, 3}, {209992, 2}, {67452, 6}});
  CHECK(VwRow("|c z:2 |7 x y:3", {"c7", "7c"}).features ==
        Features{{243768, 2}, {13408, 1}, {132948, 3}, {117528, 2}, {143620, 6}});
  CHECK(VwRow("|a x", {"ab"}).features == VwRow("|a x").features);
  CHECK(VwRow("| x |a y", {" a"}).features.size() == 3);
}

TEST_CASE("vw: the letter : in a cross is each namespace of the row, and each pair comes once") {
  const std::string line = "1 |b z:2 |a x";
  const Features alone = VwRow(line).features;
  Features all = alone;
  for (const auto& pair : Features{{1680, 1}, {80151, 2}, {220050, 4}}) all.push_back(pair);
  CHECK(VwRow(line, {"::"}).features == all);
  CHECK(VwRow(line, {"ab", "::", ":b", "a:"}).features == all);
  all.pop_back();
  CHECK(VwRow(line, {"a:"}).features == all);
  CHECK(VwRow(line, {"c:"}).features == alone);
  // Where :S and S both stand, the first in their order is taken.
  Features both = VwRow("1 |S s1 | n1", {"S:", ":S"}).features;
  std::sort(both.begin() + 2, both.end());
  CHECK(both == Features{{218612, 1}, {28755, 1}, {203496, 1}, {231261, 1}});
}

TEST_CASE("vw: a fault tells its byte in the line, the rule and a remedy") {
  const std::pair<const char*, const char*> faults[] = {
      {"1 x y", "5: a row must have a \"|\""},
      {"1 1 0.5 |a x",
       "4: before the first | must be at most a label, a weight and a tag. If a third number is the initial "
       "prediction, set data.offset to initial; else leave it out."},
      {"1 1 0.5 'tag |a x", "4: before the first |"},
      {"-1 2 3.5 tag|a x", "5: before the first |"},
      {"1 2 3 4 5 |a x", "8: before the first |"},
      {"1\t2 |a x", "1: label, weight and tag must be separated by blanks."},
      {"1 abc |a x", "2: the weight = abc; must be a number. Correct it, or remove the row."},
      {"1 -1 |a x", "2: the weight = -1; must be at least 0"},
      {"1 |a:x y", "5: the weight of a namespace = x; must be a number"},
      {"1 |a: y", "5: the weight of a namespace is empty; must be"},
      {"1 |:2 y", "3: a namespace with a weight must have a name"},
      {"1 |a y: z", "7: a colon must have a value behind it"},
      {"1 |a y:1x", "7: the value = 1x; must be a number"},
      {"1 |a y:0x10", "7: the value = 0x10; must be a number. Correct it, or remove the row."},
      {"1 |a y:1:2", "7: the value = 1:2; must be a number"},
      {"1 |a y:nan", "7: the value = nan; must be a finite number"},
      {"1 |a y:INFO", "7: the value = INFO; must be a number"},
      {"1 |a y:-", "7: the value = -; must be a number"},
      {"1 |a y:e5", "7: the value = e5; must be a number"},
      {"1 |a y:1e50", "7: the value = 1e50; must be a number within float32"},
      {"1 |a:1e30 y:1e30", "10: the value times the weight of its namespace"},
      {"1 |a y\rz", "6: behind a name or a value must be a blank or a |."},
      {"|a x:1e30 |b y:1e30", "0: the product of two values"}};
  for (const auto& [text, fault] : faults) {
    CAPTURE(text);
    CHECK(Begins(Parse(text, Vw({"ab"})).fault, fault));
  }
}

TEST_CASE("vw: with data.offset a number that touches the bar is not taken for a tag in silence") {
  DataConfig data = Vw();
  data.offset = "initial";
  CHECK(Parse("1 2 0.5|a x", data).fault ==
        "4: 0.5 touches the |, so it is a tag and no initial prediction (data.offset). Put a blank before "
        "the |, "
        "or of a tag a ' before it.");
  for (const char* text : {"1 2 '0.5|a x", "1 2 '0.5 |a x", "1 2 tag|a x", "1 2 0.5 7|a x", "1 7|a x"}) {
    CAPTURE(text);
    CHECK(Parse(text, data).is_row);
  }
}

TEST_CASE("vw: labels of jobs that dtrain has not are refused by their kind") {
  const std::pair<const char*, const char*> labels[] = {
      {"1:0.5:0.2 |f x", "0: 1:0.5:0.2 is a label of contextual bandits (ACTION:COST:PROBABILITY)"},
      {"3:0.5:0.2 1 2 |f x", "0: 3:0.5:0.2 is a label of contextual bandits"},
      {"1:2.5 2:0.5 3:1 |f x", "0: 1:2.5 is a label of costs (CLASS:COST)"},
      {"1:2.5 2:0.5 3:1 4:1 5:2 6:1 |f x", "0: 1:2.5 is a label of costs"},
      {"1 2:0.5 |f x", "2: 2:0.5 is a label of costs"},
      {"ca 185.1:0.6:0.2 |f x", "3: 185.1:0.6:0.2 is a label of contextual bandits"},
      {"shared |f x", "0: shared begins an example of contextual bandits, of several lines"},
      {"ccb action 0:1.0:0.5 |f x", "0: ccb begins an example"},
      {"slates shared 0.5 |f x", "0: slates begins an example"},
      {"1,3,7 |f x", "0: 1,3,7 are several labels"}};
  for (const auto& [line, fault] : labels) {
    CAPTURE(line);
    CHECK(Begins(Parse(line, Vw()).fault, fault));
    CHECK(Contains(Parse(line, Vw()).fault, "no model of dtrain learns"));
  }
  for (const char* name : {"spam |f x", "New,York |f x", "1 2 a:b|f x", "1 'a:b |f x", "sharedness |f x"}) {
    CAPTURE(name);
    CHECK(Parse(name, Vw()).fault == "");
  }
}

TEST_CASE("vw: a row without a label is no row where labels are wanted, and is counted") {
  int64_t unlabelled = 0;
  LineRules rules;
  rules.unlabelled = &unlabelled;
  SparseLine row;
  const auto parser = MakeLineParser(Vw(), rules);
  const char* const without[] = {"|a x", " | x", "'tag |a x", "1|a x", "tag|a x", "'1|a x", "  ' |a x"};
  for (const char* line : without) {
    CAPTURE(line);
    CHECK_FALSE(parser->HasRow(line));
    CHECK(Parse(parser.get(), line, &row).fault == "");
  }
  CHECK(unlabelled == std::size(without));
  for (const char* line : {"1 |a x", "1 'tag |a x", "1 2 tag|a x", "'a 'b |a x", "no bar", "1 tag|a x"}) {
    CAPTURE(line);
    CHECK(parser->HasRow(line));
  }
  CHECK(Parse(parser.get(), "1 'tag |a x", &row).label == "1");
  CHECK_FALSE(parser->HasRow("  "));
  CHECK(unlabelled == std::size(without));
}

TEST_CASE("vw: a number beyond model.inputs is a fault, also of a pair") {
  CHECK(Parse("|a x", Vw(), 55433).fault == "");
  CHECK(
      Parse("1 |a x", Vw(), 55432).fault ==
      "5: the feature's hash 55432 must be below model.inputs = 55432. Set model.inputs: 262144, or smaller "
      "data.hash_bits.");
  CHECK(Parse("1 |b z:2 |a x", Vw({"ab"}), 130000).fault == "");
  CHECK(Parse("1 |b t |a 5", Vw({"ab"}), 249070).fault == "");
}

TEST_CASE("vw: a line cannot ask for more features than a row may have") {
  std::string line = "1 |a";
  for (int i = 0; i < 2000; ++i) line += " " + std::to_string(i + 1);
  CHECK(Parse(line, Vw()).fault == "");
  CHECK(Begins(Parse(line, Vw({"aa"})).fault, "2: a row must have at most 1048576 features"));
}

TEST_CASE("vw: crosses that are not two letters are refused") {
  for (const char* cross : {"abc", ":", ""}) CHECK_THROWS_AS(Parse("", Vw({cross})), const UserError&);
}

// A line with these fields; those behind are empty, up to 40.
std::string LineOf(std::vector<std::string> fields, size_t count = 40) {
  fields.resize(count);
  std::string line = fields[0];
  for (size_t i = 1; i < count; ++i) line += "\t" + fields[i];
  return line;
}

uint64_t Number(const std::string& column, const std::string& text) {
  return HashedColumn(column, 40).NumberOf(text);
}

TEST_CASE("hashed columns: numbers are the low bits of XXH3-64 and differ by column") {
  CHECK(HashedColumn("", 64).NumberOf("") != HashedColumn("C1", 64).NumberOf(""));
  const HashedColumn whole("C1", 64);
  for (const int64_t bits : {1, 18, 63}) {
    CHECK(HashedColumn("C1", bits).NumberOf("68fd1e64") == (whole.NumberOf("68fd1e64") & LowBits(bits)));
  }
  CHECK(Number("C1", "a") != Number("C2", "a"));
  // By Python's xxhash.
  CHECK(whole.NumberOf("68fd1e64") == 13509463285594505790u);
}

TEST_CASE("criteo: a row has a label and one feature of each column, with value 1") {
  const Line row =
      RowOf(LineOf({"1", "1", "-1", "300", "", "", "", "", "", "", "", "", "", "", "68fd1e64"}), Criteo());
  CHECK(row.label == "1");
  CHECK(row.weight == 1);
  REQUIRE(row.features.size() == 39);
  std::set<uint64_t> ids;
  for (const auto& [id, value] : row.features) {
    CHECK(value == 1);
    ids.insert(id);
  }
  CHECK(ids.size() == 39);
  CHECK(row.features[0].first == Number("I1", "1"));
  CHECK(row.features[1].first == Number("I2", "-1"));
  CHECK(row.features[2].first == Number("I3", ">32"));
  CHECK(row.features[3].first == Number("I4", ""));
  CHECK(row.features[13].first == Number("C1", "68fd1e64"));
  CHECK(row.features[38].first == Number("C26", ""));
}

TEST_CASE(
    "criteo: numbers above 2 share the feature of their bucket, floor(log(x)^2), others have their own") {
  const std::pair<const char*, const char*> features[] = {
      {"3", ">1"},     {"4", ">1"},     {"5", ">2"},         {"1", "1"},
      {"2", "2"},      {"0", "0"},      {"-3", "-3"},        {"0003", ">1"},
      {"4095", ">69"}, {"4096", ">69"}, {"1000000", ">190"}, {"9223372036854775807", ">1906"}};
  for (const auto& [number, text] : features) {
    CAPTURE(number);
    CHECK(RowOf(LineOf({"1", "", number}), Criteo()).features[1].first == Number("I2", text));
  }
}

TEST_CASE("criteo: data.hash_bits says how many low bits of a number count, 18 if it is unset") {
  const Line whole = RowOf(LineOf({"0", "5"}), Criteo()),
             low = RowOf(LineOf({"0", "5"}), Criteo(std::nullopt));
  for (size_t i = 0; i < 39; ++i) CHECK(low.features[i].first == (whole.features[i].first & LowBits(18)));
}

TEST_CASE(
    "criteo: a line without its label field, where labels are not needed, or with an empty one has none") {
  const Line empty = RowOf(LineOf({"", "5"}), Criteo()),
             none = Parse(LineOf({"5"}, 39), Criteo(), std::nullopt, /*labels=*/false);
  CHECK(empty.label.empty());
  CHECK(none.is_row);
  CHECK(none.label.empty());
  CHECK(none.features == empty.features);
}

TEST_CASE("criteo: all rows of a file have a label or none has, so that no row that lost a tab is shifted") {
  const std::string labelled = LineOf({"1", "5"}), bare = LineOf({"5"}, 39);
  const std::string trimmed = labelled.substr(0, labelled.size() - 1);  // its last field is empty
  CHECK(
      Parse(trimmed, Criteo()).fault ==
      std::to_string(trimmed.size()) +
          ": a row has 39 fields; it must have 40: a label, 13 numbers and 26 categories, separated by tabs. "
          "If its last field is empty, its tab is lost: put it back, or remove the row.");
  LineRules rules;
  rules.labels = false;
  SparseLine row;
  const auto with = MakeLineParser(Criteo(), rules);
  CHECK(Parse(with.get(), labelled, &row).label == "1");
  CHECK(Contains(Parse(with.get(), trimmed, &row).fault,
                 "a row has 39 fields; it must have 40 as the first row"));
  CHECK(Parse(with.get(), labelled, &row).is_row);
  // Also where the first row has lost it, if a number stands where the first category would.
  std::vector<std::string> fields = {"1", "5", "7"};
  fields.resize(13);
  fields.insert(fields.end(), {"42", "0badcafe"});
  const std::string whole = LineOf(fields);
  const auto first = MakeLineParser(Criteo(), rules);
  CHECK(Contains(Parse(first.get(), whole.substr(0, whole.size() - 1), &row).fault,
                 "a row has 39 fields; it must have 40: a label"));
  CHECK(Parse(first.get(), whole, &row).is_row);
  const auto without = MakeLineParser(Criteo(), rules);
  CHECK(Parse(without.get(), bare, &row).is_row);
  CHECK(Begins(Parse(without.get(), labelled, &row).fault,
               "41: a row has 40 fields; it must have 39 as the first row: no label, 13 numbers"));
}

TEST_CASE("criteo: whole numbers are read in the spellings of other programs") {
  for (const char* five : {"5.0", "+5", "5e0", "5.", "0.5e1", "005"}) {
    CAPTURE(five);
    CHECK(RowOf(LineOf({"1", five}), Criteo()).features[0].first == Number("I1", ">2"));
  }
  CHECK(RowOf(LineOf({"1", "-2.0"}), Criteo()).features[0].first == Number("I1", "-2"));
  CHECK(RowOf(LineOf({"1", "5000.0"}), Criteo(10, true)).features[0].second == std::log1p(5000.0f));
}

TEST_CASE("criteo: a table with commas is named") {
  std::string commas = LineOf({"1", "5"});
  std::replace(commas.begin(), commas.end(), '\t', ',');
  for (const std::string& line : {commas, commas.substr(1), "label," + commas}) {
    CHECK(Contains(Parse(line, Criteo()).fault, "a row has 1 field; it must have 40"));
    CHECK(Contains(Parse(line, Criteo()).fault,
                   "data.train.format: csv, and name its columns of texts in data.hash"));
  }
}

TEST_CASE("criteo: the column of data.weight is a number of at least 0, and no feature") {
  DataConfig data = Criteo();
  for (const char* column : {"I2", "2", "C1", "14"}) {
    data.weight = column;
    const bool category = column == std::string("C1") || column == std::string("14");
    const std::string line = category
                                 ? LineOf({"1", "1", "2", "", "", "", "", "", "", "", "", "", "", "", "2.5"})
                                 : LineOf({"1", "1", "2.5"});
    const Line row = RowOf(line, data);
    CHECK(row.weight == 2.5);
    CHECK(row.features.size() == 38);
    CHECK(row.features[0].first == Number("I1", "1"));
    CHECK(row.features[1].first == (category ? Number("I2", "2") : Number("I3", "")));
  }
  data.weight = "I2";
  for (const char* text : {"-1", "", "x", "nan"}) {
    CHECK(Begins(Parse(LineOf({"1", "1", text}), data).fault, "4: the weight = "));
  }
}

TEST_CASE("criteo: a fault tells its byte in the line, the rule and a remedy") {
  const auto fault = [](const std::string& line, std::optional<int64_t> inputs = std::nullopt) {
    return Parse(line, Criteo(), inputs).fault;
  };
  CHECK(Begins(fault("1\t2\t3"),
               "5: a row has 3 fields; it must have 40: a label, 13 numbers and 26 categories"));
  CHECK(Begins(fault(LineOf({"1"}, 41)), "41: a row has more than 40 fields;"));
  CHECK(Begins(fault(LineOf({"1"}, 400)), "41: a row has more than 40 fields;"));
  CHECK(fault(LineOf({"1", "", "x"})) == "3: I2 = x; must be a whole number. Correct it, or remove the row.");
  for (const char* text : {"1.5", " 1", "nan", "1e30", "9223372036854775808", "-"}) {
    CHECK(Begins(fault(LineOf({"1", text})), "2: I1 = "));
    CHECK(Contains(fault(LineOf({"1", text})), "; must be a whole number"));
  }
  CHECK(Begins(fault(LineOf({"1", "5"}), 1), "2: the feature's hash "));
  CHECK(Parse(LineOf({"1", "x"}), Criteo(10, /*by_column=*/true)).fault ==
        "2: I1 = x; must be a whole number. Correct it, or remove the row.");
}

TEST_CASE("criteo: with columns apart a category has features of its column alone, and a number is itself") {
  DataConfig data = Criteo(10, /*by_column=*/true);
  const std::string line =
      LineOf({"1", "0", "-3", "5000", "", "7", "", "", "", "", "", "", "", "", "68fd1e64"});
  const Line row = RowOf(line, data);
  REQUIRE(row.features.size() == 39);
  for (uint64_t i = 0; i < 13; ++i) CHECK(row.features[i].first == (26 << 10) + i);
  for (uint64_t i = 0; i < 26; ++i) CHECK((row.features[13 + i].first >> 10) == i);
  CHECK((row.features[13].first & 1023) == (Number("C1", "68fd1e64") & 1023));
  const float values[] = {0, -std::log1p(3.0f), std::log1p(5000.0f), 0, std::log1p(7.0f)};  // I4 is missing
  for (size_t i = 0; i < std::size(values); ++i) CHECK(row.features[i].second == values[i]);
  CHECK(row.features[13].second == 1);
  data.numbers = NumberScale::kPlain;
  const Line plain = RowOf(line, data);
  for (size_t i = 0; i < 39; ++i) CHECK(plain.features[i].first == row.features[i].first);
  CHECK(plain.features[1].second == -3);
  CHECK(plain.features[2].second == 5000);
  // Keys of a hash table have their column in the first bits.
  data = Criteo(std::nullopt, /*by_column=*/true);
  data.whole_keys = true;
  const Line keys = RowOf(line, data);
  REQUIRE(*HashBits(data) == 58);
  for (uint64_t i = 0; i < 13; ++i) CHECK(keys.features[i].first == (uint64_t{26} << 58) + i);
  for (uint64_t i = 0; i < 26; ++i) CHECK((keys.features[13 + i].first >> 58) == i);
  CHECK(keys.features[13].first == (13509463285594505790u & LowBits(58)));
}

// The names of a line's features, in their order. Names change neither features nor values.
std::vector<std::string> NamesOf(std::string_view text, const DataConfig& data, const NameWish& wish) {
  LineRules rules;
  SparseLine row;
  const auto plain = MakeLineParser(data, rules);
  rules.names = &wish;
  const auto named = MakeLineParser(data, rules);
  CHECK(Parse(named.get(), text, &row).features == Parse(plain.get(), text, &row).features);
  const Line line = Parse(named.get(), text, &row);
  CHECK(line.fault == "");
  std::vector<std::string> names;
  for (const NamedFeature& feature : row.names) {
    names.push_back(feature.name);
    if (wish.all) CHECK(feature.id == line.features[names.size() - 1].first);
  }
  return names;
}

TEST_CASE("vw: features have the names that they were hashed from, and pairs those of both") {
  const NameWish all{true, {}};
  CHECK(NamesOf("1 |a x:2 7 zero:0 |b:0.5 red:3 color:blue :0.5 :2 | plain", Vw(), all) ==
        std::vector<std::string>{"a^x", "a^7", "b^red", "b^color^blue", "b^[0]", "b^[1]", "plain"});
  CHECK(NamesOf("1 |a x 7:2 |b y", Vw({"ab"}), all) ==
        std::vector<std::string>{"a^x", "a^7", "b^y", "a^x*b^y", "a^7*b^y"});
  const auto parser = MakeLineParser(Vw({"ab"}), {});
  SparseLine row;
  const Features features = Parse(parser.get(), "1 |a x 7:2 |b y", &row).features;
  const NameWish some{false, {features[1].first, features[3].first}};
  CHECK(NamesOf("1 |a x 7:2 |b y", Vw({"ab"}), some) == std::vector<std::string>{"a^7", "a^x*b^y"});
}

TEST_CASE("criteo: features have the names of their columns and texts, numbers those of their buckets") {
  const NameWish all{true, {}};
  std::vector<std::string> fields = {"1", "1", "", "80"};
  fields.resize(14);
  fields.emplace_back("0badcafe");
  const std::vector<std::string> names = NamesOf(LineOf(fields), Criteo(), all);
  REQUIRE(names.size() == 39);
  CHECK(names[0] == "I1=1");
  CHECK(names[1] == "I2=missing");
  CHECK(names[2] == "I3=>19");
  CHECK(names[13] == "C1=0badcafe");
  CHECK(names[38] == "C26=missing");
}

}  // namespace
}  // namespace dtrain
