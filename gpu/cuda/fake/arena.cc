#include "gpu/cuda/fake/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/check.h"

namespace dtrain::gpu::cuda {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kGuardBytes = 256;
constexpr unsigned char kPoison = 0xff;
constexpr unsigned char kGuard = 0xa5;

char* Reserve(size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  DT_CHECK(memory != MAP_FAILED, "no address space for the memory of a fake device", bytes);
  return static_cast<char*>(memory);
}

}  // namespace

Arena::Arena(size_t bytes) : size_(bytes), memory_(Reserve(bytes)), free_bytes_(bytes) { free_[0] = bytes; }

Arena::~Arena() { munmap(memory_, size_); }

void Arena::Open() {
  if (!open_) DT_CHECK(mprotect(memory_, size_, PROT_READ | PROT_WRITE) == 0);
  open_ = true;
}

void Arena::Close() {
  if (!open_ || used_end_ > kGuarded) return;
  DT_CHECK(mprotect(memory_, size_, PROT_NONE) == 0);
  open_ = false;
}

char* Arena::Allocate(size_t bytes) {
  if (bytes > size_) return nullptr;
  const size_t body = std::max((bytes + kAlignment - 1) / kAlignment * kAlignment, kAlignment);
  const size_t room = body + kGuardBytes;
  const auto at =
      std::find_if(free_.begin(), free_.end(), [&](const auto& gap) { return gap.second >= room; });
  if (at == free_.end()) return nullptr;
  const auto [offset, gap] = *at;
  free_.erase(at);
  if (gap > room) free_[offset + room] = gap - room;
  free_bytes_ -= room;
  used_end_ = std::max(used_end_, offset + room);
  blocks_[offset] = {bytes, room, false};
  const bool was_open = open_;
  Open();
  std::memset(memory_ + offset + bytes, kGuard, room - bytes);
  if (!was_open) Close();
  return memory_ + offset;
}

void Arena::Retire(const void* block) {
  const auto at = blocks_.find(static_cast<size_t>(static_cast<const char*>(block) - memory_));
  DT_CHECK(at != blocks_.end(), "freed: what is no block of device memory, or none any more");
  DT_CHECK(!at->second.retired, "device memory is freed twice");
  at->second.retired = true;
}

void Arena::Release(const void* block) {
  const auto at = blocks_.find(static_cast<size_t>(static_cast<const char*>(block) - memory_));
  DT_CHECK(at != blocks_.end() && at->second.retired);
  auto [offset, freed] = *at;
  CheckGuard(offset, freed);
  std::memset(memory_ + offset, kPoison, freed.room);
  blocks_.erase(at);
  free_bytes_ += freed.room;
  // Merges the gap with its neighbours.
  auto next = free_.lower_bound(offset);
  size_t bytes = freed.room;
  if (next != free_.end() && next->first == offset + bytes) {
    bytes += next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin() && std::prev(next)->first + std::prev(next)->second == offset) {
    std::prev(next)->second += bytes;
  } else {
    free_[offset] = bytes;
  }
}

void Arena::CheckGuards() const {
  for (const auto& [offset, block] : blocks_) CheckGuard(offset, block);
}

void Arena::CheckGuard(size_t offset, const Block& block) const {
  const char* const begin = memory_ + offset + block.bytes;
  const char* const end = memory_ + offset + block.room;
  const bool whole =
      std::all_of(begin, end, [](char byte) { return static_cast<unsigned char>(byte) == kGuard; });
  DT_CHECK(whole, "somebody wrote behind a block of device memory of bytes", block.bytes);
}

bool Arena::Contains(const void* at) const { return at >= memory_ && at < memory_ + size_; }

bool Arena::Holds(const void* at, size_t bytes, bool retired) const {
  if (!Contains(at)) return false;
  const size_t offset = static_cast<size_t>(static_cast<const char*>(at) - memory_);
  auto block = blocks_.upper_bound(offset);
  if (block == blocks_.begin()) return false;
  --block;
  if (block->second.retired && !retired) return false;
  const size_t end = block->first + block->second.bytes;
  return offset <= end && bytes <= end - offset;
}

size_t Arena::live() const {
  return static_cast<size_t>(
      std::count_if(blocks_.begin(), blocks_.end(), [](const auto& block) { return !block.second.retired; }));
}

}  // namespace dtrain::gpu::cuda
