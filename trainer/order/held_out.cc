#include "trainer/order/held_out.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "base/random.h"
#include "trainer/config/data_config.h"

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

// RowClass: the rows of one class, and those of them that are drawn.
struct RowClass {
  int64_t count = 0;
  int64_t quota = 0;
  CounterRandom random{0};
  int64_t seen = 0;   // rows that were passed
  int64_t run = 0;    // a row of this run is drawn next
  int64_t drawn = 0;  // that row; counts the rows of the class

  // The rows of the class are cut into `quota` equal runs, and one row of each is drawn.
  void DrawNext() {
    const int64_t begin = run * count / quota, end = (run + 1) * count / quota;
    drawn = begin + static_cast<int64_t>(
                        random.Below(static_cast<uint64_t>(run), static_cast<uint64_t>(end - begin)));
  }
  // Whether the next row of the class is drawn.
  bool Takes() {
    if (run == quota || seen++ != drawn) return false;
    if (++run < quota) DrawNext();
    return true;
  }
};

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
  // Classes are counted from 0 in the order in which they appear, since callers number them differently.
  const bool apart = data.validation_by == HeldOutBy::kStratified;
  std::map<int32_t, size_t> numbers;
  std::vector<int64_t> counts;
  for (const int32_t one : classes) {
    const size_t number = numbers.emplace(apart ? one : 0, numbers.size()).first->second;
    if (number == counts.size()) counts.push_back(0);
    ++counts[number];
  }
  const std::vector<int64_t> quota = Apportion(all, counts);
  const CounterRandom random = CounterRandom(data.seed).Stream("held out");
  std::vector<RowClass> drawn;
  for (size_t c = 0; c < counts.size(); ++c) {
    drawn.push_back({counts[c], quota[c], random.Stream(c)});
    if (quota[c] > 0) drawn.back().DrawNext();
  }
  for (size_t row = 0; row < marks.size(); ++row) {
    marks[row] = drawn[numbers[apart ? classes[row] : 0]].Takes();
  }
  return marks;
}

}  // namespace dtrain
