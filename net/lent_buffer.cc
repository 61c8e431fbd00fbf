#include "net/lent_buffer.h"

#include <cstring>
#include <new>

#include "base/check.h"

namespace dtrain::net {
namespace {
constexpr std::align_val_t kAlignment{64};
}  // namespace

struct alignas(64) LentBuffer::Block {
  explicit Block(size_t size) : bytes(size) {}
  std::atomic<int> references{1};  // the owner's and one for each lent frame
  const size_t bytes;
  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
};

LentBuffer::LentBuffer(size_t bytes) {
  void* memory = ::operator new(sizeof(Block) + bytes, kAlignment);
  block_ = new (memory) Block(bytes);
  std::memset(block_->data(), 0, bytes);
}

LentBuffer::~LentBuffer() {
  if (block_ != nullptr) Release(nullptr, block_);
}

LentBuffer& LentBuffer::operator=(LentBuffer&& other) noexcept {
  std::swap(block_, other.block_);
  return *this;
}

float* LentBuffer::floats() const { return reinterpret_cast<float*>(block_->data()); }

size_t LentBuffer::bytes() const { return block_->bytes; }

// Acquire: what the last reader did with the bytes happened before the owner writes again.
bool LentBuffer::lent() const { return block_->references.load(std::memory_order_acquire) > 1; }

LentBytes LentBuffer::Lend(size_t offset, size_t size) const {
  DT_CHECK(offset + size <= block_->bytes, offset, size, block_->bytes);
  return {block_->data() + offset, size, &LentBuffer::Release, KeepLent().release()};
}

// Release: what the owner wrote happened before the transport lets go, and frees.
LentBuffer::Hold LentBuffer::KeepLent() const {
  block_->references.fetch_add(1, std::memory_order_release);
  return Hold(block_);
}

void LentBuffer::Release(void* /*data*/, void* context) {
  Block* block = static_cast<Block*>(context);
  if (block->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  block->~Block();
  ::operator delete(static_cast<void*>(block), kAlignment);
}

}  // namespace dtrain::net
