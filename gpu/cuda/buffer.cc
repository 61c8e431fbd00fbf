#include "gpu/cuda/buffer.h"

namespace dtrain::gpu::cuda {

void* AllocatePinned(Runtime& runtime, int64_t bytes, const char* what) {
  void* const memory = runtime.AllocatePinned(static_cast<size_t>(bytes));
  if (memory != nullptr) return memory;
  throw UserError(
      "{} MiB of memory that the GPU can reach for {}: the system has too little. Use a smaller model or "
      "batch, or "
      "raise the limit of locked memory (ulimit -l).",
      (bytes + (1 << 20) - 1) >> 20, what);
}

}  // namespace dtrain::gpu::cuda
