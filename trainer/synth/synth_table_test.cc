#include "trainer/synth/synth_table.h"

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
  if (name == "libsvm") return NewSparseTable(seed, SparseForm::kLibsvm, 7, 1000);
  if (name == "vw") return NewSparseTable(seed, SparseForm::kVw, 7, 1000);
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
  for (const char* name : {"linear", "digits", "criteo", "libsvm", "vw"}) {
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

TEST_CASE(
    "synth: sparse rows have their features in order, none twice, all within the width, the first often") {
  std::map<int64_t, double> counts;
  for (const auto& row : Table(Rows("libsvm", 1, 0, 20000), ' ')) {
    REQUIRE(row.size() == 8);
    CHECK((row[0] == "1" || row[0] == "-1"));
    int64_t last = 0;
    for (size_t i = 1; i < row.size(); ++i) {
      const auto parts = Split(row[i], ':');
      REQUIRE(parts.size() == 2);
      const int64_t index = std::atoll(parts[0].c_str());
      if (index <= last || index > 1000) CHECK(index > last);
      const double value = std::atof(parts[1].c_str());
      if (value < 0.125 || value > 1) CHECK(value == 1);
      last = index;
      counts[index] += 1;
    }
  }
  double harmonic = 0;
  for (int k = 1; k <= 1000 / 7; ++k) harmonic += 1.0 / k;
  for (const int k : {1, 2, 3, 8, 100}) {  // of the first of seven features
    CAPTURE(k);
    const double expected = 20000 / harmonic / k;
    CHECK(std::abs(counts[1 + 7 * (k - 1)] - expected) < 4.5 * std::sqrt(expected));
  }
}

TEST_CASE("synth: libsvm and vw are the same rows, with features from 1 and from 0") {
  const auto svm = Table(Rows("libsvm", 2, 0, 100), ' '), vw = Table(Rows("vw", 2, 0, 100), ' ');
  for (size_t row = 0; row < 100; ++row) {
    REQUIRE(vw[row].size() == svm[row].size() + 1);
    CHECK(vw[row][0] == svm[row][0]);
    CHECK(vw[row][1] == "|");
    for (size_t i = 1; i < svm[row].size(); ++i) {
      const auto a = Split(svm[row][i], ':'), b = Split(vw[row][i + 1], ':');
      CHECK(std::atoll(a[0].c_str()) == std::atoll(b[0].c_str()) + 1);
      CHECK(a[1] == (b.size() == 1 ? "1" : b[1]));
    }
  }
}

TEST_CASE("synth: sparse rows may be of a table wider than 2^32") {
  const auto table = NewSparseTable(1, SparseForm::kVw, 2, int64_t{1} << 36);
  table->KeepTruth();
  std::string text;
  table->Append(0, 20000, &text);
  int64_t large = 0;
  for (const auto& row : Table(text, ' ')) {
    for (size_t i = 2; i < row.size(); ++i) large += std::atoll(row[i].c_str()) >> 32 > 0 ? 1 : 0;
  }
  // The upper four of 36 powers of two: a ninth of the draws.
  CHECK(static_cast<double>(large) / 40000 == doctest::Approx(4.0 / 36).epsilon(0.1));
  CHECK(table->Truth().find("20000 rows") == 0);
}

}  // namespace
}  // namespace dtrain
