// Dense layers. For floats: products by cuBLAS, biases by our own kernels. For rows of bytes: our own kernels
// only.
#include "gpu/cuda/launch.h"
#include "gpu/cuda/ops.h"

namespace dtrain::gpu::cuda {
namespace {

// c = a * b; zeros if there is nothing to sum.
void MultiplyOrZero(Queue& queue, const Product& product) {
  if (product.m == 0 || product.n == 0) return;
  if (product.k == 0) return queue.Fill(product.c, 0, product.m * product.n * int64_t{sizeof(float)});
  queue.Multiply(product);
}

template <typename Kind>
void LaunchBias(Queue& queue, Kind, Span<const float> b, MatrixView<float> out) {
  constexpr int kWidth = 4;
  if (out.size() == 0) return;
  if (out.cols % kWidth == 0 && HasWholePacks(0, b.data, out.data)) {
    Launch(queue, GridFor(queue, out.size() / kWidth),
           BiasKernel<Kind, kWidth>{out.data, b.data, out.rows, out.cols / kWidth});
  } else {
    Launch(queue, GridFor(queue, out.size()), BiasKernel<Kind, 1>{out.data, b.data, out.rows, out.cols});
  }
}

// Writes the sums of the first columns to `sums` and those of the others to `behind`; together they have the
// matrix's columns. One launch, in up to `max_parts` parts of the rows. A single part needs no scratch
// memory.
void LaunchColumnSums(Queue& queue, MatrixView<const float> matrix, Span<float> sums, Span<float> behind,
                      int64_t max_parts) {
  constexpr int64_t kRowsOfThread = 16;           // with fewer, a part costs more than it saves
  constexpr int64_t kBlocksOfMultiprocessor = 4;  // enough to hide the memory's latency
  ColumnSumsKernel kernel{};
  kernel.matrix = matrix.data;
  kernel.rows = matrix.rows;
  kernel.columns = matrix.cols;
  kernel.width = 1;
  while (kernel.width < ColumnSumsKernel::kMaxWidth && kernel.width < matrix.cols) kernel.width *= 2;
  kernel.sums = sums.data;
  kernel.sums_behind = behind.data;
  kernel.split = sums.size;
  const int64_t tiles = CeilDiv(matrix.cols, kernel.width);
  if (tiles == 0) return;
  const int64_t useful = CeilDiv(matrix.rows, kRowsOfThread * ColumnSumsKernel::kThreads / kernel.width);
  const int64_t filling = kBlocksOfMultiprocessor * queue.device().info().multiprocessors / tiles;
  kernel.chunks = std::max<int64_t>(1, std::min({useful, filling, max_parts}));
  if (kernel.chunks > 1) {
    kernel.parts = static_cast<float*>(queue.Scratch(kernel.chunks * matrix.cols * int64_t{sizeof(float)}));
    kernel.tickets = queue.Ticket(tiles);
  }
  Launch(queue, {tiles * kernel.chunks, ColumnSumsKernel::kThreads}, kernel);
}

ByteTable TableOf(const ByteRows& x) { return {x.table.data, x.rows.data, x.rows.size, x.table.cols}; }

Epilogue EpilogueOf(std::optional<Activation> activation) {
  if (!activation) return Epilogue::kNone;
  switch (*activation) {
    case Activation::kSigmoid:
      return Epilogue::kSigmoid;
    case Activation::kTanh:
      return Epilogue::kTanh;
    case Activation::kRelu:
      return Epilogue::kRelu;
  }
  return Epilogue::kNone;
}

// Calls `call` with the smallest kernel size that covers `outputs`.
template <typename Call>
void WithOutputs(int64_t outputs, const Call& call) {
  if (outputs <= 1) return call(std::integral_constant<int, 1>());
  if (outputs <= 4) return call(std::integral_constant<int, 4>());
  if (outputs <= 10) return call(std::integral_constant<int, 10>());
  call(std::integral_constant<int, kMaxByteOutputs>());
}

template <int kOutputs, int kRows>
void LaunchForward(Queue& queue, const ByteRows& x, MatrixView<const float> w, Span<const float> b,
                   MatrixView<float> out, Epilogue epilogue) {
  using Kernel = ByteForwardKernel<kOutputs, kRows>;
  constexpr int64_t kBlocksOfMultiprocessor = 8;
  const bool byte_packs = x.table.cols % 4 == 0 && reinterpret_cast<uintptr_t>(x.table.data) % 4 == 0;
  const bool weight_packs = w.cols == kOutputs && HasWholePacks(0, w.data);
  const int64_t max_blocks = kBlocksOfMultiprocessor * queue.device().info().multiprocessors;
  const int64_t threads = std::clamp<int64_t>(CeilDiv(x.table.cols, 4 * 32) * 32, 32, Kernel::kMaxThreads);
  Launch(queue, {std::min(CeilDiv(out.rows, kRows), max_blocks), static_cast<int>(threads)},
         Kernel{TableOf(x), w.data, b.data, out.data, static_cast<int>(w.cols), byte_packs, weight_packs,
                epilogue});
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

void LinearForward(Queue& queue, const ByteRows& x, MatrixView<const float> w, Span<const float> b,
                   MatrixView<float> out, std::optional<Activation> activation) {
  constexpr int64_t kRowsOfMultiprocessor = 16;  // above this, blocks of four rows fill the device too
  const bool many = out.rows >= kRowsOfMultiprocessor * queue.device().info().multiprocessors;
  WithOutputs(w.cols, [&](auto outputs) {
    if (many) {
      LaunchForward<outputs, 4>(queue, x, w, b, out, EpilogueOf(activation));
    } else {
      LaunchForward<outputs, 1>(queue, x, w, b, out, EpilogueOf(activation));
    }
  });
}

void LinearGradient(Queue& queue, const ByteRows& x, MatrixView<const float> dout, MatrixView<float> dw,
                    Span<float> db) {
  constexpr int64_t kRowsOfChunk = 256;  // fewer are done before a second stage would begin
  constexpr int64_t kBlocksOfMultiprocessor = 4;
  constexpr int64_t kMaxChunks = 128;
  WithOutputs(dw.cols, [&](auto outputs) {
    using Kernel = ByteGradientKernel<outputs>;
    const int64_t tiles = std::max<int64_t>(1, CeilDiv(x.table.cols, Kernel::kInputs));
    const int64_t filling = kBlocksOfMultiprocessor * queue.device().info().multiprocessors / tiles;
    const int64_t chunks =
        std::max<int64_t>(1, std::min({CeilDiv(dout.rows, kRowsOfChunk), filling, kMaxChunks}));
    Kernel kernel{TableOf(x), dout.data, static_cast<int>(dw.cols), chunks, dw.data, db.data, 0};
    if (chunks > 1) {
      kernel.stride = dw.size() + db.size;
      kernel.dw = static_cast<float*>(queue.Scratch(chunks * kernel.stride * int64_t{sizeof(float)}));
      kernel.db = kernel.dw + dw.size();
    }
    Launch(queue, {tiles * chunks, Kernel::kThreads}, kernel);
    if (chunks > 1) {
      LaunchColumnSums(queue, {kernel.dw, chunks, kernel.stride}, {dw.data, dw.size()}, db, 1);
    }
  });
}

}  // namespace dtrain::gpu::cuda
