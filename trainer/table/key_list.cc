#include "trainer/table/key_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace dtrain {

int BitsBelow(uint64_t count) {
  int bits = 0;
  while (bits < 64 && (count - (count > 0)) >> bits != 0) ++bits;
  return bits;
}

uint64_t* KeySorter::Numbers(size_t count) {
  count_ = count;
  if (numbers_.size() < count) {
    numbers_.resize(count);
    sorted_.resize(count);
  }
  return numbers_.data();
}

const uint64_t* KeySorter::Sort(int from, int bits) {
  // Fewer passes pay for longer lists of places only where there are many numbers.
  const int max_digit_bits = count_ < 2048 ? 8 : 12;
  const int passes = (bits + max_digit_bits - 1) / max_digit_bits;
  const int digit_bits = passes == 0 ? 0 : (bits + passes - 1) / passes;
  const uint64_t mask = (uint64_t{1} << digit_bits) - 1;
  for (int pass = 0, shift = from; pass < passes; ++pass, shift += digit_bits) {
    places_.assign(mask + 1, 0);
    for (size_t i = 0; i < count_; ++i) ++places_[numbers_[i] >> shift & mask];
    uint32_t place = 0;
    for (uint32_t& digit : places_) place += std::exchange(digit, place);
    for (size_t i = 0; i < count_; ++i) sorted_[places_[numbers_[i] >> shift & mask]++] = numbers_[i];
    numbers_.swap(sorted_);
  }
  return numbers_.data();
}

void EncodeKeys(KeySpan keys, RowRange block, std::byte* bytes) {
  for (int64_t i = 0; i < keys.size; ++i) {
    const auto key = static_cast<uint32_t>(keys.data[i] - block.begin);
    std::memcpy(bytes + static_cast<size_t>(i) * kKeyBytes, &key, kKeyBytes);
  }
}

std::string DecodeKeys(net::TensorView bytes, RowRange block, KeyList* keys) {
  if (bytes.size % kKeyBytes != 0) return fmt::format("{} bytes are no whole number of keys", bytes.size);
  const size_t count = bytes.size / kKeyBytes;
  if (count > block.size()) return fmt::format("{} keys are more than the {} rows", count, block.size());
  keys->resize(count);
  uint64_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    uint32_t key = 0;
    std::memcpy(&key, bytes.data + i * kKeyBytes, kKeyBytes);
    if (key < next || key >= block.size()) {
      return fmt::format("key {} of {} is {}; must be from {} to {}", i, count, key, next, block.size() - 1);
    }
    next = uint64_t{key} + 1;
    (*keys)[i] = block.begin + key;
  }
  return std::string();
}

}  // namespace dtrain
