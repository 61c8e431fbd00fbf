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

constexpr size_t kKeyGroup = 64;
constexpr size_t kWord = sizeof(uint64_t);

uint64_t LoadWord(const std::byte* at) {
  uint64_t word;
  std::memcpy(&word, at, kWord);
  return word;
}

size_t GroupBytes(size_t count, size_t width) { return (count * width + 7) / 8; }

// Writes `count` numbers of `width` bits each, and up to a word of zeros behind them. `numbers` has room for
// one more, and is overwritten.
std::byte* Pack(uint64_t* numbers, size_t count, size_t width, std::byte* out) {
  std::byte* const end = out + GroupBytes(count, width);
  if (width == 0) return end;
  for (; width <= 28; width *= 2) {  // pairs become one number: fewer are written, which costs more
    numbers[count] = 0;
    count = (count + 1) / 2;
    for (size_t i = 0; i < count; ++i) numbers[i] = numbers[2 * i] | numbers[2 * i + 1] << width;
  }
  uint64_t before = 0;  // half of the number before, whose last bits are in the first byte of the next word
  for (size_t i = 0, bit = 0; i < count; ++i, bit += width) {
    const size_t shift = bit % 8;
    const uint64_t word = numbers[i] << shift | before >> (width - 1 - shift);
    before = numbers[i] >> 1;
    std::memcpy(out + bit / 8, &word, kWord);
    if (width > 56) out[bit / 8 + kWord] = static_cast<std::byte>(before >> (63 - shift));
  }
  return end;
}

// Reads `count` gaps of `width` bits, behind which two words can be read, and writes the keys from `next` on.
// Returns the key behind the last; a sum beyond 64 bits wraps round.
uint64_t Unpack(const std::byte* from, size_t count, size_t width, uint64_t next, uint64_t* keys) {
  const uint64_t mask = width == 0 ? 0 : ~uint64_t{0} >> (64 - width);
  for (size_t i = 0, bit = 0; i < count; ++i, bit += width) {
    next += (LoadWord(from + bit / 8) >> bit % 8 & mask) + 1;
    keys[i] = next - 1;
  }
  return next;
}

// The same of gaps that may lie in nine bytes. False: they go beyond `left` rows.
bool UnpackWide(const std::byte* from, size_t count, size_t width, uint64_t left, uint64_t next,
                uint64_t* keys) {
  const uint64_t mask = ~uint64_t{0} >> (64 - width);
  for (size_t i = 0, bit = 0; i < count; ++i, bit += width) {
    const uint64_t low = LoadWord(from + bit / 8) >> bit % 8, high = LoadWord(from + bit / 8 + kWord)
                                                                     << 1 << (63 - bit % 8);
    const uint64_t gap = (low | high) & mask;
    if (gap >= left) return false;
    left -= gap + 1;
    keys[i] = next + gap;
    next += gap + 1;
  }
  return true;
}

}  // namespace

size_t MaxKeyBytes(size_t count, const TableLayout& table) {
  return count * table.key_bytes() + (count + kKeyGroup - 1) / kKeyGroup + kWord;
}

size_t EncodeKeys(KeySpan keys, RowRange block, std::byte* bytes) {
  std::byte* out = bytes;
  uint64_t next = block.begin;
  const auto all = static_cast<size_t>(keys.size);
  for (size_t begin = 0; begin < all; begin += kKeyGroup) {
    const size_t count = std::min(kKeyGroup, all - begin);
    uint64_t gaps[kKeyGroup + 1], any = 0;
    for (size_t i = 0; i < count; ++i) {
      const uint64_t key = keys.data[begin + i];
      gaps[i] = key - next;
      any |= gaps[i];
      next = key + 1;
    }
    const size_t width = any == 0 ? 0 : static_cast<size_t>(64 - __builtin_clzll(any));
    *out++ = static_cast<std::byte>(width);
    out = Pack(gaps, count, width, out);
  }
  return static_cast<size_t>(out - bytes);
}

std::string DecodeKeys(net::TensorView bytes, size_t count, RowRange block, KeyList* keys) {
  if (count > block.size()) return fmt::format("{} keys are more than the {} rows", count, block.size());
  constexpr char kShort[] = "{} bytes are too few for {} keys";
  if (bytes.size < (count + kKeyGroup - 1) / kKeyGroup) return fmt::format(kShort, bytes.size, count);
  keys->resize(count);
  const std::byte *at = bytes.data, *const end = at + bytes.size;
  uint64_t next = block.begin;
  for (size_t begin = 0, size = 0; begin < count; begin += size) {
    size = std::min(kKeyGroup, count - begin);
    if (at == end) return fmt::format(kShort, bytes.size, count);
    const auto width = static_cast<size_t>(*at++), left = static_cast<size_t>(end - at);
    if (width > 64) return fmt::format("key {} of {} begins a group of {} bits", begin, count, width);
    const size_t packed = GroupBytes(size, width);
    if (packed > left) return fmt::format(kShort, bytes.size, count);
    if (const size_t used = size * width % 8; used != 0 && at[packed - 1] >> used != std::byte{0}) {
      return fmt::format("keys {} to {} of {} end with bits that belong to none", begin, begin + size - 1,
                         count);
    }
    std::byte copy[(kKeyGroup + 2) * kWord];
    const std::byte* from = at;
    if (left < packed + 2 * kWord) {  // nothing is read behind the end of the message
      std::memset(copy + packed, 0, 2 * kWord);
      from = static_cast<const std::byte*>(std::memcpy(copy, at, packed));
    }
    at += packed;
    const uint64_t rows = block.end - next;  // that are left of the block
    uint64_t* const into = keys->data() + begin;
    // Gaps of up to 57 bits lie in eight bytes, and 64 of them add up to no more than 64 bits.
    const bool fits = width <= 57 ? Unpack(from, size, width, next, into) - next <= rows
                                  : UnpackWide(from, size, width, rows, next, into);
    if (!fits) {
      return fmt::format("keys {} to {} of {} go beyond the last of the {} rows", begin, begin + size - 1,
                         count, block.size());
    }
    next = into[size - 1] + 1;
  }
  return at == end ? "" : fmt::format("{} bytes are too many for {} keys", bytes.size, count);
}

}  // namespace dtrain
