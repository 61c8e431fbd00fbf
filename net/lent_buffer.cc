#include "net/lent_buffer.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <new>

#include "base/check.h"

namespace dtrain::net {
namespace {
constexpr size_t kAlign = 64;
constexpr std::align_val_t kAlignment{kAlign};
constexpr size_t kPage = 4096;
constexpr size_t kHugePage = 2 << 20;

// Returns the whole pages of a block to the system while its neighbours live on.
void GiveBack(std::byte* begin, size_t bytes) {
  const auto first = (reinterpret_cast<uintptr_t>(begin) + kPage - 1) / kPage * kPage;
  const auto end = (reinterpret_cast<uintptr_t>(begin) + bytes) / kPage * kPage;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}
}  // namespace

// Slab: the head of the memory that several blocks share.
struct alignas(kAlign) LentBuffer::Slab {
  Slab(size_t count, std::align_val_t aligned) : blocks(count), alignment(aligned) {}
  std::atomic<size_t> blocks;  // still alive
  const std::align_val_t alignment;
};

struct alignas(kAlign) LentBuffer::Block {
  Block(size_t size, Slab* of) : bytes(size), slab(of) {}
  std::atomic<int> references{1};  // the owner's and one for each lent frame
  const size_t bytes;
  Slab* const slab;  // null: the block has memory of its own
  std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
};

LentBuffer::LentBuffer(size_t bytes) {
  void* memory = ::operator new(sizeof(Block) + bytes, kAlignment);
  block_ = new (memory) Block(bytes, nullptr);
  std::memset(block_->data(), 0, bytes);
}

std::vector<LentBuffer> LentBuffer::AllocateMany(size_t count, size_t bytes) {
  const size_t each = sizeof(Block) + (bytes + kAlign - 1) / kAlign * kAlign;
  const size_t size = sizeof(Slab) + count * each;
  std::vector<LentBuffer> buffers;
  buffers.reserve(count);
  if (count == 0) return buffers;
  const std::align_val_t alignment{size < kHugePage ? kAlign : kHugePage};
  auto* const memory = static_cast<std::byte*>(::operator new(size, alignment));
  if (size >= kHugePage) madvise(memory, size, MADV_HUGEPAGE);  // if it fails, small pages are used
  Slab* const slab = new (memory) Slab(count, alignment);
  for (size_t i = 0; i < count; ++i) {
    buffers.push_back(LentBuffer(new (memory + sizeof(Slab) + i * each) Block(bytes, slab)));
  }
  return buffers;
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

// Acquire: the last reader's accesses happen before the owner's next write.
bool LentBuffer::lent() const { return block_->references.load(std::memory_order_acquire) > 1; }

LentBytes LentBuffer::Lend(size_t offset, size_t size) const {
  DT_CHECK(offset + size <= block_->bytes, offset, size, block_->bytes);
  return {block_->data() + offset, size, &LentBuffer::Release, KeepLent().release()};
}

// Release: the owner's writes happen before the transport releases the bytes and frees them.
LentBuffer::Hold LentBuffer::KeepLent() const {
  block_->references.fetch_add(1, std::memory_order_release);
  return Hold(block_);
}

void LentBuffer::Release(void* /*data*/, void* context) {
  Block* block = static_cast<Block*>(context);
  if (block->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  Slab* const slab = block->slab;
  const size_t slab_bytes = sizeof(Block) + block->bytes;
  block->~Block();
  if (slab == nullptr) return ::operator delete(static_cast<void*>(block), kAlignment);
  GiveBack(reinterpret_cast<std::byte*>(block), slab_bytes);
  if (slab->blocks.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::align_val_t alignment = slab->alignment;
  slab->~Slab();
  ::operator delete(static_cast<void*>(slab), alignment);
}

LentBuffers::LentBuffers(size_t count, size_t bytes) {
  for (size_t i = 0; i < count; ++i) buffers_.emplace_back(bytes);
}

// In turns, since the one that was lent last is free last.
const LentBuffer& LentBuffers::Free(size_t bytes) {
  for (size_t tried = 0; tried < buffers_.size(); ++tried) {
    next_ = (next_ + 1) % buffers_.size();
    LentBuffer& buffer = buffers_[next_];
    if (buffer.lent()) continue;
    if (buffer.bytes() < bytes) buffer = LentBuffer(bytes + bytes / 4);  // sizes that vary grow seldom
    return buffer;
  }
  next_ = buffers_.size();
  return buffers_.emplace_back(bytes);
}

}  // namespace dtrain::net
