// LentBuffer: memory for a tensor that can be lent to a transport. The owner writes only where nothing
// is lent; lent() tells of the whole. The memory is freed when the owner and the last frame that borrows it
// are gone, so a frame that remains in a closing transport still reads valid bytes. Thread: one for the
// owner's calls; any for releases.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "net/channel.h"

namespace dtrain::net {

class LentBuffer {
  struct Slab;
  struct Block;
  struct Releaser {
    void operator()(Block* block) const { Release(nullptr, block); }
  };

 public:
  using Hold = std::unique_ptr<Block, Releaser>;

  // Allocates zeroed memory, aligned to 64 bytes.
  explicit LentBuffer(size_t bytes);
  // Allocates `count` buffers in one piece of memory, which is freed with the last of them. It is in huge
  // pages if the system has them, so that the first touch costs a fraction. Not zeroed.
  static std::vector<LentBuffer> AllocateMany(size_t count, size_t bytes);
  ~LentBuffer();
  LentBuffer(LentBuffer&& other) noexcept : block_(other.block_) { other.block_ = nullptr; }
  LentBuffer& operator=(LentBuffer&& other) noexcept;
  LentBuffer(const LentBuffer&) = delete;
  LentBuffer& operator=(const LentBuffer&) = delete;

  float* floats() const;
  size_t bytes() const;
  // Whether a transport may still read the bytes.
  bool lent() const;
  // Returns the bytes [offset, offset + size). They must be put into a frame exactly once.
  LentBytes Lend(size_t offset, size_t size) const;
  // Returns another owner of the same bytes, which may read and lend them on one thread of its own. While it
  // lives, lent() is true for both.
  LentBuffer Share() const { return LentBuffer(KeepLent().release()); }
  // Keeps lent() true as long as the result lives, for a sender that has not sent everything yet.
  Hold KeepLent() const;

 private:
  explicit LentBuffer(Block* block) : block_(block) {}
  static void Release(void* data, void* block);
  Block* block_;
};

// LentBuffers: buffers that are lent again and again. A buffer is written only while it is not lent. Thread:
// one.
class LentBuffers {
 public:
  LentBuffers() = default;
  // Begins with `count` buffers of `bytes` each.
  LentBuffers(size_t count, size_t bytes);
  // A buffer of at least so many bytes that is not lent. It does not move.
  const LentBuffer& Free(size_t bytes);
  size_t count() const { return buffers_.size(); }

 private:
  std::deque<LentBuffer> buffers_;
  size_t next_ = 0;
};

}  // namespace dtrain::net
