// Dense layers of floats: products by cuBLAS, biases by kernels of our own.
#include "gpu/cuda/activation_kinds.h"
#include "gpu/cuda/column_sums.h"
#include "gpu/cuda/launch.h"
#include "gpu/cuda/ops.h"

namespace dtrain::gpu::cuda {
namespace {

// c = a * b; zeros where the sums have no terms.
void MultiplyOrZero(Queue& queue, const Product& product) {
  if (product.m == 0 || product.n == 0) return;
  if (product.k == 0) return queue.Fill(product.c, 0, product.m * product.n * int64_t{sizeof(float)});
  queue.Multiply(product);
}

template <typename Kind>
void LaunchBias(Queue& queue, Kind, Span<const float> b, MatrixView<float> out) {
  constexpr int kWidth = 4;
  if (out.size() == 0) return;
  if (out.cols % kWidth == 0 && OfWholePacks(0, b.data, out.data)) {
    Launch(queue, GridFor(queue, out.size() / kWidth),
           BiasKernel<Kind, kWidth>{out.data, b.data, out.rows, out.cols / kWidth});
  } else {
    Launch(queue, GridFor(queue, out.size()), BiasKernel<Kind, 1>{out.data, b.data, out.rows, out.cols});
  }
}

}  // namespace

void LinearForward(Queue& queue, MatrixView<const float> x, MatrixView<const float> w, Span<const float> b,
                   MatrixView<float> out, std::optional<Activation> activation) {
  MultiplyOrZero(queue, {out.rows, out.cols, x.cols, false, false, x.data, w.data, out.data, false});
  if (!activation) return LaunchBias(queue, Identity(), b, out);
  WithActivation(*activation, [&](auto kind) { LaunchBias(queue, kind, b, out); });
}

void LinearGradient(Queue& queue, MatrixView<const float> x, MatrixView<const float> dout,
                    MatrixView<float> dw, Span<float> db) {
  MultiplyOrZero(queue, {dw.rows, dw.cols, x.rows, true, false, x.data, dout.data, dw.data, false});
  LaunchColumnSums(queue, dout, db, {}, INT64_MAX);
}

void LinearInputGradient(Queue& queue, MatrixView<const float> dout, MatrixView<const float> w,
                         MatrixView<float> dx) {
  MultiplyOrZero(queue, {dx.rows, dx.cols, dout.cols, false, true, dout.data, w.data, dx.data, false});
}

}  // namespace dtrain::gpu::cuda
