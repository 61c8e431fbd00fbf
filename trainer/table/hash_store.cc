#include "trainer/table/hash_store.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace dtrain {
namespace {

// An entry leaves at most an eighth later than it might, and a sweep is spread over as many updates.
uint64_t SlicesFor(int64_t evict_after) {
  uint64_t slices = 1;
  while (slices < HashStore::kMaxSlices && slices * 16 <= static_cast<uint64_t>(evict_after)) slices *= 2;
  return slices;
}

// Of a hash range that is full, so many make room.
uint64_t Leaving(uint64_t range_rows) { return std::max<uint64_t>(1, range_rows / 16); }

}  // namespace

size_t HashStore::BytesOfRanges(uint64_t entries, int64_t values, Filled filled) {
  size_t sum = 0;
  for (uint64_t range = 0; range < TableLayout::kHashRanges; ++range) {
    const auto bytes_of = [&](uint64_t segments) {
      const auto in_one = static_cast<size_t>((entries + segments - 1) / segments);
      const size_t rows = filled == Filled::kRows ? in_one : 0;
      return HashSegment::BytesFor(in_one, rows, static_cast<size_t>(values), range);
    };
    uint64_t segments = 1;
    while (segments < entries && bytes_of(segments) > HashSegment::kMaxBytes) segments *= 2;
    sum += static_cast<size_t>(segments) * BlockMemory::Taken(bytes_of(segments));
  }
  return sum;
}

HashStore::HashStore(RowRange rows, int64_t values, RowStore::Initial initial, HashLimits limits,
                     RowMemory memory)
    : rows_(rows),
      values_(values),
      initial_(std::move(initial)),
      limits_(limits),
      slices_(SlicesFor(limits.evict_after)),
      first_range_(HashRangeOf(rows.begin)),
      memory_(std::move(memory)),
      ranges_(static_cast<size_t>(HashRangeOf(rows.end - 1) - first_range_ + 1)),
      bias_(rows.end == ~uint64_t{0} ? static_cast<size_t>(values) : 0),
      unmade_(static_cast<size_t>(values)) {
  DT_CHECK(limits.admit_after >= 1 && limits.admit_after <= kMaxAdmitAfter, limits.admit_after);
  Begin();
}

void HashStore::FreeAll() {
  for (HashRange& range : ranges_) {
    for (HashSegment& segment : range.segments) segment.Free(&memory_);
  }
}

void HashStore::Clear() {
  FreeAll();
  Begin();
}

// Makes the state without rows.
void HashStore::Begin() {
  for (size_t at = 0; at < ranges_.size(); ++at) {
    HashRange& range = ranges_[at];
    const uint64_t begin = (first_range_ + at) << kHashRangeShift;
    const uint64_t end = std::min(begin + ((uint64_t{1} << kHashRangeShift) - 1), rows_.end - 1) + 1;
    range.segments.assign(1,
                          *HashSegment::Make({begin, end}, {}, {}, static_cast<size_t>(values_), &memory_));
    range.count = 0;
    range.left.clear();
  }
  entries_ = value_rows_ = evicted_ = 0;
  has_base_ = false;
  bias_step_ = 0;
  if (has_bias()) initial_(rows_.end - 1, bias_.data());
}

size_t HashStore::SegmentAt(const std::vector<HashSegment>& segments, uint64_t row) {
  const auto behind =
      std::upper_bound(segments.begin(), segments.end(), row,
                       [](uint64_t its, const HashSegment& segment) { return its < segment.rows().begin; });
  return static_cast<size_t>(behind - segments.begin()) - 1;
}

HashRow HashStore::RowIn(const HashSegment& segment, const HashEntry& entry) const {
  if (entry.has_values) return {entry.row, entry.step, 0, segment.ValuesOf(entry)};
  return {entry.row, entry.step, static_cast<uint32_t>(entry.place), nullptr};
}

const float* HashStore::Find(uint64_t row) const {
  if (IsBias(row)) return bias_.data();
  const HashSegment& segment = SegmentOf(row);
  const HashEntry* const entry = segment.Find(row);
  return entry == nullptr || !entry->has_values ? nullptr : segment.ValuesOf(*entry);
}

