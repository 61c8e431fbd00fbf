#include "gpu/cuda/queue.h"

#include <algorithm>

namespace dtrain::gpu::cuda {

SharedStream::SharedStream(Device& device)
    : device_(device), handle_(device.runtime().NewStream(device.info().id)) {}

SharedStream::~SharedStream() { device_.runtime().Delete(handle_); }

Queue::Queue(Device& device) : Queue(std::make_shared<SharedStream>(device)) {}

Queue::Queue(std::shared_ptr<SharedStream> stream) : stream_(std::move(stream)) {}

Queue::~Queue() {
  if (blas_ != BlasHandle{}) runtime().Delete(blas_);
  for (const Memory& scratch : scratches_) device().Free(stream(), scratch.data, scratch.bytes);
  for (const Memory& tickets : tickets_) device().Free(stream(), tickets.data, tickets.bytes);
  if (result_ != nullptr) runtime().FreePinned(result_);
}

void Queue::Multiply(const Product& product) {
  if (blas_ == BlasHandle{}) blas_ = runtime().NewBlas(stream(), device().tf32());
  runtime().Multiply(blas_, product);
}

bool Queue::Grow(std::vector<Memory>* places, int64_t bytes, const char* what) {
  const int64_t have = places->empty() ? 0 : places->back().bytes;
  if (bytes <= have) return false;
  // At least doubled, so that all old places together are smaller than the new one.
  const int64_t wanted = std::max(bytes, 2 * have);
  places->reserve(places->size() + 1);
  places->push_back({device().Allocate(stream(), wanted, what), wanted});
  return true;
}

void* Queue::Scratch(int64_t bytes) {
  Grow(&scratches_, bytes, "the scratch memory of the operations");
  return scratches_.empty() ? nullptr : scratches_.back().data;
}

uint32_t* Queue::Ticket(int64_t count) {
  const bool fresh = Grow(&tickets_, count * int64_t{sizeof(uint32_t)}, "counters");
  if (fresh) Fill(tickets_.back().data, 0, tickets_.back().bytes);
  return static_cast<uint32_t*>(tickets_.back().data);
}

int64_t* Queue::Result() {
  if (result_ == nullptr) {
    result_ = static_cast<int64_t*>(AllocatePinned(runtime(), sizeof(int64_t), "results"));
  }
  return result_;
}

void* AllocatePinned(Runtime& runtime, int64_t bytes, const char* what) {
  void* const memory = runtime.AllocatePinned(static_cast<size_t>(bytes));
  if (memory != nullptr) return memory;
  throw UserError(
      "{} MiB of memory that the GPU can reach for {}: the system has too little. Use a smaller model or "
      "batch, or raise the limit of locked memory (ulimit -l).",
      (bytes + (1 << 20) - 1) >> 20, what);
}

}  // namespace dtrain::gpu::cuda
