// Lease: a run of batches of one epoch, of which one worker makes its next steps (data.split: dynamic).
// Thread: any; plain values.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/order/data_plan.h"

namespace dtrain {

struct Lease {
  int64_t step = 0;  // the worker's local step with which it begins
  int64_t epoch = 0;
  int64_t first = 0;  // among the batches that the plan of the run has left of the epoch (RemainingBatches)
  int64_t batches = 0;
  // By ps: so many blocks of the gradient are in its weights already, in the order in which a worker sends
  // them, since another worker was lost while it sent them. Then the lease is one step. Empty: no ps has any.
  std::vector<uint32_t> taken;

  template <typename Archive>
  void State(Archive& archive) {
    archive(step, epoch, first, batches, taken);
  }

  // The steps of a worker of so many devices.
  int64_t Steps(int64_t devices) const { return CeilDiv(batches, devices); }
};

}  // namespace dtrain