void HashStore::Read(KeySpan keys, int64_t width, float* out) const {
  constexpr int64_t kTile = 32;
  const float* found[kTile];
  for (int64_t begin = 0; begin < keys.size; begin += kTile) {
    const int64_t count = std::min(kTile, keys.size - begin);
    const uint64_t* const tile = keys.data + begin;
    for (int64_t i = 0; i < count; ++i) SegmentOf(tile[i]).WillFind(tile[i]);
    for (int64_t i = 0; i < count; ++i) {
      found[i] = Find(tile[i]);
      __builtin_prefetch(found[i]);
    }
    for (int64_t i = 0; i < count; ++i) {
      const float* row = found[i];
      if (row == nullptr) {
        initial_(tile[i], unmade_.data());
        row = unmade_.data();
      }
      out = std::copy_n(row, width, out);
    }
  }
}

void HashStore::Touch(KeySpan keys, uint64_t step, float** values) {
  constexpr int64_t kAhead = 16;
  for (int64_t i = 0; i < keys.size; ++i) {
    if (i + kAhead < keys.size) SegmentOf(keys[i + kAhead]).WillFind(keys[i + kAhead]);
    Name(keys[i], step);
  }
  for (int64_t i = 0; i < keys.size; ++i) {
    values[i] = const_cast<float*>(Find(keys[i]));
    __builtin_prefetch(values[i], 1);
  }
}

void HashStore::Name(uint64_t row, uint64_t step) {
  if (IsBias(row)) return void(bias_step_ = step);
  HashRange& range = ranges_[RangeOf(row)];
  HashSegment& segment = range.segments[SegmentAt(range.segments, row)];
  HashEntry* entry = segment.Find(row);
  if (entry != nullptr) {
    Tell(segment, *entry);
    if (entry->step <= base_step_) entry->in_base = 1;
    entry->step = step;
    if (entry->has_values) return;
    entry->place = entry->place + 1;
  } else {
    if (limits_.range_rows > 0 && range.count >= limits_.range_rows) EvictOldest(&range);
    entry = Insert(&range, row);
    entry->step = step;
    entry->place = 1;
  }
  if (static_cast<int64_t>(entry->place) >= limits_.admit_after) Admit(&range, entry);
}

void HashStore::BeginBase() {
  for (HashRange& range : ranges_) std::vector<uint64_t>().swap(range.left);
  left_ = 0;
  has_base_ = true;
}

void HashStore::NoteLeaving(HashRange* range, uint64_t row) {
  if (left_ <= kMaxLeft && ++left_ <= kMaxLeft) range->left.push_back(row);
}

bool HashStore::LeftSinceBase(RowRange range, std::vector<uint64_t>* rows) const {
  if (left_ > kMaxLeft) return false;
  const size_t before = rows->size();
  for (size_t at = RangeOf(range.begin); at < ranges_.size() && at <= RangeOf(range.end - 1); ++at) {
    for (const uint64_t row : ranges_[at].left) {
      if (range.begin <= row && row < range.end) rows->push_back(row);
    }
  }
  std::sort(rows->begin() + static_cast<ptrdiff_t>(before), rows->end());
  return true;
}

HashEntry* HashStore::Insert(HashRange* range, uint64_t row) {
  HashEntry* entry = nullptr;
  while ((entry = range->segments[SegmentAt(range->segments, row)].Insert(row)) == nullptr) Grow(range, row);
  ++range->count;
  ++entries_;
  return entry;
}

// Gives an entry the initial values of its row.
void HashStore::Admit(HashRange* range, HashEntry* entry) {
  const uint64_t row = entry->row;
  while (!range->segments[SegmentAt(range->segments, row)].GiveValues(entry)) {
    Grow(range, row);
    entry = range->segments[SegmentAt(range->segments, row)].Find(row);
  }
  ++value_rows_;
  initial_(row, range->segments[SegmentAt(range->segments, row)].ValuesOf(*entry));
}

