#include "gpu/cuda/launch.h"
#include "gpu/cuda/ops.h"

namespace dtrain::gpu::cuda {
namespace {

constexpr int kWidth = 4;  // of packs

template <typename T>
void LaunchGather(Queue& queue, MatrixView<const T> table, Span<const int64_t> rows, MatrixView<float> out) {
  if (out.size() == 0) return;
  const bool packs = table.cols % kWidth == 0 &&
                     reinterpret_cast<uintptr_t>(table.data) % sizeof(Pack<T, kWidth>) == 0 &&
                     OfWholePacks(0, out.data);
  if (packs) {
    Launch(queue, GridFor(queue, out.size() / kWidth),
           GatherKernel<T, kWidth>{table.data, rows.data, out.data, out.rows, out.cols / kWidth});
  } else {
    Launch(queue, GridFor(queue, out.size()),
           GatherKernel<T, 1>{table.data, rows.data, out.data, out.rows, out.cols});
  }
}

}  // namespace

void GatherBytes(Queue& queue, const ByteRows& x, MatrixView<float> out) {
  LaunchGather(queue, x.table, x.rows, out);
}

void GatherFloats(Queue& queue, MatrixView<const float> table, Span<const int64_t> rows,
                  MatrixView<float> out) {
  LaunchGather(queue, table, rows, out);
}

}  // namespace dtrain::gpu::cuda
