// Losses on a device: the choice of a kernel for each shape.
#include "gpu/cuda/launch.h"
#include "gpu/cuda/ops.h"

namespace dtrain::gpu::cuda {
namespace {

template <typename Loss>
void LaunchMeanLoss(Queue& queue, Span<const float> outputs, Span<const typename Loss::Target> targets,
                    Span<float> gradient, float scale, float* loss, Loss of = {}) {
  const Grid grid = GridForSum(queue, outputs.size);
  Launch(queue, grid,
         MeanLossKernel<Loss>{outputs.data, targets.data, gradient.data, outputs.size, scale,
                              GridSumFor<double>(queue, grid), loss, of});
}

template <int group>
void LaunchArgmax(Queue& queue, MatrixView<const float> scores, Span<const int32_t> labels,
                  int64_t* correct) {
  const Grid grid = GridForSum(queue, scores.rows * group);
  Launch(queue, grid,
         CountArgmaxKernel<group>{scores.data, labels.data, scores.rows, scores.cols,
                                  GridSumFor<int64_t>(queue, grid), correct});
}

}  // namespace

void MeanSquaredError(Queue& queue, Span<const float> y, Span<const float> t, Span<float> dy, float* loss) {
  LaunchMeanLoss<SquaredError>(queue, y, t, dy, 2.0f / static_cast<float>(y.size), loss);
}

void SigmoidXent(Queue& queue, Span<const float> logits, Span<const int32_t> labels, Span<float> dlogits,
                 float* loss) {
  LaunchMeanLoss<LogisticLoss>(queue, logits, labels, dlogits, 1.0f / static_cast<float>(logits.size), loss);
}

template <typename Target>
void MeanPointLoss(Queue& queue, const PointLoss& loss, Span<const float> outputs, Span<const Target> targets,
                   Span<float> slopes, float* result) {
  const float scale = 1.0f / static_cast<float>(outputs.size);
  LaunchMeanLoss(queue, outputs, targets, slopes, scale, result,
                 PointLossOf<Target>{loss.kind, static_cast<float>(loss.parameter)});
}
template void MeanPointLoss(Queue&, const PointLoss&, Span<const float>, Span<const float>, Span<float>,
                            float*);
template void MeanPointLoss(Queue&, const PointLoss&, Span<const float>, Span<const int32_t>, Span<float>,
                            float*);

void CountArgmaxCorrect(Queue& queue, MatrixView<const float> scores, Span<const int32_t> labels,
                        int64_t* correct) {
  if (scores.cols <= 16) return LaunchArgmax<16>(queue, scores, labels, correct);
  LaunchArgmax<32>(queue, scores, labels, correct);
}

void CountSignCorrect(Queue& queue, Span<const float> logits, Span<const int32_t> labels, int64_t* correct) {
  const Grid grid = GridForSum(queue, logits.size);
  Launch(queue, grid,
         CountSignKernel{logits.data, labels.data, logits.size, GridSumFor<int64_t>(queue, grid), correct});
}

// The choice of a softmax kernel by the number of classes.
namespace {

bool AtPacks(const SoftmaxXentRows& rows) { return HasWholePacks(0, rows.logits, rows.dlogits); }

// Returns a grid with `group` threads for each row. One block as long as there is little to do, because
// blocks that wait for each other cost more; above that, blocks small enough that every multiprocessor gets
// some.
Grid GridForRows(const Queue& queue, const SoftmaxXentRows& rows, int group, int max_threads,
                 int blocks_of_multiprocessor) {
  constexpr int64_t kMaxOfOneBlock = 4096;  // logits
  const int64_t multiprocessors = queue.device().info().multiprocessors;
  const bool one = rows.rows * rows.classes <= kMaxOfOneBlock;
  const int64_t rows_of_block = one ? rows.rows : CeilDiv(rows.rows, multiprocessors);
  const int64_t threads = std::clamp<int64_t>(CeilDiv(rows_of_block * group, 32) * 32, 32, max_threads);
  const int64_t blocks = one ? 1 : CeilDiv(rows.rows * group, threads);
  return {std::min(blocks, blocks_of_multiprocessor * multiprocessors), static_cast<int>(threads)};
}

template <typename Kernel>
void LaunchRows(Queue& queue, const Grid& grid, Kernel kernel) {
  kernel.sum = GridSumFor<double>(queue, grid);
  Launch(queue, grid, kernel);
}

template <int kMax, int width, bool exact>
void LaunchFew(Queue& queue, const SoftmaxXentRows& rows) {
  using Kernel = SoftmaxXentFewKernel<kMax, width, exact>;
  const Grid grid = GridForRows(queue, rows, 1, Kernel::kMaxThreads, Kernel::kBlocksOfMultiprocessor);
  LaunchRows(queue, grid, Kernel{rows, AtPacks(rows)});
}

// Rows of up to 32 classes.
void LaunchFew(Queue& queue, const SoftmaxXentRows& rows) {
  switch (rows.classes) {
    case 2:
      return LaunchFew<2, 2, true>(queue, rows);
    case 4:
      return LaunchFew<4, 4, true>(queue, rows);
    case 8:
      return LaunchFew<8, 4, true>(queue, rows);
    case 10:
      return LaunchFew<10, 2, true>(queue, rows);
    case 16:
      return LaunchFew<16, 4, true>(queue, rows);
    case 32:
      return LaunchFew<32, 4, true>(queue, rows);
    default:
      break;
  }
  if (rows.classes <= 4) return LaunchFew<4, 1, false>(queue, rows);
  if (rows.classes <= 8) return LaunchFew<8, 1, false>(queue, rows);
  if (rows.classes <= 16) {
    return rows.classes % 4 == 0 ? LaunchFew<16, 4, false>(queue, rows)
                                 : LaunchFew<16, 1, false>(queue, rows);
  }
  return rows.classes % 4 == 0 ? LaunchFew<32, 4, false>(queue, rows) : LaunchFew<32, 1, false>(queue, rows);
}

// One block of Kernel::kMaxThreads for each row.
template <typename Kernel>
void LaunchBlocks(Queue& queue, const SoftmaxXentRows& rows) {
  const int64_t max_blocks = int64_t{Kernel::kBlocksOfMultiprocessor} * queue.device().info().multiprocessors;
  LaunchRows(queue, {std::clamp<int64_t>(rows.rows, 1, max_blocks), Kernel::kMaxThreads}, Kernel{rows});
}

template <int group, int each, int width>
void LaunchHeld(Queue& queue, const SoftmaxXentRows& rows) {
  using Kernel = SoftmaxXentKernel<group, each, width>;
  if constexpr (Kernel::kOfBlock) return LaunchBlocks<Kernel>(queue, rows);
  if constexpr (!Kernel::kOfBlock) {
    LaunchRows(queue, GridForRows(queue, rows, group, Kernel::kMaxThreads, Kernel::kBlocksOfMultiprocessor),
               Kernel{rows});
  }
}

template <int width>
void LaunchMany(Queue& queue, const SoftmaxXentRows& rows) {
  if (rows.classes <= 64) return LaunchHeld<8, 8, width>(queue, rows);
  if (rows.classes <= 128) return LaunchHeld<16, 8, width>(queue, rows);
  if (rows.classes <= 256) return LaunchHeld<32, 8, width>(queue, rows);
  if (rows.classes <= 512) return LaunchHeld<32, 16, width>(queue, rows);
  if (rows.classes <= 1024) return LaunchHeld<32, 32, width>(queue, rows);
  constexpr int kBlock = kSoftmaxBlockThreads;
  if (rows.classes <= 8 * kBlock) return LaunchHeld<kBlock, 8, width>(queue, rows);
  if (rows.classes <= 16 * kBlock) return LaunchHeld<kBlock, 16, width>(queue, rows);
  if (rows.classes <= 32 * kBlock) return LaunchHeld<kBlock, 32, width>(queue, rows);
  LaunchBlocks<SoftmaxXentLongKernel<width>>(queue, rows);
}

}  // namespace

void SoftmaxXent(Queue& queue, MatrixView<const float> logits, Span<const int32_t> labels,
                 MatrixView<float> dlogits, float* loss) {
  const SoftmaxXentRows rows = {logits.data, labels.data, dlogits.data,
                                logits.rows, logits.cols, 1.0f / static_cast<float>(logits.rows),
                                {},          loss};
  if (rows.classes <= 32) return LaunchFew(queue, rows);
  if (rows.classes % 4 == 0 && AtPacks(rows)) return LaunchMany<4>(queue, rows);
  LaunchMany<1>(queue, rows);
}

}  // namespace dtrain::gpu::cuda
