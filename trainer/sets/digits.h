// Drawn digits: grey images of 28 x 28 pixels, ten classes in equal shares on average. Each image is shifted,
// scaled, rotated and slanted, with its own pen, light and noise. A row is a function of (seed, part, row)
// and takes about 16 us. The difficulty is chosen so that the nearest class mean is right for under 0.85 of
// the test rows and softmax regression for over 0.95 (digits_test.cc).
#pragma once

#include <cstdint>
#include <string_view>

#include "trainer/sets/data_set.h"

namespace dtrain {

constexpr int64_t kDigitInputs = 28 * 28;
constexpr int64_t kDigitClasses = 10;
constexpr int64_t kDigitTrainRows = 20000;  // if the config does not say
constexpr int64_t kDigitTestRows = 4000;
constexpr int64_t kMaxDigitRows = 10000000;  // 7.8 GB

// `part`: "train" and "test" are different images of one seed.
ByteSet DrawDigits(uint64_t seed, std::string_view part, int64_t rows);

}  // namespace dtrain
