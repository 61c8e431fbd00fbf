// GradientEncoder: the tensors of the messages that a worker sends. A block of the flat vector's gradient is
// lent as it is. With net.compress.push it is compressed into a buffer of its own; what that leaves out is
// added to the next gradient (error feedback). Rows of a table are rounded at random, and leave nothing.
// Owner: Exchanges. Thread: the worker's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "net/compress.h"
#include "net/lent_buffer.h"
#include "trainer/model/layout.h"
#include "trainer/table/keyed_batch.h"

namespace dtrain {

class GradientEncoder {
 public:
  // `form`: net.compress.push. `worker`: whose gradients these are. `layout` outlives this.
  GradientEncoder(net::Compression form, const Layout& layout, int worker);

  // A block of the gradient in `buffer`, which begins with that of the flat vector. Call it for the blocks of
  // one gradient before those of the next.
  net::LentBytes Block(const net::LentBuffer& buffer, Range block);
  // The gradient of the rows of `of` in a block, which lies behind that of the flat vector, and behind it the
  // keys of `asks`, whose bytes `key_bytes` learns. Without `of` there are keys alone, and without `asks`
  // none. A copy, because a block's rows and its keys are one frame.
  net::LentBytes Rows(const net::LentBuffer* buffer, const KeyedBatch* of, const KeyedBatch* asks,
                      int64_t block, uint64_t request, uint32_t* key_bytes);
  // The next gradients are of other weights: forgets what was left out.
  void Forget() { std::fill(left_out_.begin(), left_out_.end(), 0.0f); }

  // The bytes that compression and packed keys have spared.
  uint64_t bytes_saved() const { return static_cast<uint64_t>(std::max<int64_t>(bytes_saved_, 0)); }

 private:
  const net::Compression form_;
  const Layout& layout_;
  net::LentBuffers compressed_;   // blocks that a transport may still read
  net::LentBuffers rows_;         // in the same way
  std::vector<float> left_out_;   // of the flat vector, by earlier gradients; empty: nothing ever is
  const CounterRandom rounding_;  // of rows
  int64_t bytes_saved_ = 0;       // of messages with one key it can be below 0
};

}  // namespace dtrain
