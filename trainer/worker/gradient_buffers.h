// GradientBuffers: memory for the gradients of a worker, one for each exchange that may be open and one to
// write into; each is written only while nobody reads it.
// Owner and thread: the worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "net/lent_buffer.h"

namespace dtrain {

class GradientBuffers {
 public:
  // Of `bytes` each.
  GradientBuffers(size_t bytes, int64_t most_open);
  // One that is not lent. It stays where it is: an open exchange points to its gradient.
  const net::LentBuffer& Free();
  size_t count() const { return buffers_.size(); }

 private:
  const size_t bytes_;
  std::deque<net::LentBuffer> buffers_;
  size_t next_ = 0;
};

}  // namespace dtrain
