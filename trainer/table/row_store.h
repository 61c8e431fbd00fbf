// RowStore: the rows of a range of a table that were written, in memory. A row is `values` float32 that lie
// together. Rows come in groups of neighbours, and a group has values when one of its rows is first written.
// A small range lies in memory as a whole, with a bit for each group. In a large one a group takes memory at
// the end of what is in use, so that memory is as dense as the groups are, and pages of 2 MiB pay however the
// rows are spread; a list of one number for each group, which the system fills with zeros page by page, says
// where the group lies. With TablePages::kHuge a large range lies as a small one does, which saves the access
// to the list, and takes 2 MiB with the first group of each.
// Owner: TablePart. Thread: one; Find() any while nothing is written.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <thread>
#include <type_traits>
#include <vector>

#include "trainer/config/choices.h"
#include "trainer/model/table_layout.h"
#include "trainer/table/block_memory.h"

namespace dtrain {

// Copies the values of a row, or some of them. They are few, and a call of the library's copy takes longer.
inline void CopyRow(const float* from, int64_t count, float* to) {
  const auto copy = [&](auto values) {
    std::memcpy(to, from, values() * sizeof(float));
    from += values();
    to += values();
  };
  for (; count >= 8; count -= 8) copy(std::integral_constant<size_t, 8>());
  if ((count & 4) != 0) copy(std::integral_constant<size_t, 4>());
  if ((count & 2) != 0) copy(std::integral_constant<size_t, 2>());
  if ((count & 1) != 0) copy(std::integral_constant<size_t, 1>());
}

// Prefetches the first values of a row. It may begin anywhere in a line of the cache.
inline void PrefetchRow(const float* row, int64_t count) {
  constexpr int64_t kLineValues = 16, kMaxValues = 64;
  const int64_t last = std::min(count, kMaxValues) - 1;
  for (int64_t i = 0; i < last; i += kLineValues) __builtin_prefetch(row + i);
  __builtin_prefetch(row + last);
}

// MappedMemory: address space that takes memory as it is used.
class MappedMemory {
 public:
  // kSmall: all of it is usable, and filled with zeros at the first touch of each page. kHuge: nothing is
  // usable before Use(), and pages are large where the system has such.
  enum class Pages { kSmall, kHuge };
  // Throws Failure if the system gives no address space. `what`: for that error.
  MappedMemory(size_t bytes, Pages pages, const char* what);
  ~MappedMemory();
  MappedMemory(const MappedMemory&) = delete;
  MappedMemory& operator=(const MappedMemory&) = delete;

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  // Makes the first `bytes` usable.
  void Use(size_t bytes);
  // Fills all with zeros again, and gives the memory back.
  void Clear();
  // Has the system give the memory of all from now on, where it knows how, by a thread of its own: what is
  // used before is filled at its first touch. Call it once.
  void Populate();

 private:
  void* mapped_ = nullptr;
  std::byte* data_ = nullptr;
  const size_t bytes_;
  const char* const what_;
  std::atomic<bool> stops_{false};
  std::thread populates_;
};

class RowStore {
 public:
  // Writes the initial values of a row.
  using Initial = std::function<void(uint64_t row, float* values)>;

  // The max bytes of a range that lies in memory as a whole: 2^24 rows of two values, and those of a bias.
  static constexpr size_t kMaxWholeBytes = size_t{129} << 20;

  // `values`: of a row. `constant`: where the initial values of all rows are the same, those; else empty.
  // Throws UserError if there are too many rows, Failure if the system gives no address space.
  RowStore(RowRange rows, int64_t values, Initial initial, std::vector<float> constant = {},
           TablePages pages = TablePages::kAuto, RowMemory memory = {});

  int64_t values() const { return values_; }
  // The values of a row; null: nothing of its group was written.
  const float* Find(uint64_t row) const {
    const uint64_t at = row - rows_.begin, group = at >> group_bits_;
    if (whole_) return IsWritten(group) ? RowAt(at) : nullptr;
    const uint32_t place = places()[group];
    return place == 0 ? nullptr : RowIn(place, at);
  }
  // The values of a row, to be written. Throws Failure if there is no memory for them; nothing is changed
  // then.
  float* Touch(uint64_t row) {
    const uint64_t at = row - rows_.begin, group = at >> group_bits_;
    if (whole_) {
      if (!IsWritten(group)) Begin(group);
      return RowAt(at);
    }
    const uint32_t place = places()[group];
    return RowIn(place != 0 ? place : Make(group), at);
  }
  // Forgets all that was written.
  void Clear();
  // Has the system give the memory of a small range from now on, for one whose rows are written all over it:
  // later steps need not wait for zeroed pages.
  void Populate();
  // Prefetches the entry of the list of groups that says where the row lies.
  void WillFind(uint64_t row) const {
    if (!whole_) __builtin_prefetch(places() + ((row - rows_.begin) >> group_bits_));
  }

