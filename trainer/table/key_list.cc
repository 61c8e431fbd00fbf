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

const uint64_t* KeySorter::SortKeys(KeySpan keys) {
  const auto count = static_cast<size_t>(keys.size);
  const uint64_t place_mask = (uint64_t{1} << BitsBelow(count)) - 1;
  uint64_t* const numbers = Numbers(count);
  for (size_t i = 0; i < count; ++i) {
    numbers[i] = (keys.data[i] & ~place_mask) | static_cast<uint64_t>(i);
  }
  const int bits = std::min(64 - BitsBelow(count), count < 2048 ? 24 : 36);
  Sort(64 - bits, bits);
  const auto key_of = [&](uint64_t number) { return keys.data[number & place_mask]; };
  const auto is_before = [&](uint64_t a, uint64_t b) { return key_of(a) < key_of(b); };
  // Keys whose first bits are equal are few, and next to each other.
  for (size_t end = 1; end < count; ++end) {
    if (!is_before(numbers_[end], numbers_[end - 1])) continue;
    const auto same = [&](uint64_t number) { return (number ^ numbers_[end]) >> (64 - bits) == 0; };
    size_t begin = end - 1;
    while (begin > 0 && same(numbers_[begin - 1])) --begin;
    size_t behind = end + 1;
    while (behind < count && same(numbers_[behind])) ++behind;
    std::stable_sort(numbers_.begin() + static_cast<ptrdiff_t>(begin),
                     numbers_.begin() + static_cast<ptrdiff_t>(behind), is_before);
    end = behind;
  }
  return numbers_.data();
}

namespace {

// The blocks of a hash table are larger than all others (TableLayout).
size_t KeyBytes(RowRange block) {
  return block.size() <= uint64_t{1} << TableLayout::kMaxBlockBits ? sizeof(uint32_t) : sizeof(uint64_t);
}

template <typename Key>
void Encode(KeySpan keys, uint64_t first, std::byte* bytes) {
  for (int64_t i = 0; i < keys.size; ++i) {
    const auto key = static_cast<Key>(keys.data[i] - first);
    std::memcpy(bytes + static_cast<size_t>(i) * sizeof key, &key, sizeof key);
  }
}

template <typename Key>
std::string Decode(net::TensorView bytes, RowRange block, KeyList* keys) {
  if (bytes.size % sizeof(Key) != 0) return fmt::format("{} bytes are no whole number of keys", bytes.size);
  const size_t count = bytes.size / sizeof(Key);
  if (count > block.size()) return fmt::format("{} keys are more than the {} rows", count, block.size());
  keys->resize(count);
  uint64_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    Key key = 0;
    std::memcpy(&key, bytes.data + i * sizeof key, sizeof key);
    if (key < next || key >= block.size()) {
      return fmt::format("key {} of {} is {}; must be from {} to {}", i, count, key, next, block.size() - 1);
    }
    next = uint64_t{key} + 1;
    (*keys)[i] = block.begin + key;
  }
  return std::string();
}

}  // namespace

void EncodeKeys(KeySpan keys, RowRange block, std::byte* bytes) {
  KeyBytes(block) == sizeof(uint32_t) ? Encode<uint32_t>(keys, block.begin, bytes)
                                      : Encode<uint64_t>(keys, block.begin, bytes);
}

std::string DecodeKeys(net::TensorView bytes, RowRange block, KeyList* keys) {
  return KeyBytes(block) == sizeof(uint32_t) ? Decode<uint32_t>(bytes, block, keys)
                                             : Decode<uint64_t>(bytes, block, keys);
}

}  // namespace dtrain
