// RowUndo: rows of a table as they were at one moment, of those that have changed since. They lie in slices
// of neighbours, and `at` is the number of a row in its slice; the rows of a slice are found, and given back,
// together. Owner: TableSnapshot. Thread: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace dtrain {

class RowUndo {
 public:
  // `values`: of a row.
  RowUndo(int64_t slices, int64_t values)
      : entry_(1 + static_cast<size_t>(values)),
        chunks_(static_cast<size_t>((slices + kChunkSlices - 1) / kChunkSlices)) {}

  // Returns where the values of a row are to be written; null: it is kept already.
  float* Keep(int64_t slice, uint32_t at);
  // The values of a row; null: it is not kept.
  const float* Kept(int64_t slice, uint32_t at) const;
  // Calls `visit(at, values)` for the rows of a slice.
  template <typename Visit>
  void VisitRows(int64_t slice, Visit&& visit) const {
    const Slice* const rows = Find(slice);
    for (size_t i = 0; rows != nullptr && i < rows->entries.size(); i += entry_) {
      const float* const entry = rows->entries.data() + i;
      if (const uint32_t row = NumberIn(entry); row != 0) visit(row - 1, entry + 1);
    }
  }
  // Forgets the rows of a slice. Slices are dropped in ascending order.
  void Drop(int64_t slice);
  void DropAll();
  // Prefetches what Keep() of a slice reads first, and what it reads then.
  void WillKeep(int64_t slice) const { __builtin_prefetch(Find(slice)); }
  void WillKeepSoon(int64_t slice) const {
    if (const Slice* const rows = Find(slice)) __builtin_prefetch(rows->entries.data());
  }

  // The memory of all rows that are kept.
  size_t bytes() const { return bytes_; }

 private:
  // A hash table with open addressing. An entry is the bits of 1 + the number of a row, or 0, and its values.
  struct Slice {
    std::vector<float> entries;  // a power of two of them, at most three quarters used
    size_t used = 0;
  };
  // Slices are made in chunks, so that those that nobody updates take no memory.
  static constexpr int64_t kChunkSlices = 64;
  using Chunk = std::array<Slice, kChunkSlices>;

  const Slice* Find(int64_t slice) const {
    const Chunk* const chunk = chunks_[static_cast<size_t>(slice / kChunkSlices)].get();
    return chunk == nullptr ? nullptr : &(*chunk)[static_cast<size_t>(slice % kChunkSlices)];
  }
  Slice& At(int64_t slice);
  static uint32_t NumberIn(const float* entry);
  size_t PlaceOf(const std::vector<float>& entries, uint32_t number) const;
  void Widen(Slice* slice);

  const size_t entry_;  // values of one
  std::vector<std::unique_ptr<Chunk>> chunks_;
  size_t bytes_ = 0;
};

}  // namespace dtrain
