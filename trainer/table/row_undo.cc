#include "trainer/table/row_undo.h"

#include <algorithm>
#include <cstring>

namespace dtrain {

uint32_t RowUndo::NumberIn(const float* entry) {
  uint32_t number = 0;
  std::memcpy(&number, entry, sizeof number);
  return number;
}

RowUndo::Slice& RowUndo::At(int64_t slice) {
  std::unique_ptr<Chunk>& chunk = chunks_[static_cast<size_t>(slice / kChunkSlices)];
  if (chunk == nullptr) {
    chunk = std::make_unique<Chunk>();
    bytes_ += sizeof(Chunk);
  }
  return (*chunk)[static_cast<size_t>(slice % kChunkSlices)];
}

// The entry of a number, or the free one where it belongs. Multiplicative hashing (Knuth, The Art of Computer
// Programming, 6.4).
size_t RowUndo::PlaceOf(const std::vector<float>& entries, uint32_t number) const {
  const size_t mask = entries.size() / entry_ - 1;
  size_t place = (number * uint64_t{0x9E3779B97F4A7C15} >> 32) & mask;
  const float* entry = entries.data() + place * entry_;
  while (NumberIn(entry) != 0 && NumberIn(entry) != number) {
    place = (place + 1) & mask;
    entry = entries.data() + place * entry_;
  }
  return place * entry_;
}

const float* RowUndo::Kept(int64_t number, uint32_t at) const {
  const Slice* const slice = Find(number);
  if (slice == nullptr || slice->entries.empty()) return nullptr;
  const float* const entry = slice->entries.data() + PlaceOf(slice->entries, at + 1);
  return NumberIn(entry) == 0 ? nullptr : entry + 1;
}

void RowUndo::Widen(Slice* slice) {
  std::vector<float> wider(std::max(4 * entry_, 2 * slice->entries.size()));
  for (size_t i = 0; i < slice->entries.size(); i += entry_) {
    const float* const entry = &slice->entries[i];
    if (NumberIn(entry) != 0)
      std::memcpy(&wider[PlaceOf(wider, NumberIn(entry))], entry, entry_ * sizeof(float));
  }
  bytes_ += (wider.size() - slice->entries.size()) * sizeof(float);
  slice->entries.swap(wider);
}

float* RowUndo::Keep(int64_t number, uint32_t at) {
  Slice& slice = At(number);
  if (slice.entries.empty()) Widen(&slice);
  float* entry = &slice.entries[PlaceOf(slice.entries, at + 1)];
  if (NumberIn(entry) != 0) return nullptr;
  if (4 * (slice.used + 1) * entry_ > 3 * slice.entries.size()) {
    Widen(&slice);
    entry = &slice.entries[PlaceOf(slice.entries, at + 1)];
  }
  ++slice.used;
  ++at;
  std::memcpy(entry, &at, sizeof at);
  return entry + 1;
}

// Slices are dropped in ascending order, so a chunk goes with its last one.
void RowUndo::Drop(int64_t number) {
  std::unique_ptr<Chunk>& chunk = chunks_[static_cast<size_t>(number / kChunkSlices)];
  if (chunk == nullptr) return;
  Slice& slice = (*chunk)[static_cast<size_t>(number % kChunkSlices)];
  bytes_ -= slice.entries.size() * sizeof(float);
  slice = Slice();
  if (number % kChunkSlices != kChunkSlices - 1) return;
  bytes_ -= sizeof(Chunk);
  chunk.reset();
}

void RowUndo::DropAll() {
  for (std::unique_ptr<Chunk>& chunk : chunks_) chunk.reset();
  bytes_ = 0;
}

}  // namespace dtrain