// They are there until the next call.
gpu::Span<const HashEntry> HashStore::EntriesOf(const HashSegment& segment) {
  moved_.clear();
  segment.VisitFrom(segment.rows().begin, [&](const HashEntry& entry) {
    moved_.push_back(entry);
    return true;
  });
  return {moved_.data(), static_cast<int64_t>(moved_.size())};
}

// Makes room for one more in the segment where a row lies.
void HashStore::Grow(HashRange* range, uint64_t row) {
  const size_t at = SegmentAt(range->segments, row);
  HashSegment full = range->segments[at];
  made_.clear();
  Make(full.rows(), EntriesOf(full), full);
  full.Free(&memory_);
  range->segments[at] = made_[0];
  range->segments.insert(range->segments.begin() + static_cast<ptrdiff_t>(at) + 1, made_.begin() + 1,
                         made_.end());
}

// Two segments in the place of one part the rows where their entries are half of them.
void HashStore::Make(RowRange rows, gpu::Span<const HashEntry> entries, const HashSegment& from) {
  if (auto one = HashSegment::Make(rows, entries, from, static_cast<size_t>(values_), &memory_)) {
    return made_.push_back(*one);
  }
  const int64_t half = entries.size / 2;
  const uint64_t middle = entries[half].row;
  Make({rows.begin, middle}, {entries.data, half}, from);
  Make({middle, rows.end}, {entries.data + half, entries.size - half}, from);
}

template <typename Leaves>
void HashStore::RemoveIf(HashRange* range, HashSegment* segment, Leaves&& leaves) {
  const size_t entries = segment->count(), value_rows = segment->value_rows();
  segment->RemoveIf([&](const HashEntry& entry) {
    if (!leaves(entry)) return false;
    Tell(*segment, entry);
    if (has_base_ && IsInBase(entry)) NoteLeaving(range, entry.row);
    if (leaving_ != nullptr) (*leaving_)(RowIn(*segment, entry));
    return true;
  });
  const size_t left = entries - segment->count();
  range->count -= left;
  entries_ -= static_cast<int64_t>(left);
  evicted_ += static_cast<int64_t>(left);
  value_rows_ -= static_cast<int64_t>(value_rows - segment->value_rows());
  if (left > 0) Shrink(segment);
}

// Makes a segment anew that takes more than twice what it needs, so that it is copied once while it halves.
// It stays as it is where there is no memory for another one beside it, or its entries lie too close together
// for a smaller one.
void HashStore::Shrink(HashSegment* segment) {
  const auto values = static_cast<size_t>(values_);
  const size_t needed = HashSegment::BytesFor(segment->count(), segment->value_rows(), values,
                                              HashRangeOf(segment->rows().begin));
  if (BlockMemory::Taken(segment->bytes()) <= 2 * BlockMemory::Taken(needed)) return;
  std::optional<HashSegment> made;
  try {
    made = HashSegment::Make(segment->rows(), EntriesOf(*segment), *segment, values, &memory_);
  } catch (const Failure&) {
  }
  if (!made) return;
  segment->Free(&memory_);
  *segment = *made;
}

// Of those that were named by the same update the first leave.
void HashStore::EvictOldest(HashRange* range) {
  steps_.clear();
  for (const HashSegment& segment : range->segments) {
    segment.VisitFrom(segment.rows().begin, [&](const HashEntry& entry) {
      steps_.push_back(entry.step);
      return true;
    });
  }
  const auto leaving = static_cast<ptrdiff_t>(Leaving(limits_.range_rows));
  std::nth_element(steps_.begin(), steps_.begin() + leaving - 1, steps_.end());
  const uint64_t last = steps_[static_cast<size_t>(leaving) - 1];
  const auto older =
      std::count_if(steps_.begin(), steps_.begin() + leaving, [&](uint64_t step) { return step < last; });
  int64_t of_last = leaving - older;
  for (HashSegment& segment : range->segments) {
    RemoveIf(range, &segment, [&](const HashEntry& entry) {
      return entry.step < last || (entry.step == last && of_last-- > 0);
    });
  }
}

