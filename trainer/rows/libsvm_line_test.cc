#include "trainer/rows/libsvm_line.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "trainer/rows/sparse_file.h"

namespace dtrain {
namespace {

using Features = std::vector<std::pair<uint64_t, float>>;

DataConfig Libsvm(int64_t base = 1) {
  DataConfig data;
  data.train.format = DataFormat::kLibsvm;
  data.index_base = base;
  return data;
}

Features FeaturesOf(const SparseLine& row) {
  REQUIRE(row.ids.size() == row.values.size());
  Features features;
  for (size_t i = 0; i < row.ids.size(); ++i) features.emplace_back(row.ids[i], row.values[i]);
  return features;
}

struct Parsed {
  bool is_row = false;
  std::string label;
  Features features;
};

Parsed Parse(const std::string& line, const DataConfig& data = Libsvm()) {
  SparseLine row;
  std::optional<LineFault> fault;
  const bool is_row = MakeLineParser(data, std::nullopt)->Parse(line, &row, &fault);
  CHECK_FALSE(fault.has_value());
  if (!is_row) return {};
  return {true, std::string(row.label), FeaturesOf(row)};
}

struct Fault {
  size_t at = 0;
  std::string rule;
};

Fault FaultOf(const std::string& line, const DataConfig& data = Libsvm(),
              std::optional<int64_t> inputs = std::nullopt) {
  SparseLine row;
  std::optional<LineFault> fault;
  CHECK_FALSE(MakeLineParser(data, inputs)->Parse(line, &row, &fault));
  REQUIRE(fault.has_value());
  return {fault->at, fault->rule};
}

TEST_CASE("libsvm: a row is its label and its features, which count from 1") {
  const Parsed row = Parse("+1 1:0.5 3:-2e3 7:1");
  CHECK(row.is_row);
  CHECK(row.label == "+1");
  CHECK(row.features == Features{{0, 0.5f}, {2, -2000.0f}, {6, 1.0f}});
}

TEST_CASE("libsvm: with data.index_base 0 features count from 0") {
  CHECK(Parse("1 0:2 3:1", Libsvm(0)).features == Features{{0, 2.0f}, {3, 1.0f}});
}

TEST_CASE("libsvm: features stand in the order of the line, and one may come twice") {
  CHECK(Parse("0 5:1 2:3 5:4").features == Features{{4, 1.0f}, {1, 3.0f}, {4, 4.0f}});
}

TEST_CASE("libsvm: blanks, tabs and comments are left out, and a row may have no features") {
  CHECK(Parse(" \t2\t 1:1  2:2 \t# 3:3").features == Features{{0, 1.0f}, {1, 2.0f}});
  CHECK(Parse("-1").is_row);
  CHECK(Parse("-1# a comment").label == "-1");
  CHECK(Parse("1 4:.5#no blank").features == Features{{3, 0.5f}});
}

TEST_CASE("libsvm: empty lines and comments are no rows") {
  for (const char* line : {"", "  ", "\t", "# all of it", "   # 1 2:3"}) CHECK_FALSE(Parse(line).is_row);
}

TEST_CASE("libsvm: the group of a row is left out") {
  CHECK(Parse("3 qid:17 1:2").features == Features{{0, 2.0f}});
  CHECK(Parse("3 qid:17").is_row);
}

TEST_CASE("libsvm: a feature that is not INDEX:VALUE is told with its byte") {
  for (const auto& [line, at] : std::vector<std::pair<std::string, size_t>>{{"1 2", 2},
                                                                            {"1 1:1 x:3", 6},
                                                                            {"1 -3:1", 2},
                                                                            {"1  3", 3},
                                                                            {"1 1.5:2", 2},
                                                                            {"1 1:1 qid:2", 6},
                                                                            {"1 3 :4", 2},
                                                                            {"1 :4", 2},
                                                                            {"1 3: 4", 4}}) {
    CAPTURE(line);
    CHECK(FaultOf(line).at == at);
  }
  CHECK(FaultOf("1 1:1 x:3").rule ==
        "x:3 must be INDEX:VALUE, where INDEX is a whole number from 1 on. Correct it, or remove the row.");
}

TEST_CASE("libsvm: a row without its label is told") {
  CHECK(FaultOf("1:2 3:4").rule ==
        "1:2 stands where the label must; a row is LABEL INDEX:VALUE INDEX:VALUE. Correct it, or remove the "
        "row.");
}

TEST_CASE("libsvm: a table with commas is not taken for labels") {
  CHECK(
      FaultOf("1,2,3").rule ==
      "1,2,3 is no label: a row has one. For a table with commas set data.train.format: csv. Correct it, or "
      "remove the row.");
}

TEST_CASE("libsvm: index 0 names the key for files that count from 0") {
  const Fault fault = FaultOf("1 0:1");
  CHECK(fault.at == 2);
  CHECK(fault.rule ==
        "feature 0; indexes begin at 1. If those of this file begin at 0, set data.index_base: 0.");
}

TEST_CASE("libsvm: an index beyond the features is told, and no index is too long") {
  const Fault fault = FaultOf("1 3:1 4:1", Libsvm(), 3);
  CHECK(fault.at == 6);
  CHECK(
      fault.rule ==
      "feature 4; must be 1 to 3 (model.inputs = 3; where it is not set, the features of data.train). Raise "
      "model.inputs, or remove the row.");
  CHECK(FaultOf("1 3:1", Libsvm(0), 3).rule.find("feature 3; must be 0 to 2") == 0);
  CHECK(Parse("1 999999999999:1").features == Features{{999999999998, 1.0f}});
  CHECK(FaultOf("1 18446744073709551617:1").rule.find("feature 18446744073709551617; must be below") == 0);
}

TEST_CASE("libsvm: a value that is no finite number is told with its byte") {
  for (const char* value : {"nan", "inf", "-Infinity", "x", "", "1e99", "1,5", "0x10", "1:2"}) {
    CAPTURE(value);
    const Fault fault = FaultOf(std::string("1 2:3 11:") + value);
    CHECK(fault.at == 9);
    CHECK(fault.rule.find("the value of feature 11 ") == 0);
  }
  CHECK(FaultOf("1 2:inf").rule ==
        "the value of feature 2 = inf; must be a finite number. Correct it, or remove the row.");
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
  const auto parser = MakeLineParser(Libsvm(), std::nullopt);
  SparseLine row;
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
    std::optional<LineFault> fault;
    std::string label;
    const Features expected = SimplyRead(line, &label);
    REQUIRE(parser->Parse(line, &row, &fault));
    REQUIRE(row.label == label);
    REQUIRE(FeaturesOf(row) == expected);
  }
}

TEST_CASE("libsvm line: where labels are not needed a row may begin with its features") {
  const auto parser = MakeLineParser(Libsvm(), 9, /*labels=*/false);
  SparseLine row;
  std::optional<LineFault> fault;
  for (const auto& [line, label] :
       std::vector<std::pair<std::string, std::string>>{{"3:1 5:2", ""},
                                                        {"  qid:7 3:1 5:2 # x", ""},
                                                        {"-4 3:1 5:2", "-4"},
                                                        {"none qid:1 3:1 5:2", "none"}}) {
    CAPTURE(line);
    CHECK(parser->Parse(line, &row, &fault));
    CHECK(row.label == label);
    CHECK(FeaturesOf(row) == Features{{2, 1}, {4, 2}});
  }
  CHECK_FALSE(parser->Parse("3:x", &row, &fault));
  REQUIRE(fault.has_value());
  CHECK(fault->at == 2);
}

}  // namespace
}  // namespace dtrain
