#include "trainer/table/row_sum.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace dtrain {

// Sorts the keys of all parts together, each with its place among them: of equal keys the first part's comes
// first, because the sort is stable.
void RowSum::Add(const std::vector<Part>& parts, RowRange rows) {
  size_t count = 0;
  begins_.clear();
  for (const Part& part : parts) {
    begins_.push_back(count);
    count += static_cast<size_t>(part.keys.size);
  }
  const int place_bits = BitsBelow(count), key_bits = BitsBelow(rows.size());
  const uint64_t place_mask = (uint64_t{1} << place_bits) - 1;
  keys_.clear();
  values_.clear();
  const auto take = [&](uint64_t key, uint64_t place) {
    const bool is_new = keys_.empty() || keys_.back() != key;
    if (is_new) keys_.push_back(key);
    AddRow(parts, place, is_new);
  };
  if (place_bits + key_bits > 64) {
    all_keys_.clear();
    for (const Part& part : parts) all_keys_.insert(all_keys_.end(), part.keys.begin(), part.keys.end());
    const uint64_t* const sorted = sorter_.SortKeys({all_keys_.data(), static_cast<int64_t>(count)});
    for (size_t i = 0; i < count; ++i) take(all_keys_[sorted[i] & place_mask], sorted[i] & place_mask);
    return;
  }
  uint64_t* numbers = sorter_.Numbers(count);
  size_t place = 0;
  for (const Part& part : parts) {
    for (const uint64_t key : part.keys) *numbers++ = (key - rows.begin) << place_bits | place++;
  }
  const uint64_t* const sorted = sorter_.Sort(place_bits, key_bits);
  for (size_t i = 0; i < count; ++i) take(rows.begin + (sorted[i] >> place_bits), sorted[i] & place_mask);
}

void RowSum::AddRow(const std::vector<Part>& parts, size_t place, bool is_new) {
  const auto width = static_cast<size_t>(width_);
  const auto behind = std::upper_bound(begins_.begin(), begins_.end(), place);
  const auto number = static_cast<size_t>(behind - begins_.begin()) - 1;
  const Part& part = parts[number];
  const std::byte* const from = part.values + (place - begins_[number]) * width * sizeof(float);
  row_.resize(width);
  std::memcpy(row_.data(), from, width * sizeof(float));
  if (is_new) values_.resize(values_.size() + width);
  float* const sum = values_.data() + values_.size() - width;
  for (size_t i = 0; i < width; ++i) {
    const float value = part.share * row_[i];
    sum[i] = is_new ? value : sum[i] + value;
  }
}

}  // namespace dtrain
