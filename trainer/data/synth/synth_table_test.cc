#include "trainer/data/synth/synth_table.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <vector>

namespace dtrain {
namespace {

std::unique_ptr<SynthTable> NewTable(const std::string& name, uint64_t seed) {
  if (name == "linear") return NewLinearTable(seed, 3);
  if (name == "digits") return NewDigitsTable(seed);
  return NewCriteoTable(seed, false);
}

std::string Rows(const std::string& name, uint64_t seed, int64_t begin, int64_t end) {
  std::string text;
  NewTable(name, seed)->Append(begin, end, &text);
  return text;
}

std::vector<std::string> Split(const std::string& text, char delimiter) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == delimiter) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// The fields of each row.
std::vector<std::vector<std::string>> Table(const std::string& text, char delimiter) {
  std::vector<std::vector<std::string>> rows;
  for (const std::string& line : Split(text, '\n')) {
    if (!line.empty()) rows.push_back(Split(line, delimiter));
  }
  return rows;
}

TEST_CASE("synth: any range of rows is made again, alone or in pieces") {
  for (const char* name : {"linear", "digits", "criteo"}) {
    CAPTURE(name);
    const std::string all = Rows(name, 7, 0, 40);
    CHECK(Rows(name, 7, 0, 13) + Rows(name, 7, 13, 40) == all);
    std::string pieces;
    const auto table = NewTable(name, 7);
    for (const int64_t begin : {0, 10, 20, 30}) table->Append(begin, begin + 10, &pieces);
    CHECK(pieces == all);
    CHECK(Rows(name, 8, 0, 40) != all);
  }
}

TEST_CASE("synth: digits across the blocks that they are drawn in are those of each block") {
  const std::string across = Rows("digits", 1, 9998, 10002);
  CHECK(across == Rows("digits", 1, 9998, 10000) + Rows("digits", 1, 10000, 10002));
  for (const auto& row : Table(across, ',')) CHECK(row.size() == 785);
}

TEST_CASE("synth: linear rows are on their plane but for the noise") {
  double squares = 0;
  const auto rows = Table(Rows("linear", 1, 0, 2000), ',');
  for (const auto& row : rows) {
    REQUIRE(row.size() == 4);
    double y = 10;
    for (size_t i = 0; i < 3; ++i) y += 2 * std::atof(row[i].c_str());
    squares += (std::atof(row[3].c_str()) - y) * (std::atof(row[3].c_str()) - y);
  }
  CHECK(std::sqrt(squares / static_cast<double>(rows.size())) == doctest::Approx(0.33).epsilon(0.1));
}

TEST_CASE("synth: criteo has 40 fields, gaps as often as they should be, and labels of both kinds") {
  const auto rows = Table(Rows("criteo", 1, 0, 20000), '\t');
  double ones = 0, gaps = 0;
  for (const auto& row : rows) {
    REQUIRE(row.size() == 40);
    ones += row[0] == "1" ? 1 : 0;
    gaps += row[1].empty() ? 1 : 0;
    CHECK(row[14].size() == 8);  // C1, which is never missing
  }
  CHECK(ones / 20000 == doctest::Approx(0.25).epsilon(0.3));
  CHECK(gaps / 20000 == doctest::Approx(0.454).epsilon(0.05));
}

TEST_CASE(
    "synth: the values of criteo follow Zipf's law: the k-th is there 1/k times as often as the first") {
  std::map<std::string, double> counts;
  const auto rows = Table(Rows("criteo", 3, 0, 60000), '\t');
  for (const auto& row : rows) counts[row[2]] += 1;  // I2 is never missing and has 16000 values: 0, 1, ...
  double harmonic = 0;
  for (int k = 1; k <= 16000; ++k) harmonic += 1.0 / k;
  for (const int k : {1, 2, 3, 5, 7, 8, 12, 40}) {
    CAPTURE(k);
    const double expected = 60000 / harmonic / k;
    CHECK(std::abs(counts[fmt::format("{}", k - 1)] - expected) < 4.5 * std::sqrt(expected));
  }
}

TEST_CASE("synth: the truth of criteo is what its labels were drawn from") {
  const auto table = NewCriteoTable(1, true);
  CHECK(table->Truth().empty());
  table->KeepTruth();
  std::string text;
  table->Append(0, 50000, &text);
  const std::string truth = table->Truth();
  CAPTURE(truth);
  CHECK(truth.find("50000 rows") == 0);
  const double area = std::atof(truth.substr(truth.rfind(' ')).c_str());
  CHECK(area > 0.7);
  CHECK(area < 0.85);
  CHECK(table->Header().find("label,I1,") == 0);
  CHECK(Table(table->Header(), ',')[0].size() == 40);
}

}  // namespace
}  // namespace dtrain
