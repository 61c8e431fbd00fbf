#include "trainer/worker/gradient_buffers.h"

namespace dtrain {

GradientBuffers::GradientBuffers(size_t bytes, int64_t most_open) : bytes_(bytes) {
  for (int64_t i = 0; i < most_open + 1; ++i) buffers_.emplace_back(bytes);
}

const net::LentBuffer& GradientBuffers::Free() {
  for (size_t tried = 0; tried < buffers_.size(); ++tried) {
    next_ = (next_ + 1) % buffers_.size();
    if (!buffers_[next_].lent()) return buffers_[next_];
  }
  // A transport may hold on to bytes a moment after they were answered.
  buffers_.emplace_back(bytes_);
  next_ = buffers_.size() - 1;
  return buffers_.back();
}

}  // namespace dtrain
