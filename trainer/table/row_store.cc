#include "trainer/table/row_store.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.h"

namespace dtrain {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;

// A place in the list of groups is 32 bits.
constexpr uint64_t kMaxGroups = std::numeric_limits<uint32_t>::max() - 1;
constexpr int kMaxBits = 6;

size_t GroupCount(const RowRange& rows, int bits) { return (rows.size() >> bits) + 1; }

// A group is as large as what one access of memory brings anyway, some lines, and at most 64 rows; where the
// first values of each row are drawn, which takes longer than the access, one line or one row. It is larger
// where there would be too many groups.
int GroupBits(const RowRange& rows, int64_t values, bool drawn) {
  const int64_t group_bytes = drawn ? 64 : 512;
  int bits = 0;
  while (bits < kMaxBits && (values * static_cast<int64_t>(sizeof(float)) << (bits + 1)) <= group_bytes)
    ++bits;
  while (bits < kMaxBits && GroupCount(rows, bits) > kMaxGroups) ++bits;
  if (GroupCount(rows, bits) <= kMaxGroups) return bits;
  throw UserError(
      "model.inputs: one ps has {} rows of the table, and can have at most {}. Use more ps or fewer "
      "features.",
      rows.size(), (kMaxGroups - 1) << kMaxBits);
}

bool IsLarge(const RowRange& rows, int bits, size_t group_bytes) {
  return GroupCount(rows, bits) > RowStore::kMaxWholeBytes / group_bytes;
}

}  // namespace

// Begins where a huge page may.
MappedMemory::MappedMemory(size_t bytes, Pages pages, const char* what)
    : bytes_((bytes + kHugePage - 1) / kHugePage * kHugePage), what_(what) {
  const int protection = pages == Pages::kSmall ? PROT_READ | PROT_WRITE : PROT_NONE;
  mapped_ = mmap(nullptr, bytes_ + kHugePage, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped_ == MAP_FAILED) {
    throw Failure(ExitCode::kInternal, fmt::format("there is no room for {}, {} MiB: {}. Use more ps.", what,
                                                   bytes_ >> 20, std::strerror(errno)));
  }
  const auto address = reinterpret_cast<uintptr_t>(mapped_);
  data_ = static_cast<std::byte*>(mapped_) + (kHugePage - address % kHugePage) % kHugePage;
  madvise(data_, bytes_, pages == Pages::kHuge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);  // where it has such
}

MappedMemory::~MappedMemory() {
  stops_ = true;
  if (populates_.joinable()) populates_.join();
  munmap(mapped_, bytes_ + kHugePage);
}

void MappedMemory::Use(size_t bytes) {
  if (mprotect(data_, std::min(bytes, bytes_), PROT_READ | PROT_WRITE) == 0) return;
  throw Failure(ExitCode::kInternal, fmt::format("there is no memory for {}, {} MiB: {}. Use more ps.", what_,
                                                 bytes >> 20, std::strerror(errno)));
}

void MappedMemory::Clear() { madvise(data_, bytes_, MADV_DONTNEED); }

void MappedMemory::Populate() {
  populates_ = std::thread([this] {
    constexpr size_t kAtOnce = 2 * kHugePage;
    for (size_t at = 0; at < bytes_ && !stops_; at += kAtOnce)
      madvise(data_ + at, std::min(kAtOnce, bytes_ - at), MADV_POPULATE_WRITE);
  });
}

RowStore::RowStore(RowRange rows, int64_t values, Initial initial, std::vector<float> constant,
                   TablePages pages, RowMemory memory)
    : rows_(rows),
      values_(values),
      initial_(std::move(initial)),
      constant_(std::move(constant)),
      unit_bits_(GroupBits(rows, values, false)),
      group_bits_(GroupBits(rows, values, constant_.empty())),
      group_mask_((uint64_t{1} << group_bits_) - 1),
      group_bytes_(static_cast<size_t>(values) * sizeof(float) << group_bits_),
      whole_(pages == TablePages::kHuge || !IsLarge(rows, group_bits_, group_bytes_)),
      ask_(std::move(memory)),
      written_(whole_ ? GroupCount(rows, group_bits_) / 64 + 1 : 0),
      places_(whole_ ? 0 : GroupCount(rows, group_bits_) * sizeof(uint32_t), MappedMemory::Pages::kSmall,
              "the list of a table's rows"),
      memory_(GroupCount(rows, group_bits_) * group_bytes_, MappedMemory::Pages::kHuge, "a table's rows") {
  if (constant_.empty()) {
    drawn_rows_.assign(DrawnCount(), UINT64_MAX);
    drawn_.resize(drawn_rows_.size() * static_cast<size_t>(values_));
  }
  if (whole_ && IsLarge(rows, group_bits_, group_bytes_)) pages_.resize(memory_.bytes() / kHugePage);
  if (whole_) memory_.Use(memory_.bytes());
}

void RowStore::Populate() {
  if (whole_ && pages_.empty()) memory_.Populate();
}

uint64_t RowStore::NextGroup(uint64_t group) const {
  const uint64_t count = group_count();
  while (group < count && Group(group) == nullptr) ++group;
  return group;
}

