#include "gpu/cuda/column_sums.h"

#include "gpu/cuda/launch.h"

namespace dtrain::gpu::cuda {

void LaunchColumnSums(Queue& queue, MatrixView<const float> matrix, Span<float> sums, Span<float> behind,
                      int64_t most_parts) {
  constexpr int64_t kRowsOfThread = 16;           // below, a part costs more than it saves
  constexpr int64_t kBlocksOfMultiprocessor = 4;  // enough to hide what the memory takes
  ColumnSumsKernel kernel{};
  kernel.matrix = matrix.data;
  kernel.rows = matrix.rows;
  kernel.columns = matrix.cols;
  kernel.width = 1;
  while (kernel.width < ColumnSumsKernel::kMostWidth && kernel.width < matrix.cols) kernel.width *= 2;
  kernel.sums = sums.data;
  kernel.sums_behind = behind.data;
  kernel.split = sums.size;
  const int64_t tiles = CeilDiv(matrix.cols, kernel.width);
  if (tiles == 0) return;
  const int64_t useful = CeilDiv(matrix.rows, kRowsOfThread * ColumnSumsKernel::kThreads / kernel.width);
  const int64_t filling = kBlocksOfMultiprocessor * queue.device().info().multiprocessors / tiles;
  kernel.chunks = std::max<int64_t>(1, std::min({useful, filling, most_parts}));
  if (kernel.chunks > 1) {
    kernel.parts = static_cast<float*>(queue.Scratch(kernel.chunks * matrix.cols * int64_t{sizeof(float)}));
    kernel.tickets = queue.Ticket(tiles);
  }
  Launch(queue, {tiles * kernel.chunks, ColumnSumsKernel::kThreads}, kernel);
}

}  // namespace dtrain::gpu::cuda
