// Lines of Vowpal Wabbit's format beside Vowpal Wabbit's own parser (PyPI's vowpalwabbit).
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/testing/files.h"
#include "cmd/testing/job.h"
#include "cmd/testing/process.h"
#include "cmd/testing/python.h"
#include "trainer/config/data_config.h"
#include "trainer/rows/vw_line.h"

namespace dtrain::testing {
namespace {

constexpr int kLines = 3000;

// Lines of all that the format has and that Vowpal Wabbit reads without a warning.
class LineMaker {
 public:
  explicit LineMaker(uint64_t seed) : random_(seed) {}

  std::string Line() {
    std::string line = Head();
    const int64_t spaces = Below(5);
    for (int64_t i = 0; i < spaces; ++i) line += Namespace();
    return line + (spaces == 0 ? "|" : "") + "\n";
  }

 private:
  int64_t Below(int64_t end) {
    return static_cast<int64_t>(random_.Below(count_++, static_cast<uint64_t>(end)));
  }
  template <typename... Texts>
  std::string One(Texts... texts) {
    const std::string all[] = {texts...};
    return all[Below(static_cast<int64_t>(sizeof...(texts)))];
  }

  std::string Head() {
    const std::string label = One("1", "-1", "0", "0.25", "");
    const std::string weight = label.empty() ? "" : One("", "", " 2", " 0.5", " 0");
    const std::string blank = label.empty() ? "" : " ";
    return label + weight + One(blank, blank, blank + "'", blank + "'tag ", blank + "'a:b", blank + "row_17");
  }

  std::string Name() {
    switch (Below(8)) {
      case 0:
        return fmt::format("{}", Below(1000));
      case 1:
        return fmt::format("0{}", Below(1000));
      case 2:
        return fmt::format("{}{:09}{:09}", Below(1000), Below(1000000000), Below(1000000000));
      case 3:
        return One("+5", "-5", "1e3", "0x1f", "x=y", "^a", "\"q\"", "'", "é", "数据", "1.5");
      default:
        std::string name;
        for (int64_t left = 1 + Below(Below(4) == 0 ? 40 : 8); left > 0; --left) {
          name += static_cast<char>('a' + Below(26));
        }
        return name;
    }
  }

  std::string Number() {
    switch (Below(6)) {
      case 0:
        return fmt::format("{}", Below(20));
      case 1:
        return One("0", "-0", "0.0", "1", "+2", ".5", "-.25", "3.", "1e3", "1E-3", "-2.5e-2");
      case 2:
        return fmt::format("-{}.{}", Below(100), Below(1000));
      case 3:
        return fmt::format("0.{:09}", Below(1000000000));
      case 4:
        return fmt::format("{}e{}", Below(1000), Below(20) - 10);
      default:
        return fmt::format("{}.{}", Below(100000), Below(100000));
    }
  }

  std::string Feature() {
    switch (Below(8)) {
      case 0:
        return ":" + Number();
      case 1:
        return Name() + ":" + One("red", "b|c", "-x", "a:b:c", "é");
      case 2:
      case 3:
      case 4:
        return Name() + ":" + Number();
      default:
        return Name();
    }
  }

  std::string Namespace() {
    static const char* const kNames[] = {"", "a", "b", "apple", "beta", "c", "7", "é", "12"};
    std::string text = std::string("|") + kNames[Below(9)];
    if (text.size() > 1 && Below(4) == 0) text += ":" + One("2", "0.5", "0.1", "-1.5", "0");
    for (int64_t left = Below(10); left > 0; --left) text += One(" ", " ", "  ", "\t") + Feature();
    return text + One("", " ");
  }