// Many rows of a large table are compared, and whether one has changed cannot be foretold: no branch for
// each, and no call for those of one or two values.
uint64_t RowStore::ChangedIn(uint64_t group, const float* values, int64_t count, float* scratch) const {
  const uint64_t first = rows_.begin + (group << group_bits_);
  const auto rows = static_cast<int>(std::min<uint64_t>(uint64_t{1} << group_bits_, rows_.end - first));
  const float* const initial = constant_.empty() ? scratch : constant_.data();
  uint64_t changed = 0;
  for (int i = 0; i < rows; ++i, values += values_) {
    if (constant_.empty()) initial_(first + static_cast<uint64_t>(i), scratch);
    const bool differs = count == 1 ? std::memcmp(values, initial, sizeof(float)) != 0
                         : count == 2
                             ? std::memcmp(values, initial, 2 * sizeof(float)) != 0
                             : std::memcmp(values, initial, static_cast<size_t>(count) * sizeof(float)) != 0;
    changed |= uint64_t{differs} << i;
  }
  return changed;
}

void RowStore::Clear() {
  if (used_ == 0) return;
  places_.Clear();
  std::fill(written_.begin(), written_.end(), 0);
  used_ = 0;
}

// How many drawn rows are kept: a power of two.
size_t RowStore::DrawnCount() const {
  constexpr size_t kDrawnBytes = size_t{1} << 20;
  const size_t row_bytes = static_cast<size_t>(values_) * sizeof(float);
  size_t count = 1;
  while (count < rows_.size() && count * 2 * row_bytes <= kDrawnBytes) count *= 2;
  return count;
}

const float* RowStore::InitialRow(uint64_t row) {
  if (!constant_.empty()) return constant_.data();
  const size_t place = row & (drawn_rows_.size() - 1);
  float* const values = drawn_.data() + place * static_cast<size_t>(values_);
  if (drawn_rows_[place] != row) initial_(row, values);
  drawn_rows_[place] = row;
  return values;
}

void RowStore::Fill(uint64_t group, float* values) {
  const uint64_t first = rows_.begin + (group << group_bits_);
  for (uint64_t row = first; row <= first + group_mask_; ++row, values += values_) {
    CopyRow(InitialRow(row), values_, values);
  }
}

// The memory of `more` bytes of groups, with the pages of the list of groups that they touch first. Groups
// are written all over the range, so of n pages about n e^(-g/n) are untouched after g groups.
size_t RowStore::BytesWith(size_t more) const {
  constexpr double kPage = 4096;
  const double pages = static_cast<double>(places_.bytes()) / kPage;
  const double untouched = pages * std::exp(-static_cast<double>(used_) / pages);
  return more + static_cast<size_t>(kPage * std::min(untouched, static_cast<double>(more / group_bytes_)));
}

// What may be taken of the memory that the machine or the control group has left: of the room each of those
// that share it has a part. Throws Failure if that is less than `more`, since the kernel would kill the
// process there. `taken`: the bytes of what was written.
size_t RowStore::RoomFor(size_t more, size_t taken) const {
  constexpr size_t kReserve = 8 * kHugePage;  // for what else the process does
  const MachineMemory left = ask_.left();
  const size_t all = left.bytes == 0 ? SIZE_MAX : static_cast<size_t>(left.bytes);
  const size_t room = (all - std::min(all, kReserve)) / static_cast<size_t>(ask_.sharers);
  if (more <= room) return room;
  throw Failure(
      ExitCode::kInternal,
      fmt::format("the rows of the table that were written take {}, and there is no memory for more: "
                  "{} are left ({}). Use more memory, fewer features (model.inputs or "
                  "data.hash_bits) or, for a run, more ps on other machines.",
                  BytesText(static_cast<double>(taken)), BytesText(static_cast<double>(left.bytes)),
                  left.source));
}

// Takes an eighth more than is in use, or less where memory comes to its end.
void RowStore::Grow() {
  const size_t room = RoomFor(BytesWith(kHugePage), usable_);
  size_t more = std::max(usable_ / 8 / kHugePage, size_t{1}) * kHugePage;
  while (more > kHugePage && BytesWith(more) > room / 2) more -= kHugePage;
  usable_ = std::min(usable_ + more, memory_.bytes());
  memory_.Use(usable_);
}

// Gives a group of a whole range its initial values.
void RowStore::Begin(uint64_t group) {
  const size_t page = group * group_bytes_ / kHugePage;
  if (!pages_.empty() && !pages_[page]) BeginPage(page);
  Fill(group, RowAt(group << group_bits_));
  written_[group / 64] |= uint64_t{1} << group % 64;
  ++used_;
}

void RowStore::BeginPage(size_t page) {
  RoomFor(kHugePage, static_cast<size_t>(std::count(pages_.begin(), pages_.end(), true)) * kHugePage);
  pages_[page] = true;
}

// Returns the place of a group of a large range, with its initial values.
uint32_t RowStore::Make(uint64_t group) {
  const size_t needed = static_cast<size_t>(used_ + 1) * group_bytes_;
  while (needed > usable_) Grow();
  const auto place = static_cast<uint32_t>(++used_);
  Fill(group, RowIn(place, 0));
  reinterpret_cast<uint32_t*>(places_.data())[group] = place;
  return place;
}

}  // namespace dtrain
