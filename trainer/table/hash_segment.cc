#include "trainer/table/hash_segment.h"

#include <algorithm>
#include <cstring>

namespace dtrain {
namespace {

constexpr size_t kMinSlots = 8;

// Sizes grow by an eighth: of what is taken, little is not used, and an entry is copied some ten times. The
// steps of hash ranges that follow each other lie between those of the others.
size_t SizeFor(size_t count, uint64_t range) {
  constexpr size_t kSteps = 8, kFirst = kSteps * kSteps;
  size_t size = count <= kFirst ? 1 : kFirst + range % kSteps;
  while (size < count) size += std::max<size_t>(1, size / 8);
  return size;
}

// Of the homes at most 7/8 have an entry: there to find one takes four steps in the mean.
bool IsFull(size_t entries, size_t slots) { return entries * 8 > slots * 7; }

struct Sizes {
  size_t slots = 0;
  size_t places = 0;
  size_t room = 0;
  size_t bytes = 0;
};

Sizes SizesFor(size_t entries, size_t rows, size_t values, uint64_t range) {
  Sizes sizes;
  sizes.slots = std::max(kMinSlots, SizeFor((entries * 8 + 6) / 7, range));
  sizes.places = sizes.slots + std::min<size_t>(64, 8 + sizes.slots / 8) + 1;
  sizes.room = SizeFor(rows, range);
  sizes.bytes = sizes.places * sizeof(HashEntry) + sizes.room * values * sizeof(float);
  return sizes;
}

}  // namespace

size_t HashSegment::BytesFor(size_t entries, size_t rows, size_t values, uint64_t range) {
  return SizesFor(entries + 1, rows + 1, values, range).bytes;
}

std::optional<HashSegment> HashSegment::Make(RowRange rows, gpu::Span<const HashEntry> entries,
                                             const HashSegment& from, size_t values, BlockMemory* memory) {
  const auto count = static_cast<size_t>(entries.size);
  const auto with_values = static_cast<size_t>(
      std::count_if(entries.begin(), entries.end(), [](const HashEntry& entry) { return entry.has_values; }));
  const Sizes sizes = SizesFor(count + 1, with_values + 1, values, HashRangeOf(rows.begin));
  if (sizes.bytes > kMaxBytes && count > 1) return std::nullopt;
  HashSegment made;
  made.rows_ = rows;
  made.slots_ = static_cast<uint32_t>(sizes.slots);
  made.places_ = static_cast<uint32_t>(sizes.places);
  made.room_ = static_cast<uint32_t>(sizes.room);
  made.row_values_ = static_cast<uint32_t>(values);
  made.bytes_ = sizes.bytes;
  const unsigned __int128 homes = static_cast<unsigned __int128>(sizes.slots) << 64;
  made.scale_ = static_cast<uint64_t>(std::min<unsigned __int128>(homes / rows.size(), ~uint64_t{0}));
  std::byte* const block = memory->Take(sizes.bytes);
  made.entries_ = reinterpret_cast<HashEntry*>(block);
  made.values_ = reinterpret_cast<float*>(block + sizes.places * sizeof(HashEntry));
  if (made.Fill(entries, from)) return made;
  made.Free(memory);
  return std::nullopt;
}

// Copies entries and their values. False: they do not leave an empty place at the end.
bool HashSegment::Fill(gpu::Span<const HashEntry> entries, const HashSegment& from) {
  const HashEntry empty{HashEntry::kNoRow, 0, 0, 0, 0};
  size_t next = 0;
  for (const HashEntry& entry : entries) {
    const size_t at = std::max(next, HomeOf(entry.row));
    if (at + 2 >= places_) return false;
    std::fill(entries_ + next, entries_ + at, empty);
    HashEntry& copy = entries_[at] = entry;
    next = at + 1;
    ++count_;
    if (!entry.has_values) continue;
    copy.place = fresh_++;
    ++value_rows_;
    std::memcpy(ValuesOf(copy), from.ValuesOf(entry), row_values_ * sizeof(float));
  }
  std::fill(entries_ + next, entries_ + places_, empty);
  return true;
}

HashSegment HashSegment::Over(float* row_values, size_t values) {
  HashSegment over;
  over.values_ = row_values;
  over.row_values_ = static_cast<uint32_t>(values);
  return over;
}

void HashSegment::Free(BlockMemory* memory) { memory->Give(reinterpret_cast<std::byte*>(entries_), bytes_); }

HashEntry* HashSegment::Insert(uint64_t row) {
  if (IsFull(count_ + 1, slots_)) return nullptr;
  HashEntry* at = entries_ + HomeOf(row);
  while (at->row < row) ++at;
  HashEntry* behind = at;
  while (behind->row != HashEntry::kNoRow) ++behind;
  if (behind + 1 == entries_ + places_) return nullptr;
  std::memmove(static_cast<void*>(at + 1), at, static_cast<size_t>(behind - at) * sizeof(HashEntry));
  *at = {row, 0, 0, 0, 0};
  ++count_;
  return at;
}

bool HashSegment::GiveValues(HashEntry* entry) {
  if (free_ != 0) {
    entry->place = free_ - 1;
    std::memcpy(&free_, ValuesOf(*entry), sizeof free_);
  } else {
    if (fresh_ == room_) return false;
    entry->place = fresh_++;
  }
  entry->has_values = 1;
  ++value_rows_;
  return true;
}

void HashSegment::Forget(const HashEntry& entry) {
  --count_;
  if (!entry.has_values) return;
  --value_rows_;
  std::memcpy(ValuesOf(entry), &free_, sizeof free_);
  free_ = static_cast<uint32_t>(entry.place) + 1;
}

}  // namespace dtrain