  const CounterRandom random_;
  uint64_t count_ = 0;
};

using Features = std::vector<std::pair<uint64_t, double>>;

struct Read {
  std::string head;
  Features features;  // in the order of their numbers
};

// Of a line that vw_features.py printed. Its values are as they are written.
Read OfVw(const std::string& line) {
  Read read;
  const size_t end = line.rfind(']');
  read.head = line.substr(0, end == line.npos ? 0 : end + 1);
  std::istringstream rest(line.substr(read.head.size()));
  for (std::string item; rest >> item;) {
    const size_t colon = item.find(':');
    read.features.emplace_back(std::strtoull(item.c_str(), nullptr, 10),
                               std::strtod(item.c_str() + colon + 1, nullptr));
  }
  std::sort(read.features.begin(), read.features.end());
  return read;
}

Read Ours(LineParser* parser, const std::string& line) {
  SparseLine row;
  std::optional<LineFault> fault;
  CHECK(parser->Parse(line, &row, &fault));
  CHECK_MESSAGE(!fault, line, fault ? fault->rule : "");
  const double number = std::strtod(std::string(row.label).c_str(), nullptr);
  const std::string label = row.label.empty() ? "none" : fmt::format("{:g}", number);
  Read read;
  read.head = fmt::format("[{}] [{:g}] [{}]", label, row.weight, row.tag);
  for (size_t i = 0; i < row.ids.size(); ++i) read.features.emplace_back(row.ids[i], row.values[i]);
  std::sort(read.features.begin(), read.features.end());
  return read;
}

// Runs `mode` of vw_features.py, and compares each line. Values differ by at most `tolerance` of themselves.
void Compare(const std::string& mode, const DataConfig& data, double tolerance) {
  std::vector<std::string> lines;
  std::string content;
  LineMaker maker(static_cast<uint64_t>(*HashBits(data)));
  for (int i = 0; i < kLines; ++i) {
    lines.push_back(maker.Line());
    content += lines.back();
    lines.back().pop_back();
  }
  const std::string path = NewDirectory() + "/lines.vw";
  WriteFile(path, content);
  std::istringstream printed(
      OutputOf(fmt::format("{} cmd/test/testdata/vw_features.py {} {} {} {}", Python(), mode, path,
                           *HashBits(data), fmt::join(data.crosses, " "))));
  const std::unique_ptr<LineParser> parser = MakeVwParser(data, {});
  int64_t features = 0;
  for (const std::string& line : lines) {
    std::string theirs;
    REQUIRE(std::getline(printed, theirs));
    const Read vw = OfVw(theirs), ours = Ours(parser.get(), line);
    CAPTURE(line);
    CAPTURE(theirs);
    if (!vw.head.empty()) CHECK(ours.head == vw.head);
    REQUIRE(ours.features.size() == vw.features.size());
    for (size_t i = 0; i < ours.features.size(); ++i) {
      CHECK(ours.features[i].first == vw.features[i].first);
      const double value = ours.features[i].second;
      if (std::abs(value - vw.features[i].second) > tolerance * std::abs(value)) {
        CHECK(value == vw.features[i].second);
      }
    }
    features += static_cast<int64_t>(ours.features.size());
  }
  CHECK(features > 4 * kLines);
}

TEST_CASE("vw: labels, weights, tags and features of 3,000 lines are those that Vowpal Wabbit finds") {
  if (Python().empty()) return;
  // Its own reading of a number multiplies by rounded powers of ten in float32.
  constexpr double kSteps = 4e-7;
  for (const int64_t bits : {18, 24}) {
    DataConfig data;
    data.train.format = DataFormat::kVw;
    data.hash_bits = bits;
    Compare("features", data, kSteps);
  }
}

TEST_CASE("vw: pairs of features of 3,000 lines are those that Vowpal Wabbit makes with -q") {
  if (Python().empty()) return;
  constexpr double kSixDigits = 6e-6;
  DataConfig data;
  data.train.format = DataFormat::kVw;
  data.hash_bits = 20;
  for (const std::vector<std::string>& crosses :
       std::vector<std::vector<std::string>>{{"ba", "ab", "aa", "c7", "bc", "1a"},
                                             {"::"},
                                             {"b:"},
                                             {":b"},
                                             {"ba", "71", "b:", ":7", "::"},
                                             {":a", "ab"}}) {
    data.crosses = crosses;
    Compare("crosses", data, kSixDigits);
  }
}

}  // namespace
}  // namespace dtrain::testing
