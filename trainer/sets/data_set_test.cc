#include <doctest/doctest.h>
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "trainer/rows/idx.h"
#include "trainer/sets/data_set.h"
#include "trainer/sets/generators.h"
#include "trainer/sets/memory_rows.h"
#include "trainer/sets/sets_test_util.h"

namespace dtrain {
namespace {

Rows Read(const DataSet& set, int64_t first, int64_t count) {
  std::vector<int64_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), first);
  return RowsOf(set, rows);
}

TEST_CASE("synthetic linear: a row is the same alone and among others, near and far") {
  const DataSet set = LinearRows(1, "train", 3, std::nullopt);
  const Rows together = Read(set, 1000000000000, 5);
  for (int64_t i = 0; i < 5; ++i) {
    const Rows alone = Read(set, 1000000000000 + i, 1);
    CHECK(alone.targets[0] == together.targets[i]);
    for (int64_t j = 0; j < 3; ++j) CHECK(alone.features[j] == together.features[i * 3 + j]);
  }
}

TEST_CASE("synthetic linear: seeds and parts give different rows") {
  const Rows base = Read(LinearRows(1, "train", 1, std::nullopt), 0, 10);
  CHECK(Read(LinearRows(2, "train", 1, std::nullopt), 0, 10).features != base.features);
  CHECK(Read(LinearRows(1, "test", 1, std::nullopt), 0, 10).features != base.features);
}

TEST_CASE("synthetic linear: inputs are standard normal and targets follow the line") {
  constexpr int64_t kRows = 100000;
  for (const int64_t inputs : {1, 2}) {
    const Rows rows = Read(LinearRows(1, "train", inputs, std::nullopt), 0, kRows);
    double sum = 0, square = 0, noise = 0, noise_square = 0, cross = 0;
    for (int64_t i = 0; i < kRows; ++i) {
      double x = 0;
      for (int64_t j = 0; j < inputs; ++j) x += rows.features[i * inputs + j];
      const double error = rows.targets[i] - (2 * x + 10);
      sum += x;
      square += x * x;
      noise += error;
      noise_square += error * error;
      cross += error * x;
    }
    // Four standard deviations of each mean: 4 / sqrt(100000) = 0.013 times the value's own deviation.
    CHECK(std::abs(sum / kRows) < 0.013 * std::sqrt(inputs));
    CHECK(std::abs(square / kRows - inputs) < 0.013 * std::sqrt(2.0) * inputs);
    CHECK(std::abs(noise / kRows) < 0.013 * 0.33);
    CHECK(std::abs(std::sqrt(noise_square / kRows) - 0.33) < 0.013 * 0.33);
    CHECK(std::abs(cross / kRows) < 0.013 * 0.33 * std::sqrt(inputs));
  }
}

TEST_CASE("digits: an image depends on seed, part and row alone") {
  const Rows many = Read(DrawDigits(1, "train", 50), 7, 1), few = Read(DrawDigits(1, "train", 8), 7, 1);
  CHECK(many.features == few.features);
  CHECK(many.labels == few.labels);
  CHECK(Read(DrawDigits(2, "train", 8), 7, 1).features != few.features);
  CHECK(Read(DrawDigits(1, "test", 8), 7, 1).features != few.features);
}

TEST_CASE("digits: drawn when they are read, rows are those in memory") {
  const DataSet memory = DrawDigits(1, "train", 50), drawn = DigitsAsRead(1, "train", 50);
  CHECK(drawn.bytes().data == nullptr);
  CHECK(drawn.rows() == memory.rows());
  CHECK(drawn.classes() == memory.classes());
  CHECK(Read(drawn, 7, 43).features == Read(memory, 7, 43).features);
  CHECK(Read(drawn, 7, 43).labels == Read(memory, 7, 43).labels);
  CHECK(FingerprintOf(drawn).labels == FingerprintOf(memory).labels);
}

TEST_CASE("digits: classes are about equally frequent") {
  const Rows images = Read(DrawDigits(1, "train", 5000), 0, 5000);
  std::vector<int> counts(kDigitClasses);
  for (const int32_t label : images.labels) ++counts.at(label);
  for (const int count : counts) {
    CHECK(count > 400);  // 500 expected, standard deviation 21
    CHECK(count < 600);
  }
}

TEST_CASE("digits: the nearest class mean is right for under 0.85 of the test images") {
  const int64_t kInputs = kDigitInputs;
  const Rows train = Read(DrawDigits(1, "train", 10000), 0, 10000);
  const Rows test = Read(DrawDigits(1, "test", 2000), 0, 2000);
  std::vector<double> means(kDigitClasses * kInputs), counts(kDigitClasses);
  for (size_t i = 0; i < train.labels.size(); ++i) {
    ++counts[train.labels[i]];
    for (int64_t j = 0; j < kInputs; ++j)
      means[train.labels[i] * kInputs + j] += train.features[i * kInputs + j];
  }
  int64_t correct = 0;
  for (size_t i = 0; i < test.labels.size(); ++i) {
    std::vector<double> distances(kDigitClasses);
    for (int64_t k = 0; k < kDigitClasses; ++k) {
      for (int64_t j = 0; j < kInputs; ++j) {
        const double difference = test.features[i * kInputs + j] - means[k * kInputs + j] / counts[k];
        distances[k] += difference * difference;
      }
    }
    correct += std::min_element(distances.begin(), distances.end()) - distances.begin() == test.labels[i];
  }
  const double accuracy = static_cast<double>(correct) / static_cast<double>(test.labels.size());
  MESSAGE("nearest class mean: ", accuracy);
  CHECK(accuracy < 0.85);
  CHECK(accuracy > 0.5);  // they are digits, after all
}

TEST_CASE("bytes in memory: of IDX files joins image and label of a row") {
  const std::string images = WritePlain("images", IdxImageContent(3, 1, 2));
  const std::string labels = WritePlain("labels", IdxLabelContent({7, 8, 9}));
  IdxSet idx = ReadIdxSet({{images}, {labels}}, "data.train", {10, "", ""});
  const DataSet set = BytesInMemory(std::move(idx.images.bytes), std::move(idx.labels), 2, 10);
  const Rows rows = RowsOf(set, {2, 0});
  CHECK(rows.labels == std::vector<int32_t>{9, 7});
  CHECK(rows.features[0] == 4 / 255.0f);
  CHECK(rows.features[3] == 1 / 255.0f);
}

}  // namespace
}  // namespace dtrain
