// Floats: an array of float32 in the memory of a backend: this machine's, or a device's.
// Owner: whoever computes on it; not longer than the device. Thread: one at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/cuda/buffer.h"
#include "gpu/view.h"

namespace dtrain::gpu {

class Floats {
 public:
  // `size` times `value`, here.
  Floats(int64_t size, float value) : here_(static_cast<size_t>(size), value) {}
  // The same in the memory of the queue's device. Throws UserError where there is too little; `what` names
  // it.
  Floats(cuda::Queue& queue, int64_t size, float value, const char* what);

  Span<float> span() { return there_.data() == nullptr ? Span<float>(here_) : there_.span(); }

 private:
  std::vector<float> here_;
  cuda::Buffer<float> there_;
};

}  // namespace dtrain::gpu
