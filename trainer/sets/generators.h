// Rows that are made: drawn digits, and the linear task. Thread: any; free functions.
// Drawn digits are grey images of 28 x 28 pixels, ten classes in equal shares on average. Each image is
// shifted, scaled, rotated and slanted, with its own pen, light and noise. A row is a function of (seed,
// part, row) and takes about 16 us. The difficulty is chosen so that the nearest class mean is right for
// under 0.85 of the test rows and softmax regression for over 0.95 (data_set_test.cc).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "trainer/sets/data_set.h"

namespace dtrain {

constexpr int64_t kDigitInputs = 28 * 28;
constexpr int64_t kDigitClasses = 10;
constexpr int64_t kDigitTrainRows = 20000;  // if the config does not say
constexpr int64_t kDigitTestRows = 4000;
constexpr int64_t kMaxDigitRows = 10000000;  // in memory: 7.8 GB

// `part`: "train" and "test" are different images of one seed.
DataSet DrawDigits(uint64_t seed, std::string_view part, int64_t rows);
// The same rows, each drawn again whenever it is read, in place of memory for all of them.
DataSet DigitsAsRead(uint64_t seed, std::string_view part, int64_t rows);

constexpr int64_t kLinearInputs = 1;  // if the config does not say

// Returns the regression task y = 2 * sum(x) + 10 + 0.33 e with x and e ~ N(0, 1). Each row is a function of
// (seed, part, row); `part` as for digits. Without end unless `rows` is given.
DataSet LinearRows(uint64_t seed, std::string_view part, int64_t inputs, std::optional<int64_t> rows);

}  // namespace dtrain
