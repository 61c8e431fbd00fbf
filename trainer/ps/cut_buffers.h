// CutBuffers: the buffers that a cut (range_cut.h) needs while training goes on: for each block that is
// updated before it was read, one of the weights and one of each slot. They are kept from one checkpoint to
// the next: memory that a process touches for the first time costs several times what writing it again does.
// So a ps keeps as many as its checkpoints ever needed at once: the weights and slots once more at most.
// Owner: ParameterShard and its cuts. Thread: any.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "net/lent_buffer.h"

namespace dtrain {

class CutBuffers {
 public:
  // `bytes`: of each. `most`: that are ever needed at once.
  CutBuffers(size_t bytes, size_t most) : bytes_(bytes), most_(most) {}

  // Nobody else's. What is in it is of an earlier use.
  net::LentBuffer Take();
  // Kept where nobody else has it: otherwise it goes with, or stays, whose it is.
  void Give(net::LentBuffer buffer);
  // How many are kept and not taken.
  size_t count() const;

 private:
  const size_t bytes_;
  const size_t most_;
  mutable std::mutex mutex_;
  std::vector<net::LentBuffer> buffers_;
};

}  // namespace dtrain
