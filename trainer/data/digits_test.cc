#include "trainer/data/digits.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace dtrain {
namespace {

struct Images {
  std::vector<float> pixels;
  std::vector<int32_t> labels;
};

Images Read(const ByteSet& set, int64_t first, int64_t count) {
  std::vector<int64_t> rows(count);
  std::iota(rows.begin(), rows.end(), first);
  Images images{std::vector<float>(count * set.inputs()), std::vector<int32_t>(count)};
  set.Gather(rows.data(), count, images.pixels.data(), images.labels.data(), nullptr);
  return images;
}

TEST_CASE("digits: an image depends on seed, part and row alone") {
  const Images many = Read(DrawDigits(1, "train", 50), 7, 1), few = Read(DrawDigits(1, "train", 8), 7, 1);
  CHECK(many.pixels == few.pixels);
  CHECK(many.labels == few.labels);
  CHECK(Read(DrawDigits(2, "train", 8), 7, 1).pixels != few.pixels);
  CHECK(Read(DrawDigits(1, "test", 8), 7, 1).pixels != few.pixels);
}

TEST_CASE("digits: classes are about equally frequent") {
  const Images images = Read(DrawDigits(1, "train", 5000), 0, 5000);
  std::vector<int> counts(kDigitClasses);
  for (const int32_t label : images.labels) ++counts.at(label);
  for (const int count : counts) {
    CHECK(count > 400);  // 500 expected, standard deviation 21
    CHECK(count < 600);
  }
}

TEST_CASE("digits: the nearest class mean is right for under 0.85 of the test images") {
  const int64_t kInputs = kDigitInputs;
  const Images train = Read(DrawDigits(1, "train", 10000), 0, 10000);
  const Images test = Read(DrawDigits(1, "test", 2000), 0, 2000);
  std::vector<double> means(kDigitClasses * kInputs), counts(kDigitClasses);
  for (size_t i = 0; i < train.labels.size(); ++i) {
    ++counts[train.labels[i]];
    for (int64_t j = 0; j < kInputs; ++j)
      means[train.labels[i] * kInputs + j] += train.pixels[i * kInputs + j];
  }
  int64_t correct = 0;
  for (size_t i = 0; i < test.labels.size(); ++i) {
    std::vector<double> distances(kDigitClasses);
    for (int64_t k = 0; k < kDigitClasses; ++k) {
      for (int64_t j = 0; j < kInputs; ++j) {
        const double difference = test.pixels[i * kInputs + j] - means[k * kInputs + j] / counts[k];
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

}  // namespace
}  // namespace dtrain
