// What TensorFlow's names of tensors in a checkpoint say: Saver's (TF1) and Estimator's, and those of
// Checkpoint (TF2) and Keras, which are paths through Python's objects. Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/tf/tf_checkpoint.h"

namespace dtrain {

enum class TfRole : uint8_t {
  kWeights,      // or anything else that a program has named
  kSlot,         // of an optimizer, for the tensor `of`
  kStep,         // global_step, or the iterations of an optimizer
  kBookkeeping,  // counters, rates and graphs that no model needs
  kTwin,         // a variable by another name, as a SavedModel of Keras has them
};

// TfMeaning: what a tensor is. Plain data.
struct TfMeaning {
  TfRole role = TfRole::kWeights;
  std::string of;    // of a slot: the name of its tensor
  std::string slot;  // "Adagrad", "Adam_1"; of Keras's lists "velocity of Adam", "accumulator"
};

// The slot of Keras 3's SGD.
constexpr char kKerasMomentum[] = "momentum of SGD";

// Returns what each tensor is, in the order of checkpoint.tensors().
std::vector<TfMeaning> MeaningsOf(const TfCheckpoint& checkpoint);

}  // namespace dtrain
