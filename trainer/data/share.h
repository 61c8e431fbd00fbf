// How batches divide among workers, and their batches among devices.
#pragma once

#include <cstdint>

namespace dtrain {

// Of numbers that are not negative.
inline int64_t DivideUp(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

// How many of `batches`, dealt in turn, `worker` of `workers` gets.
inline int64_t ShareOf(int64_t batches, int64_t worker, int64_t workers) {
  return batches <= worker ? 0 : DivideUp(batches - worker, workers);
}

}  // namespace dtrain
