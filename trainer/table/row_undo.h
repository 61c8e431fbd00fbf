// RowUndo: rows of a table as they were at one moment, of those that have changed since. They lie by slices
// of neighbours, in which a row goes by its number: so those of a slice are found together, and given back
// together. Owner: TableSnapshot. Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dtrain {

class RowUndo {
 public:
  // `values`: of a row.
  RowUndo(int64_t slices, int64_t values)
      : entry_(1 + static_cast<size_t>(values)), slices_(static_cast<size_t>(slices)) {}

  // Returns where the values of a row are to be written; null: it is kept already.
  float* Keep(int64_t slice, uint32_t at);
  // Calls `visit(at, values)` for the rows of a slice.
  template <typename Visit>
  void VisitRows(int64_t slice, Visit&& visit) const {
    const std::vector<float>& entries = At(slice).entries;
    for (size_t i = 0; i < entries.size(); i += entry_) {
      if (const uint32_t row = NumberIn(&entries[i]); row != 0) visit(row - 1, &entries[i + 1]);
    }
  }
  // Forgets the rows of a slice.
  void Drop(int64_t slice);
  // Prefetches what Keep() of a slice reads first, and what it reads then.
  void WillKeep(int64_t slice) const { __builtin_prefetch(&At(slice)); }
  void WillKeepSoon(int64_t slice) const { __builtin_prefetch(At(slice).entries.data()); }

  // The memory of all rows that are kept.
  size_t bytes() const { return bytes_; }

 private:
  // A hash table with open addressing. An entry is the bits of 1 + the number of a row, or 0, and its values.
  struct Slice {
    std::vector<float> entries;  // a power of two of them, at most three quarters used
    size_t used = 0;
  };
  Slice& At(int64_t slice) { return slices_[static_cast<size_t>(slice)]; }
  const Slice& At(int64_t slice) const { return slices_[static_cast<size_t>(slice)]; }
  static uint32_t NumberIn(const float* entry);
  float* PlaceOf(std::vector<float>* entries, uint32_t number) const;
  void Widen(Slice* slice);

  const size_t entry_;  // values of one
  std::vector<Slice> slices_;
  size_t bytes_ = 0;
};

}  // namespace dtrain
