// Files of libsvm's format beside scikit-learn's load_svmlight_file.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/testing/files.h"
#include "cmd/testing/job.h"
#include "cmd/testing/python.h"
#include "trainer/config/config.h"
#include "trainer/sets/load_data.h"
#include "trainer/survey/data_shape.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

constexpr int kFiles = 1000;

// Files of all that the format has. Indexes ascend, because scikit-learn takes no others.
class FileMaker {
 public:
  explicit FileMaker(uint64_t seed) : random_(seed) {}

  std::string File(int64_t base) {
    const std::string end = Below(4) == 0 ? "\r\n" : "\n";
    std::string content = Below(5) == 0 ? "# made by a test" + end : "";
    const int64_t rows = 1 + Below(20);
    for (int64_t row = 0; row < rows; ++row) {
      if (Below(12) == 0) content += One("", "  ", "# 1 2:3", " \t") + end;
      content += Row(base) + (row + 1 < rows || Below(2) == 0 ? end : "");
    }
    return content;
  }

 private:
  int64_t Below(int64_t limit) {
    return static_cast<int64_t>(random_.Below(count_++, static_cast<uint64_t>(limit)));
  }
  template <typename... Texts>
  std::string One(Texts... texts) {
    const std::string all[] = {texts...};
    return all[Below(static_cast<int64_t>(sizeof...(texts)))];
  }

  std::string Number() {
    switch (Below(5)) {
      case 0:
        return fmt::format("{}", Below(3));
      case 1:
        return One("1", "-1", "+2", ".5", "-.25", "3.", "1e3", "1E-3", "-2.5e-2", "0", "-0.0", "1e-30");
      case 2:
        return fmt::format("{:.9g}", std::ldexp(static_cast<double>(Below(1 << 24)), Below(60) - 40));
      default:
        return fmt::format("{}{}.{:03}", One("", "-"), Below(1000), Below(1000));
    }
  }

  std::string Row(int64_t base) {
    std::string row = One("1", "-1", "+1", "0", "2.5", "-3e2");
    if (Below(8) == 0) row += fmt::format(" qid:{}", Below(9));
    int64_t index = base;
    for (int64_t left = 1 + Below(12); left > 0; --left) {
      index += Below(left % 3 == 0 ? 1000 : 4);
      row += fmt::format("{}{}:{}", One(" ", " ", "  ", "\t"), index++, Number());
    }
    return row + One("", "", "", " ", "\t", " # a comment", "# 7:7");
  }

  const CounterRandom random_;
  uint64_t count_ = 0;
};

// What of a file's rows svmlight_rows.py prints.
std::string Ours(const std::string& path, int64_t base) {
  Config config;
  config.model.kind = ModelKind::kLinear;
  config.data.train.format = DataFormat::kLibsvm;
  config.data.train.path = {path};
  config.data.index_base = base;
  config.model.inputs = PeekShape(config).inputs;
  const LoadedData data = LoadData(config);
  std::vector<int64_t> rows(static_cast<size_t>(*data.train->rows()));
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<float> targets(rows.size());
  SparseBuffer features;
  data.train->Read(rows, {nullptr, &features, nullptr, targets.data()});
  std::string text = fmt::format("file {} {}\n", data.train->inputs(), rows.size());
  for (size_t row = 0; row < rows.size(); ++row) {
    text += fmt::format("{} ", targets[row]);
    for (auto i = static_cast<size_t>(features.offsets[row]);
         i < static_cast<size_t>(features.offsets[row + 1]); ++i) {
      text += fmt::format("{}:{} ", features.ids[i], features.values.empty() ? 1 : features.values[i]);
    }
    text += "\n";
  }
  return text;
}

// The numbers of a line as ours are written.
std::string Theirs(const std::string& line) {
  std::istringstream words(line);
  std::string text;
  for (std::string word; words >> word;) {
    const size_t colon = word.find(':');
    const char* const number = word.c_str() + (colon == word.npos ? 0 : colon + 1);
    text += (colon == word.npos ? "" : word.substr(0, colon + 1)) +
            fmt::format("{} ", static_cast<float>(std::strtod(number, nullptr)));
  }
  return text + "\n";
}

TEST_CASE("libsvm: 1,000 random files have the labels and features that scikit-learn finds in them") {
  if (Python().empty()) return;
  const std::string directory = NewDirectory();
  FileMaker maker(20261125);
  std::vector<std::string> paths;
  for (int i = 0; i < kFiles; ++i) {
    const int64_t base = i % 4 == 0 ? 0 : 1;
    paths.push_back(fmt::format("{}/{}{}.txt", directory, i, base == 0 ? "zero" : ""));
    WriteFile(paths.back(), maker.File(base));
  }
  std::istringstream printed(
      OutputOf(fmt::format("cd {} && {} {}/cmd/test/testdata/svmlight_rows.py $(ls -v *.txt)", directory,
                           Python(), fs::current_path().string())));
  for (int i = 0; i < kFiles; ++i) {
    CAPTURE(FileContent(paths[static_cast<size_t>(i)]));
    std::string theirs, line;
    REQUIRE(std::getline(printed, line));
    theirs = line + "\n";
    int64_t rows = 0;
    REQUIRE(std::sscanf(line.c_str(), "file %*d %ld", &rows) == 1);
    for (; rows > 0; --rows) {
      REQUIRE(std::getline(printed, line));
      theirs += Theirs(line);
    }
    CHECK(Ours(paths[static_cast<size_t>(i)], i % 4 == 0 ? 0 : 1) == theirs);
  }
}

}  // namespace
}  // namespace dtrain::testing
