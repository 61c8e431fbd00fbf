// HashStore: the rows of a range of a hash table, for keys that are not known before. A row is made by
// updates that name it, and a row without one reads as its initial values. Rows are numbered by a hash
// (TableLayout::RowOfKey) and lie in order in segments, each of some part of one hash range. A segment that
// is full grows, or becomes two: other segments do not move, so no update waits for more than the copy of
// one.
//
// Admission: a row gets values with the admit_after-th update that names it; until then it is a candidate, an
// entry with a count, and gradients are dropped. Eviction: entries that no update has named for evict_after
// updates leave in a sweep over the range, a slice with each update; and if a hash range has range_rows
// entries, a sixteenth of them, those that were named longest ago, makes room for the next one.
// All of it depends on the keys of a hash range and the numbers of updates alone, neither on segments nor on
// how ranges are spread over ps. The row of the bias is always there.
// Owner: HashPart, or an evaluator. Thread: one; the const calls any while nothing changes.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/model/table_layout.h"
#include "trainer/table/block_memory.h"
#include "trainer/table/hash_segment.h"
#include "trainer/table/key_list.h"
#include "trainer/table/row_store.h"

namespace dtrain {

struct HashLimits {
  int64_t admit_after = 1;
  int64_t evict_after = 0;  // 0: never
  uint64_t range_rows = 0;  // entries of a hash range; 0: without end
};

// HashRow: what is kept of a row.
struct HashRow {
  static constexpr uint32_t kLeft =
      ~uint32_t{0};  // count, in a delta: it was in the base, and is not any more

  uint64_t row = 0;
  uint64_t step = 0;              // the latest update that named it
  uint32_t count = 0;             // of a candidate: the updates that named it; 0: it has values
  const float* values = nullptr;  // null: it is a candidate
};

class HashStore {
 public:
  static constexpr int64_t kMaxAdmitAfter = 1'000'000;  // what an entry can count
  static constexpr int kMaxSlices = 1 << 16;
  static constexpr size_t kMaxLeft = size_t{1} << 23;  // rows that are noted as left, 64 MiB

  // The memory of all hash ranges that have so many entries each, all rows with values, or all candidates.
  enum class Filled { kRows, kCandidates };
  static size_t BytesOfRanges(uint64_t entries, int64_t values, Filled filled = Filled::kRows);

  // `values`: of a row, as those that `initial` writes.
  HashStore(RowRange rows, int64_t values, RowStore::Initial initial, HashLimits limits = {},
            RowMemory memory = {});
  ~HashStore() { FreeAll(); }

  int64_t values() const { return values_; }
  const RowRange& rows() const { return rows_; }
  void InitialRow(uint64_t row, float* values) const { initial_(row, values); }
  // Null: it has none.
  const float* Find(uint64_t row) const;
  // Whether there is a row, or a candidate, that an update behind `step` has named. Not of the bias.
  bool IsNewer(uint64_t row, uint64_t step) const {
    const HashEntry* const entry = SegmentOf(row).Find(row);
    return entry != nullptr && entry->step > step;
  }
  // Copies the first `width` values of rows to [keys, width], the initial ones of those that have none.
  void Read(KeySpan keys, int64_t width, float* out) const;

  // Update number `step` names these keys, ascending, few enough that all lie in the caches: writes where the
  // values of each are; null: it has none. They stay there until the next call.
  void Touch(KeySpan keys, uint64_t step, float** values);
  // Removes what has become too old by update `step` in its slice of these rows.
  void Sweep(RowRange rows, uint64_t step);
  // Sets a row to what was kept of it. One that has values keeps them if this is a candidate.
  void Put(const HashRow& row);
  // Sets all rows of some hash ranges that have none yet; `rows` ascend. It takes a tenth of the time of
  // Put(), which makes a segment anew each time it is full.
  void PutRanges(gpu::Span<const HashRow> rows);
  // Forgets all.
  void Clear();
  // Sets evicted(), which the rows of a copy do not tell.
  void SetEvicted(int64_t evicted) { evicted_ = evicted; }

  // Calls `visit(HashRow)` in ascending order for the rows of a range, with those of candidates.
  template <typename Visit>
  void VisitRange(RowRange range, Visit&& visit) const {
    for (size_t at = RangeOf(range.begin); at < ranges_.size(); ++at) {
      for (const HashSegment& segment : ranges_[at].segments) {
        if (segment.rows().end <= range.begin) continue;
        if (segment.rows().begin >= range.end) return;
        segment.VisitFrom(range.begin, [&](const HashEntry& entry) {
          if (entry.row >= range.end) return false;
          visit(RowIn(segment, entry));
          return true;
        });
      }
    }
    if (has_bias() && range.end == rows_.end) visit(Bias());
  }
  // Calls `visit(segment)` in ascending order.
  template <typename Visit>
  void VisitSegments(Visit&& visit) const {
    for (const HashRange& range : ranges_) {
      for (const HashSegment& segment : range.segments) visit(segment);
    }
  }
  bool has_bias() const { return !bias_.empty(); }
  HashRow Bias() const { return {rows_.end - 1, bias_step_, 0, bias_.data()}; }

