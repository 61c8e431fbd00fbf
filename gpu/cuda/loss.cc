#include "gpu/cuda/launch.h"
#include "gpu/cuda/ops.h"

namespace dtrain::gpu::cuda {
namespace {

template <typename Loss>
void LaunchMeanLoss(Queue& queue, Span<const float> outputs, Span<const typename Loss::Target> targets,
                    Span<float> gradient, float scale, float* loss) {
  const Grid grid = GridForSum(queue, outputs.size);
  Launch(queue, grid,
         MeanLossKernel<Loss>{outputs.data, targets.data, gradient.data, outputs.size, scale,
                              GridSumFor<double>(queue, grid), loss});
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

}  // namespace dtrain::gpu::cuda
