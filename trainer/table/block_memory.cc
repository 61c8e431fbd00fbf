#include "trainer/table/block_memory.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/error.h"

namespace dtrain {

BlockMemory::~BlockMemory() {
  for (std::byte* const region : regions_) munmap(region, kRegionBytes);
}

size_t BlockMemory::Taken(size_t bytes) {
  return bytes < kMinBytes ? bytes : (bytes + kPage - 1) / kPage * kPage;
}

std::byte* BlockMemory::Take(size_t bytes) {
  const size_t taken = Taken(bytes);
  std::byte* const block =
      taken < kMinBytes ? static_cast<std::byte*>(::operator new(taken)) : TakePages(taken);
  bytes_ += taken;
  return block;
}

std::byte* BlockMemory::TakePages(size_t bytes) {
  DT_CHECK(bytes <= kRegionBytes, bytes);
  if (const auto same = free_.find(bytes); same != free_.end() && !same->second.empty()) {
    std::byte* const block = same->second.back();
    same->second.pop_back();
    return block;
  }
  if (used_ + bytes > kRegionBytes) {
    constexpr int64_t kReserve = 16 << 20;  // for what else the process does
    const MachineMemory left = ask_.left();
    if (left.bytes != 0 && left.bytes < ask_.sharers * static_cast<int64_t>(kRegionBytes) + kReserve) {
      Fail(fmt::format("{} are left ({})", BytesText(static_cast<double>(left.bytes)), left.source));
    }
    void* const region = mmap(nullptr, kRegionBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED) Fail(std::strerror(errno));
    regions_.push_back(static_cast<std::byte*>(region));
    used_ = 0;
  }
  std::byte* const block = regions_.back() + used_;
  used_ += bytes;
  return block;
}

// With less memory than that the kernel would kill the process.
void BlockMemory::Fail(const std::string& why) const {
  throw Failure(
      ExitCode::kInternal,
      fmt::format("the rows of the table take {}, and there is no memory for more: {}. Use more memory or, "
                  "for a run, a smaller model.max_rows or more ps on other machines.",
                  BytesText(static_cast<double>(bytes_)), why));
}

void BlockMemory::Give(std::byte* block, size_t bytes) {
  const size_t taken = Taken(bytes);
  bytes_ -= taken;
  if (taken < kMinBytes) return ::operator delete(block);
  madvise(block, taken, MADV_DONTNEED);
  free_[taken].push_back(block);
}

}  // namespace dtrain