  // Called with a row before it changes for the first time since update `cut`, and before it leaves if that
  // is the first change. Not with the bias. Null: nobody asks.
  using Told = std::function<void(const HashRow&)>;
  void TellChanges(uint64_t cut, const Told* told) {
    cut_ = cut;
    told_ = told;
  }
  // Called with each row that leaves.
  void TellLeaving(const Told* told) { leaving_ = told; }

  // The rows that are there now are the base: from now on those of it that leave are noted, and what was
  // noted before is forgotten.
  void BeginBase();
  // The updates that follow are of a block whose number of updates was `step` then.
  void SetBaseStep(uint64_t step) { base_step_ = step; }
  // Appends the rows of a range that were in the base and have left since, in ascending order, also those
  // that have come again. False: there were too many to note.
  bool LeftSinceBase(RowRange range, std::vector<uint64_t>* rows) const;

  int64_t entries() const { return entries_; }        // with candidates, without the bias
  int64_t value_rows() const { return value_rows_; }  // without candidates
  int64_t evicted() const { return evicted_; }        // entries that left, of both kinds
  size_t bytes() const { return memory_.bytes(); }

 private:
  struct HashRange {
    std::vector<HashSegment> segments;  // in order; they cover it
    uint64_t count = 0;                 // entries
    std::vector<uint64_t> left;         // since the base, of which they were
  };

  size_t RangeOf(uint64_t row) const { return static_cast<size_t>(HashRangeOf(row) - first_range_); }
  const HashSegment& SegmentOf(uint64_t row) const {
    const std::vector<HashSegment>& segments = ranges_[RangeOf(row)].segments;
    return segments.size() == 1 ? segments[0] : segments[SegmentAt(segments, row)];
  }
  static size_t SegmentAt(const std::vector<HashSegment>& segments, uint64_t row);
  bool IsBias(uint64_t row) const { return has_bias() && row + 1 == rows_.end; }
  HashRow RowIn(const HashSegment& segment, const HashEntry& entry) const;
  void Tell(const HashSegment& segment, const HashEntry& entry) const {
    if (told_ != nullptr && entry.step <= cut_) (*told_)(RowIn(segment, entry));
  }
  // Before the first change of an entry since the base, and before it leaves.
  bool IsInBase(const HashEntry& entry) const { return entry.in_base != 0 || entry.step <= base_step_; }
  void NoteLeaving(HashRange* range, uint64_t row);
  void Begin();
  void FreeAll();
  void Name(uint64_t row, uint64_t step);
  HashEntry* Insert(HashRange* range, uint64_t row);
  void Admit(HashRange* range, HashEntry* entry);
  void Grow(HashRange* range, uint64_t row);
  void PutRange(gpu::Span<const HashRow> rows);
  void Make(RowRange rows, gpu::Span<const HashEntry> entries, const HashSegment& from);
  gpu::Span<const HashEntry> EntriesOf(const HashSegment& segment);
  void Shrink(HashSegment* segment);
  void EvictOldest(HashRange* range);
  template <typename Leaves>
  void RemoveIf(HashRange* range, HashSegment* segment, Leaves&& leaves);

  const RowRange rows_;
  const int64_t values_;
  const RowStore::Initial initial_;
  const HashLimits limits_;
  const uint64_t slices_;  // a power of two: the range is swept once in so many updates
  const uint64_t first_range_;
  BlockMemory memory_;
  std::vector<HashRange> ranges_;
  std::vector<float> bias_;  // empty: it is not in these rows
  uint64_t bias_step_ = 0;
  int64_t entries_ = 0;
  int64_t value_rows_ = 0;
  int64_t evicted_ = 0;
  uint64_t cut_ = 0;
  const Told* told_ = nullptr;
  const Told* leaving_ = nullptr;
  bool has_base_ = false;
  uint64_t base_step_ = 0;
  size_t left_ = 0;                    // since the base; beyond kMaxLeft they are noted no more
  std::vector<HashEntry> moved_;       // kept to spare the allocation
  std::vector<HashSegment> made_;      // the same
  std::vector<uint64_t> steps_;        // the same
  std::vector<float> put_;             // the same
  mutable std::vector<float> unmade_;  // the initial values of a row that has none
};

}  // namespace dtrain