  // Groups, by number: those of rows [begin + g * group_rows(), ...).
  int64_t group_rows() const { return int64_t{1} << group_bits_; }
  uint64_t group_count() const {
    return (rows_.size() + static_cast<uint64_t>(group_rows()) - 1) >> group_bits_;
  }
  uint64_t GroupOf(uint64_t row) const { return (row - rows_.begin) >> group_bits_; }
  // Units: a group, or several that together are as large as what one access of memory brings. A save of what
  // has changed has or has not all of one.
  int64_t unit_rows() const { return int64_t{1} << unit_bits_; }
  uint64_t unit_count() const {
    return (rows_.size() + static_cast<uint64_t>(unit_rows()) - 1) >> unit_bits_;
  }
  uint64_t UnitOf(uint64_t row) const { return (row - rows_.begin) >> unit_bits_; }
  // The rows of a group, [group_rows(), values()]; null: none was written.
  const float* Group(uint64_t group) const {
    if (whole_) return IsWritten(group) ? RowAt(group << group_bits_) : nullptr;
    const uint32_t place = places()[group];
    return place == 0 ? nullptr : RowIn(place, 0);
  }
  // The next group from this one on that was written; group_count(): none.
  uint64_t NextGroup(uint64_t group) const;
  int64_t groups_written() const { return used_; }
  const RowRange& rows() const { return rows_; }
  void InitialRow(uint64_t row, float* values) const {
    constant_.empty() ? initial_(row, values) : void(std::copy(constant_.begin(), constant_.end(), values));
  }
  // The same, valid until the next call or Touch(). Those that were drawn lately are kept, because a row is
  // read before it is first written.
  const float* InitialRow(uint64_t row);
  // Returns a bit for each row of a group, the lowest for its first: the first `count` of its values differ
  // from its initial ones. `values`: of the group, [group_rows(), values()]. `scratch` has room for values().
  uint64_t ChangedIn(uint64_t group, const float* values, int64_t count, float* scratch) const;

 private:
  bool IsWritten(uint64_t group) const { return (written_[group / 64] >> group % 64 & 1) != 0; }
  float* RowAt(uint64_t at) const {
    return reinterpret_cast<float*>(memory_.data()) + at * static_cast<uint64_t>(values_);
  }
  const uint32_t* places() const { return reinterpret_cast<const uint32_t*>(places_.data()); }
  float* RowIn(uint32_t place, uint64_t at) const {
    std::byte* const group = memory_.data() + (static_cast<size_t>(place) - 1) * group_bytes_;
    return reinterpret_cast<float*>(group) + (at & group_mask_) * static_cast<uint64_t>(values_);
  }
  uint32_t Make(uint64_t group);
  size_t RoomFor(size_t more, size_t taken) const;
  void Grow();
  size_t BytesWith(size_t more) const;
  void Begin(uint64_t group);
  void BeginPage(size_t page);
  size_t DrawnCount() const;
  void Fill(uint64_t group, float* values);

  const RowRange rows_;
  const int64_t values_;
  const Initial initial_;
  const std::vector<float> constant_;
  // By the last bits of their numbers, rows that were drawn; empty: none is.
  std::vector<uint64_t> drawn_rows_;
  std::vector<float> drawn_;
  int unit_bits_ = 0;
  int group_bits_ = 0;
  uint64_t group_mask_ = 0;
  size_t group_bytes_ = 0;
  const bool whole_;
  const RowMemory ask_;
  std::vector<uint64_t> written_;  // whole: a bit for each group
  std::vector<bool> pages_;        // large and whole: those that a group lies in
  MappedMemory places_;            // uint32 of each group: from 1, its number in memory_; 0: it has none
  MappedMemory memory_;
  int64_t used_ = 0;   // groups in memory_
  size_t usable_ = 0;  // bytes of memory_
};

}  // namespace dtrain
