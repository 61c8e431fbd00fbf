// NewRuntime: how main() hands the runtime of GPUs to those commands that compute. They make it where their
// end has a deadline, and not before they compute: a ps never does.
#pragma once

#include <memory>

#include "gpu/cuda/runtime.h"

namespace dtrain {

using NewRuntime = std::unique_ptr<gpu::cuda::Runtime> (*)();

}  // namespace dtrain
