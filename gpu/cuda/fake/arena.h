// Arena: the memory of a device that the fake plays. This process can touch it only between Open() and
// Close(). What was freed is 0xff; behind each block lies a guard that must stay as it is. Owner:
// FakeRuntime. Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace dtrain::gpu::cuda {

class Arena {
 public:
  explicit Arena(size_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  static constexpr size_t kGuarded = size_t{8} << 20;

  void Open();
  void Close();

  // Uninitialised. Null where there is no room.
  char* Allocate(size_t bytes);
  // No longer for what is queued from now on; what is queued already may use it. Ends the process where it is
  // no block, or none any more.
  void Retire(const void* block);
  // Open. Back to what is free; Retire() was before.
  void Release(const void* block);
  // Open. Ends the process where somebody wrote behind a block.
  void CheckGuards() const;

  bool Contains(const void* at) const;
  // Whether `bytes` from `at` are within one block that is not retired, or, with `retired`, not released.
  bool Holds(const void* at, size_t bytes, bool retired = false) const;
  size_t size() const { return size_; }
  size_t free_bytes() const { return free_bytes_; }
  size_t live() const;  // blocks that are not retired

 private:
  struct Block {
    size_t bytes;  // that were asked for
    size_t room;   // that it takes, with the guard
    bool retired;
  };

  void CheckGuard(size_t offset, const Block& block) const;

  const size_t size_;
  char* const memory_;
  bool open_ = false;
  size_t used_end_ = 0;  // what lies behind was never used
  size_t free_bytes_;
  std::map<size_t, Block> blocks_;  // by offset
  std::map<size_t, size_t> free_;   // offset: bytes
};

}  // namespace dtrain::gpu::cuda