void HashStore::Sweep(RowRange rows, uint64_t step) {
  const auto age = static_cast<uint64_t>(limits_.evict_after);
  if (age == 0 || step <= age) return;
  // Slices that follow each other are far apart, so that all ps have as much to do.
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
  const uint64_t number = step * kGolden & (slices_ - 1), size = ~uint64_t{0} / slices_ + (slices_ > 1);
  const uint64_t first = std::max(rows.begin, number * size);
  const uint64_t last = std::min(rows.end - 1, number * size + (size - 1));  // with a last slice up to 2^64
  if (first > last) return;
  const auto is_old = [&](const HashEntry& entry) {
    return entry.row >= first && entry.row <= last && entry.step + age < step;
  };
  for (size_t at = RangeOf(first); at < ranges_.size() && at <= RangeOf(last); ++at) {
    for (HashSegment& segment : ranges_[at].segments) {
      if (segment.rows().end <= first || segment.rows().begin > last) continue;
      bool any = false;
      segment.VisitFrom(first, [&](const HashEntry& entry) {
        any = is_old(entry);
        return entry.row <= last && !any;
      });
      if (any) RemoveIf(&ranges_[at], &segment, is_old);
    }
  }
}

void HashStore::Put(const HashRow& row) {
  if (IsBias(row.row)) {
    std::copy_n(row.values, values_, bias_.begin());
    bias_step_ = row.step;
    return;
  }
  HashRange& range = ranges_[RangeOf(row.row)];
  HashEntry* entry = range.segments[SegmentAt(range.segments, row.row)].Find(row.row);
  if (entry == nullptr) entry = Insert(&range, row.row);
  entry->step = row.step;
  if (row.values == nullptr) {
    if (!entry->has_values) entry->place = row.count;
    return;
  }
  if (!entry->has_values) Admit(&range, entry);
  std::copy_n(row.values, values_, const_cast<float*>(Find(row.row)));
}

void HashStore::PutRanges(gpu::Span<const HashRow> rows) {
  const HashRow* begin = rows.begin();
  while (begin != rows.end()) {
    if (IsBias(begin->row)) return Put(*begin);
    const HashRow* const end = std::find_if(begin, rows.end(), [&](const HashRow& row) {
      return HashRangeOf(row.row) != HashRangeOf(begin->row) || IsBias(row.row);
    });
    PutRange({begin, end - begin});
    begin = end;
  }
}

// So many rows at once do not fit into one segment.
void HashStore::PutRange(gpu::Span<const HashRow> rows) {
  constexpr int64_t kAtOnce = HashSegment::kMaxBytes / sizeof(HashEntry);
  HashRange& range = ranges_[RangeOf(rows[0].row)];
  DT_CHECK(range.count == 0, rows[0].row);
  const RowRange all{range.segments.front().rows().begin, range.segments.back().rows().end};
  made_.clear();
  for (int64_t begin = 0; begin < rows.size; begin += kAtOnce) {
    const int64_t end = std::min(begin + kAtOnce, rows.size);
    moved_.clear();
    put_.clear();
    uint64_t with_values = 0;
    for (int64_t i = begin; i < end; ++i) {
      const HashRow& row = rows[i];
      const bool has_values = row.values != nullptr;
      moved_.push_back({row.row, row.step, has_values, 0, has_values ? with_values++ : row.count});
      if (has_values) put_.insert(put_.end(), row.values, row.values + values_);
    }
    Make({begin == 0 ? all.begin : rows[begin].row, end == rows.size ? all.end : rows[end].row}, moved_,
         HashSegment::Over(put_.data(), static_cast<size_t>(values_)));
    value_rows_ += static_cast<int64_t>(with_values);
  }
  for (HashSegment& segment : range.segments) segment.Free(&memory_);
  range.segments = made_;
  range.count = static_cast<uint64_t>(rows.size);
  entries_ += rows.size;
}

}  // namespace dtrain
