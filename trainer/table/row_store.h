// RowStore: the rows of a range of a table that were written, in memory. A row is `values` float32 that lie
// together. Rows come in groups of neighbours: a group takes memory when one of its rows is first written, at
// the end of what is in use, so that memory is as dense as the groups are, and pages of 2 MiB pay however
// the rows are spread. A list of one number for each group, which the system fills with zeros page by page,
// says where the group lies.
// Owner: TableShard. Thread: one; Find() any while nothing is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "trainer/model/table_layout.h"

namespace dtrain {

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

 private:
  void* mapped_ = nullptr;
  std::byte* data_ = nullptr;
  const size_t bytes_;
  const char* const what_;
};

class RowStore {
 public:
  // Writes the initial values of a row.
  using Initial = std::function<void(uint64_t row, float* values)>;

  // `values`: of a row. Throws UserError if there are too many rows, Failure if the system gives no address
  // space.
  RowStore(RowRange rows, int64_t values, Initial initial);

  int64_t values() const { return values_; }
  // The values of a row; null: nothing of its group was written.
  const float* Find(uint64_t row) const {
    const uint64_t at = row - rows_.begin;
    const uint32_t place = places()[at >> group_bits_];
    return place == 0 ? nullptr : RowIn(place, at);
  }
  // The values of a row, to be written. Throws Failure if there is no memory for them.
  float* Touch(uint64_t row) {
    const uint64_t at = row - rows_.begin;
    const uint32_t place = places()[at >> group_bits_];
    return RowIn(place != 0 ? place : Make(at >> group_bits_), at);
  }
  // Forgets all that was written.
  void Clear();
  // Brings the number of the row's group, and then the row, near to the processor.
  void WillFind(uint64_t row) const { __builtin_prefetch(places() + ((row - rows_.begin) >> group_bits_)); }

  // Groups, by number: those of rows [begin + g * group_rows(), ...).
  int64_t group_rows() const { return int64_t{1} << group_bits_; }
  uint64_t group_count() const {
    return (rows_.size() + static_cast<uint64_t>(group_rows()) - 1) >> group_bits_;
  }
  uint64_t GroupOf(uint64_t row) const { return (row - rows_.begin) >> group_bits_; }
  // The rows of a group, [group_rows(), values()]; null: none was written.
  const float* Group(uint64_t group) const {
    const uint32_t place = places()[group];
    return place == 0 ? nullptr : RowIn(place, 0);
  }
  // The next group from this one on that was written; group_count(): none.
  uint64_t NextGroup(uint64_t group) const;
  size_t group_bytes() const { return group_bytes_; }
  int64_t groups_written() const { return used_; }
  const RowRange& rows() const { return rows_; }
  void InitialRow(uint64_t row, float* values) const { initial_(row, values); }

 private:
  const uint32_t* places() const { return reinterpret_cast<const uint32_t*>(places_.data()); }
  float* RowIn(uint32_t place, uint64_t at) const {
    std::byte* const group = memory_.data() + (static_cast<size_t>(place) - 1) * group_bytes_;
    return reinterpret_cast<float*>(group) + (at & group_mask_) * static_cast<uint64_t>(values_);
  }
  uint32_t Make(uint64_t group);

  const RowRange rows_;
  const int64_t values_;
  const Initial initial_;
  int group_bits_ = 0;
  uint64_t group_mask_ = 0;
  size_t group_bytes_ = 0;
  MappedMemory places_;  // uint32 of each group: from 1, its number in memory_; 0: it has none
  MappedMemory memory_;
  int64_t used_ = 0;   // groups in memory_
  size_t usable_ = 0;  // bytes of memory_
};

}  // namespace dtrain
