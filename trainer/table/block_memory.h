// BlockMemory: memory in blocks of up to some MiB that come and go. A block that is given back takes no
// memory any more, so what a process takes is what its blocks take, whatever their order. Owner: HashStore.
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/machine_memory.h"

namespace dtrain {

// What a store of rows asks before it takes more memory.
struct RowMemory {
  std::function<MachineMemory()> left = [] { return ReadMemoryLeft(); };
  int64_t sharers = 1;  // stores on this host that may ask at the same time
};

class BlockMemory {
 public:
  explicit BlockMemory(RowMemory ask = {}) : ask_(std::move(ask)) {}
  ~BlockMemory();
  BlockMemory(const BlockMemory&) = delete;
  BlockMemory& operator=(const BlockMemory&) = delete;

  // The bytes that a block of `bytes` takes.
  static size_t Taken(size_t bytes);

  // Returns a block, at a multiple of 16. Throws Failure if the machine or the control group has no memory
  // left; nothing is changed then.
  std::byte* Take(size_t bytes);
  // `bytes`: as it was taken.
  void Give(std::byte* block, size_t bytes);
  // What all blocks take.
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kPage = 4096;
  // Smaller blocks come from the heap, which keeps what was given back to it.
  static constexpr size_t kMinBytes = kPage;
  static constexpr size_t kRegionBytes = size_t{64} << 20;

  std::byte* TakePages(size_t bytes);
  [[noreturn]] void Fail(const std::string& why) const;

  const RowMemory ask_;
  std::vector<std::byte*> regions_;                 // of address space
  size_t used_ = kRegionBytes;                      // of the last one
  std::map<size_t, std::vector<std::byte*>> free_;  // by bytes: address space without memory
  size_t bytes_ = 0;
};

}  // namespace dtrain
