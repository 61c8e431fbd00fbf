// Sums of columns on a device, for the gradients of layers.
#pragma once

#include <cstdint>

#include "gpu/cuda/queue.h"
#include "gpu/view.h"

namespace dtrain::gpu::cuda {

// The sums of the first columns to `sums`, those of the others to `behind`: together as many as the matrix
// has. One launch, in up to `most_parts` parts of the rows; of one it needs no scratch memory.
void LaunchColumnSums(Queue& queue, MatrixView<const float> matrix, Span<float> sums, Span<float> behind,
                      int64_t most_parts);

}  // namespace dtrain::gpu::cuda
