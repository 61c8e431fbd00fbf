#include "gpu/cuda/fake/grid.h"

#include <array>

#include "base/check.h"
#include "gpu/cuda/kernels/list.h"

namespace dtrain::gpu::cuda {

void GridRunner::CheckGrid(const Grid& grid, int max_threads) {
  DT_CHECK(grid.blocks >= 1 && grid.blocks < (int64_t{1} << 31), grid.blocks);
  DT_CHECK(grid.threads >= 32 && grid.threads <= max_threads && grid.threads % 32 == 0, grid.threads,
           max_threads);
}

namespace {

template <typename Body>
FakeKernel MakeFakeKernel() {
  static_assert(std::is_trivially_copyable_v<Body> && alignof(Body) <= alignof(std::max_align_t));
  static_assert(sizeof(Body) <= 4096, "more than a launch can carry");
  return {[](GridRunner& runner, const Grid& grid, const void* body) {
            runner.Run(grid, *static_cast<const Body*>(body));
          },
          sizeof(Body)};
}

template <typename... Bodies>
std::array<FakeKernel, sizeof...(Bodies)> TableOf(KernelList<Bodies...>) {
  return {MakeFakeKernel<Bodies>()...};
}

}  // namespace

const FakeKernel& FakeKernelOf(Kernel kernel) {
  static const auto table = TableOf(AllKernels());
  const int number = static_cast<int>(kernel);
  DT_CHECK(number >= 0 && number < AllKernels::kCount, "no kernel of kernels/list.h", number);
  return table[static_cast<size_t>(number)];
}

}  // namespace dtrain::gpu::cuda
