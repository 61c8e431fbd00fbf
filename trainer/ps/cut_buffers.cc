#include "trainer/ps/cut_buffers.h"

#include <utility>

namespace dtrain {

net::LentBuffer CutBuffers::Take() {
  {
    const std::lock_guard lock(mutex_);
    if (!buffers_.empty()) {
      net::LentBuffer taken = std::move(buffers_.back());
      buffers_.pop_back();
      return taken;
    }
  }
  return net::LentBuffer(bytes_);
}

void CutBuffers::Give(net::LentBuffer buffer) {
  if (buffer.lent()) return;
  const std::lock_guard lock(mutex_);
  buffers_.push_back(std::move(buffer));
}

size_t CutBuffers::count() const {
  const std::lock_guard lock(mutex_);
  return buffers_.size();
}

}  // namespace dtrain
