// LentBuffer: tensor memory that can be lent to a transport while its owner goes on living, or ends.
// The owner writes only while lent() is false; the memory goes when the owner and the last lender's frame
// are both gone, so a frame that still lingers in a closing transport reads valid bytes.
// Thread: owner's calls from one thread; releases from any.
#pragma once

#include <atomic>
#include <cstddef>
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

  // 64-byte aligned, zeroed.
  explicit LentBuffer(size_t bytes);
  // `count` of them in one piece of memory, which goes with the last of them: in huge pages where the system
  // has them, so that touching it for the first time costs a fraction. Not zeroed.
  static std::vector<LentBuffer> Several(size_t count, size_t bytes);
  ~LentBuffer();
  LentBuffer(LentBuffer&& other) noexcept : block_(other.block_) { other.block_ = nullptr; }
  LentBuffer& operator=(LentBuffer&& other) noexcept;
  LentBuffer(const LentBuffer&) = delete;
  LentBuffer& operator=(const LentBuffer&) = delete;

  float* floats() const;
  size_t bytes() const;
  // Whether a transport may still read the bytes.
  bool lent() const;
  // Bytes [offset, offset + size), to be put into a frame exactly once.
  LentBytes Lend(size_t offset, size_t size) const;
  // Another owner of the same bytes, which reads and lends them on any one thread: while it lives, lent() is
  // true for both.
  LentBuffer Share() const { return LentBuffer(KeepLent().release()); }
  // Keeps lent() true while it lives, for a sender that has not sent all yet.
  Hold KeepLent() const;

 private:
  explicit LentBuffer(Block* block) : block_(block) {}
  static void Release(void* data, void* block);
  Block* block_;
};

}  // namespace dtrain::net
