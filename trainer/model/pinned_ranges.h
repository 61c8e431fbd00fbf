// PinnedRanges: memory of this process that devices copy from and to by themselves, pinned when it is first
// seen. It must not go before this does. Owner: the models that use the memory, together. Thread: any.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>

#include "gpu/cuda/runtime.h"

namespace dtrain {

class PinnedRanges {
 public:
  explicit PinnedRanges(gpu::cuda::Runtime& runtime) : runtime_(runtime) {}
  ~PinnedRanges() {
    for (const auto& [memory, pinned] : ranges_) {
      if (pinned) runtime_.Unpin(memory);
    }
  }
  PinnedRanges(const PinnedRanges&) = delete;
  PinnedRanges& operator=(const PinnedRanges&) = delete;

  // Whether that memory is pinned. The same memory comes with the same size.
  bool Pin(const void* memory, size_t bytes) {
    const std::lock_guard lock(mutex_);
    auto [at, is_new] = ranges_.try_emplace(const_cast<void*>(memory), false);
    if (is_new) at->second = bytes > 0 && runtime_.Pin(at->first, bytes);
    return at->second;
  }

 private:
  gpu::cuda::Runtime& runtime_;
  std::mutex mutex_;
  std::map<void*, bool> ranges_;
};

}  // namespace dtrain
