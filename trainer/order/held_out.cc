#include "trainer/order/held_out.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/random.h"

namespace dtrain {
namespace {

// Returns how many rows of each class are held out, `all` in sum: by the largest remainders. A class keeps a
// row to train on as long as other classes have rows left.
std::vector<int64_t> Apportion(int64_t all, const std::vector<int64_t>& counts) {
  const double rows = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  std::vector<int64_t> quota;
  std::vector<std::pair<double, size_t>> remainders;
  int64_t left = all;
  for (size_t c = 0; c < counts.size(); ++c) {
    const double exact = static_cast<double>(all) * static_cast<double>(counts[c]) / rows;
    quota.push_back(static_cast<int64_t>(exact));
    remainders.emplace_back(-(exact - std::floor(exact)), c);
    left -= quota.back();
  }
  std::sort(remainders.begin(), remainders.end());
  for (const int64_t kept : {1, 0}) {
    for (size_t i = 0; i < remainders.size() && left > 0; ++i) {
      const size_t c = remainders[i].second;
      if (quota[c] + kept >= counts[c]) continue;
      ++quota[c];
      --left;
    }
  }
  return quota;
}

// Returns the classes counted from 0 in the order in which they appear, since callers number them
// differently.
std::vector<size_t> ByAppearance(const std::vector<int32_t>& classes, bool apart) {
  std::map<int32_t, size_t> numbers;
  std::vector<size_t> renumbered;
  renumbered.reserve(classes.size());
  for (const int32_t one : classes) {
    renumbered.push_back(numbers.emplace(apart ? one : 0, numbers.size()).first->second);
  }
  return renumbered;
}

}  // namespace

int64_t HeldOutRows(const DataConfig& data, std::optional<int64_t> rows) {
  if (data.validation_share == 0 || !rows) return data.validation;
  // 0.29 of 100 rows are 29 of them, although the product is 28.999999999999996.
  return static_cast<int64_t>(std::floor(data.validation_share * static_cast<double>(*rows) * (1 + 1e-12)));
}

std::string HeldOutText(const DataConfig& data) {
  return data.validation_share > 0 ? fmt::format("{}", data.validation_share)
                                   : fmt::format("{}", data.validation);
}

std::vector<bool> HeldOutMarks(const DataConfig& data, const std::vector<int32_t>& classes) {
  const auto rows = static_cast<int64_t>(classes.size());
  std::vector<bool> marks(classes.size());
  const int64_t all = HeldOutRows(data, rows);
  if (data.validation_by == HeldOutBy::kFirst) {
    std::fill_n(marks.begin(), std::min(all, rows), true);
    return marks;
  }
  const std::vector<size_t> numbers = ByAppearance(classes, data.validation_by == HeldOutBy::kStratified);
  std::vector<std::vector<int64_t>> rows_of;
  for (int64_t row = 0; row < rows; ++row) {
    const size_t number = numbers[static_cast<size_t>(row)];
    if (number == rows_of.size()) rows_of.emplace_back();
    rows_of[number].push_back(row);
  }
  std::vector<int64_t> counts;
  for (const auto& of_class : rows_of) counts.push_back(static_cast<int64_t>(of_class.size()));
  const std::vector<int64_t> quota = Apportion(all, counts);
  const CounterRandom random = CounterRandom(data.seed).Stream("held out");
  for (size_t c = 0; c < quota.size(); ++c) {
    const CounterRandom of_class = random.Stream(c);
    for (int64_t run = 0; run < quota[c]; ++run) {
      const int64_t begin = run * counts[c] / quota[c], end = (run + 1) * counts[c] / quota[c];
      const auto drawn = static_cast<int64_t>(
          of_class.Below(static_cast<uint64_t>(run), static_cast<uint64_t>(end - begin)));
      marks[static_cast<size_t>(rows_of[c][static_cast<size_t>(begin + drawn)])] = true;
    }
  }
  return marks;
}

}  // namespace dtrain
