// From an activation's name to the type of kernels/activation.h.
#pragma once

#include "base/check.h"
#include "gpu/cuda/kernels/activation.h"
#include "gpu/ops.h"

namespace dtrain::gpu::cuda {

// call(Kind()).
template <typename Call>
void WithActivation(Activation kind, const Call& call) {
  switch (kind) {
    case Activation::kSigmoid:
      return call(Sigmoid());
    case Activation::kTanh:
      return call(Tanh());
    case Activation::kRelu:
      return call(Relu());
  }
  DT_CHECK(false, static_cast<int>(kind));
}

}  // namespace dtrain::gpu::cuda
