#include "trainer/order/held_out_view.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace dtrain {
namespace {

constexpr int64_t kBits = 64;

int64_t CountBits(uint64_t word) { return __builtin_popcountll(word); }

// Returns the place of the bit of a word before which so many are set: the counts of bits up to each byte are
// made side by side, as Vigna has it ("Broadword implementation of rank/select queries", 2008).
int64_t PlaceOfBit(uint64_t bits, uint64_t before) {
  constexpr uint64_t kOnes = 0x0101010101010101, kTops = 0x8080808080808080;
  uint64_t counts = bits - ((bits >> 1) & 0x5555555555555555);
  counts = (counts & 0x3333333333333333) + ((counts >> 2) & 0x3333333333333333);
  counts = ((counts + (counts >> 4)) & 0x0f0f0f0f0f0f0f0f) * kOnes;
  const uint64_t reached =
      ((counts | kTops) - kOnes * (before + 1)) & kTops;  // bytes in or behind which it is
  const int shift = __builtin_ctzll(reached) & ~7;
  uint64_t byte = bits >> shift;
  for (uint64_t left = before - ((counts << 8 >> shift) & 0xff); left > 0; --left) byte &= byte - 1;
  return shift + __builtin_ctzll(byte);
}

}  // namespace

HeldOutView::HeldOutView(const std::vector<bool>& marks) : rows_(static_cast<int64_t>(marks.size())) {
  words_.resize((marks.size() + kBits - 1) / kBits);
  std::array<int64_t, 2> counts{};
  for (int64_t row = 0; row < rows_; ++row) {
    const bool mark = marks[static_cast<size_t>(row)];
    if (mark) words_[static_cast<size_t>(row / kBits)] |= uint64_t{1} << (row % kBits);
    if (counts[mark]++ % kSpacing == 0) places_[mark].push_back(row);
  }
  held_out_ = counts[1];
}

int64_t HeldOutView::FileRow(int64_t row) const {
  const bool held_out = row < held_out_;
  const int64_t number = held_out ? row : row - held_out_;
  const int64_t from = places_[held_out][static_cast<size_t>(number / kSpacing)];
  int64_t left = number % kSpacing;
  auto word = static_cast<size_t>(from / kBits);
  uint64_t bits = Word(word, held_out) & (~uint64_t{0} << (from % kBits));
  for (int64_t count = CountBits(bits); count <= left; count = CountBits(bits)) {
    left -= count;
    bits = Word(++word, held_out);
  }
  return static_cast<int64_t>(word) * kBits + PlaceOfBit(bits, static_cast<uint64_t>(left));
}

// Returns how many rows before this one are not held out.
int64_t HeldOutView::OthersBefore(int64_t file_row) const {
  const std::vector<int64_t>& places = places_[0];
  const auto behind = std::lower_bound(places.begin(), places.end(), file_row);
  if (behind == places.begin()) return 0;
  const int64_t place = *std::prev(behind);
  int64_t count = (behind - places.begin() - 1) * kSpacing;
  for (int64_t row = place / kBits * kBits; row < file_row; row += kBits) {
    uint64_t bits = Word(static_cast<size_t>(row / kBits), false);
    if (row < place) bits &= ~uint64_t{0} << (place - row);
    if (file_row - row < kBits) bits &= (uint64_t{1} << (file_row - row)) - 1;
    count += CountBits(bits);
  }
  return count;
}

RowBlocks HeldOutView::Blocks(const RowBlocks& of_files) const {
  if (of_files == nullptr) return nullptr;
  auto blocks = std::make_shared<std::vector<int64_t>>(1, 0);
  for (const int64_t first : *of_files) {
    const int64_t row = held_out_ + OthersBefore(first);
    if (row > blocks->back() && row < rows_) blocks->push_back(row);
  }
  return blocks;
}

}  // namespace dtrain
