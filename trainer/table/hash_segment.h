// HashSegment: the entries of a contiguous range of rows of a hash table, in one block of memory of at most
// 768 KiB, behind them the values of those that have some. Rows are numbered by a hash, so the number of a
// row tells about where its entry is; from there entries lie in ascending order (linear probing in the order
// of the hash; Amble and Knuth, Ordered hash tables, 1974). So to find one takes some steps through one or
// two lines of memory, and a copy in order is a sequential pass. A plain value, whose memory its owner gives
// back. Owner: HashStore. Thread: one; the const calls any while nothing changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "gpu/view.h"
#include "trainer/model/table_layout.h"
#include "trainer/table/block_memory.h"

namespace dtrain {

// The hash range of a row.
constexpr int kHashRangeShift = 64 - TableLayout::kHashRangeBits;
inline uint64_t HashRangeOf(uint64_t row) { return row >> kHashRangeShift; }

// HashEntry: a row of a hash table that has values, or a candidate for one, which has a count.
struct HashEntry {
  static constexpr uint64_t kNoRow = ~uint64_t{0};
  static constexpr int kStepBits = 40;
  static constexpr int kPlaceBits = 22;

  uint64_t row = kNoRow;      // kNoRow: the place is empty
  uint64_t step : kStepBits;  // of the latest update that named it
  uint64_t has_values : 1;
  uint64_t in_base : 1;         // it was named since HashStore::BeginBase(), and was there before
  uint64_t place : kPlaceBits;  // which values of the segment; of a candidate: the updates that named it
};
static_assert(sizeof(HashEntry) == 16);

class HashSegment {
 public:
  static constexpr size_t kMaxBytes = size_t{768} << 10;

  HashSegment() = default;
  // Returns a segment of `rows` with some entries of `from`, in order, and with room for one more and its
  // values. `values`: float32 of a row. Unset: it would be too large, or the entries lie too close together.
  static std::optional<HashSegment> Make(RowRange rows, gpu::Span<const HashEntry> entries,
                                         const HashSegment& from, size_t values, BlockMemory* memory);
  // The bytes of a segment that has so many entries and rows with values, and may get one more, in hash range
  // `range`: segments that fill alike grow at different times.
  static size_t BytesFor(size_t entries, size_t rows, size_t values, uint64_t range);
  // Values alone, for Make(): those of an entry are at its place, [places, values].
  static HashSegment Over(float* row_values, size_t values);
  void Free(BlockMemory* memory);

  const RowRange& rows() const { return rows_; }
  size_t count() const { return count_; }            // entries
  size_t value_rows() const { return value_rows_; }  // those with values
  size_t bytes() const { return bytes_; }

  void WillFind(uint64_t row) const { __builtin_prefetch(entries_ + HomeOf(row)); }
  // Null: there is none.
  HashEntry* Find(uint64_t row) const {
    HashEntry* entry = entries_ + HomeOf(row);
    while (entry->row < row) ++entry;  // an empty place and the end have the largest number
    return entry->row == row ? entry : nullptr;
  }
  float* ValuesOf(const HashEntry& entry) const { return values_ + entry.place * row_values_; }

  // Adds an entry for a row that has none; null: there is no room.
  HashEntry* Insert(uint64_t row);
  // Gives an entry values, which are not set; false: there is no room.
  bool GiveValues(HashEntry* entry);
  // Removes the entries for which `leaves(entry)`.
  template <typename Leaves>
  void RemoveIf(Leaves&& leaves) {
    HashEntry* next = entries_;
    for (HashEntry* from = entries_; from != entries_ + places_; ++from) {
      if (from->row == HashEntry::kNoRow) continue;
      const HashEntry entry = *from;
      from->row = HashEntry::kNoRow;
      if (leaves(entry)) {
        Forget(entry);
        continue;
      }
      if (HashEntry* const home = entries_ + HomeOf(entry.row); next < home) next = home;
      *next++ = entry;
    }
  }
  // Calls `visit(entry)` in ascending order for those from row `first` on, until it returns false.
  template <typename Visit>
  bool VisitFrom(uint64_t first, Visit&& visit) const {
    const HashEntry* entry = first <= rows_.begin ? entries_ : entries_ + HomeOf(first);
    for (; entry != entries_ + places_; ++entry) {
      if (entry->row == HashEntry::kNoRow || entry->row < first) continue;
      if (!visit(*entry)) return false;
    }
    return true;
  }

 private:
  size_t HomeOf(uint64_t row) const {
    return static_cast<size_t>(static_cast<unsigned __int128>(row - rows_.begin) * scale_ >> 64);
  }
  bool Fill(gpu::Span<const HashEntry> entries, const HashSegment& from);
  void Forget(const HashEntry& entry);

  RowRange rows_;
  uint64_t scale_ = 0;  // the home of row rows_.begin + i is i * scale_ / 2^64
  HashEntry* entries_ = nullptr;
  float* values_ = nullptr;
  uint32_t slots_ = 0;   // homes
  uint32_t places_ = 0;  // of entries; those behind the homes are for the last ones, and the last is empty
  uint32_t count_ = 0;
  uint32_t value_rows_ = 0;
  uint32_t room_ = 0;   // of rows with values
  uint32_t fresh_ = 0;  // of which so many were used
  uint32_t free_ = 0;   // the first that is free again, from 1; it says which is the next
  uint32_t row_values_ = 0;
  size_t bytes_ = 0;
};

}  // namespace dtrain
