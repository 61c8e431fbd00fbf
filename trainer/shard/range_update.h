// RangeUpdate: one update of weights by the optimizer of a ps's range, as the config wants it: on which
// variables decay acts. Thread: any; free functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "net/channel.h"
#include "trainer/config/choices.h"
#include "trainer/model/layout.h"
#include "trainer/optim/optimizer.h"

namespace dtrain {

// RangeUpdate: what Optimizer::Apply() reads and writes. The pointers are to the first of `elements`.
struct RangeUpdate {
  UpdateStep step;
  Range elements;  // of the flat vector
  const float* weights = nullptr;
  float* updated = nullptr;
  const std::byte* gradient = nullptr;
};

// Makes the update. `optimizer` is that of a range that begins at element `range_begin`. With
// train.optimizer.decay_biases: false the variables among the elements are updated one by one, biases without
// decay. The bits do not depend on how the elements are cut.
void ApplyUpdate(const RangeUpdate& update, const OptimizerConfig& config, const Layout& layout,
                 int64_t range_begin, Optimizer* optimizer);

// What is wrong with a piece of a checkpoint, which has these elements; empty: nothing.
std::string WrongBytes(net::TensorView piece, Range elements);

}  // namespace dtrain
