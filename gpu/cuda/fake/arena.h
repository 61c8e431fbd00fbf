// Arena: the memory of a fake device. This process can access it only between Open() and Close(). Freed
// memory is filled with 0xff, and behind each block lies a guard that must not change. Owner: FakeRuntime.
// Thread: one at a time.
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

  // Returns uninitialised memory; null if there is no room.
  char* Allocate(size_t bytes);
  // Frees `block` for what is queued from now on; work that is queued already may still use it. Aborts if it
  // is not a block or is retired already.
  void Retire(const void* block);
  // Makes a retired block free memory. Must be open.
  void Release(const void* block);
  // Aborts if anything was written behind a block. Must be open.
  void CheckGuards() const;

  bool Contains(const void* at) const;
  // Whether [at, at + bytes) lies within one block that is not retired; with `retired`, within one that is
  // not released.
  bool Holds(const void* at, size_t bytes, bool retired = false) const;
  size_t size() const { return size_; }
  size_t free_bytes() const { return free_bytes_; }
  size_t live() const;  // blocks that are not retired

 private:
  struct Block {
    size_t bytes;  // as requested
    size_t room;   // as taken, with the guard
    bool retired;
  };

  void CheckGuard(size_t offset, const Block& block) const;

  const size_t size_;
  char* const memory_;
  bool open_ = false;
  size_t used_end_ = 0;  // memory beyond this was never used
  size_t free_bytes_;
  std::map<size_t, Block> blocks_;  // by offset
  std::map<size_t, size_t> free_;   // offset: bytes
};

}  // namespace dtrain::gpu::cuda
