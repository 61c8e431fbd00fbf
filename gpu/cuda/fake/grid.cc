#include "gpu/cuda/fake/grid.h"

#include "base/check.h"

namespace dtrain::gpu::cuda {

void GridRunner::CheckGrid(const Grid& grid, int most_threads) {
  DT_CHECK(grid.blocks >= 1 && grid.blocks < (int64_t{1} << 31), grid.blocks);
  DT_CHECK(grid.threads >= 32 && grid.threads <= most_threads && grid.threads % 32 == 0, grid.threads,
           most_threads);
}

}  // namespace dtrain::gpu::cuda
