#include "trainer/ps/cut_buffers.h"

#include <algorithm>
#include <utility>

namespace dtrain {
namespace {

constexpr size_t kAtATime = 32;

}  // namespace

net::LentBuffer CutBuffers::Take() {
  const std::lock_guard lock(mutex_);
  if (buffers_.empty()) buffers_ = net::LentBuffer::Several(std::min(kAtATime, most_), bytes_);
  net::LentBuffer taken = std::move(buffers_.back());
  buffers_.pop_back();
  return taken;
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
