#include "gpu/cuda/launch.h"
#include "gpu/cuda/ops.h"

namespace dtrain::gpu::cuda {
namespace {

// Launches a function that reads one range and writes another, or the same one.
template <typename Function>
void LaunchOne(Queue& queue, const Function& function, const typename Function::In* in,
               typename Function::Out* out, int64_t size) {
  LaunchEach(queue, function, &in, &out, size);
}

// `input(s)` is the s-th input. Each launch after the first takes the sum so far as its first input, with
// weight 1, which gives the same bits as a single launch.
template <bool weighted, typename Input>
void LaunchSums(Queue& queue, int64_t inputs, const Input& input, const float* weights, Span<float> sum) {
  using Kernel = SumKernel<weighted>;
  for (int64_t next = 0; next < inputs;) {
    Kernel kernel{};
    kernel.sum = sum.data;
    for (; kernel.count < Kernel::kMaxInputs && next < inputs; ++kernel.count) {
      const bool so_far = kernel.count == 0 && next > 0;
      kernel.inputs[kernel.count] = so_far ? sum.data : input(next);
      kernel.weights[kernel.count] = so_far || !weighted ? 1 : weights[next];
      if (!so_far) ++next;
    }
    kernel.packing = PackingOf<4>(sum.size, sum.data);
    for (int s = 0; s < kernel.count; ++s) {
      if (!HasWholePacks(kernel.packing.head, kernel.inputs[s])) kernel.packing.head = sum.size;
    }
    Launch(queue, GridFor(queue, CeilDiv(sum.size, kernel.packing.head == sum.size ? 1 : 4)), kernel);
  }
}

}  // namespace

void Activate(Queue& queue, Activation kind, Span<float> values) {
  WithActivation(kind, [&](auto activation) {
    LaunchOne(queue, ActivateFunction<decltype(activation)>(), values.data, values.data, values.size);
  });
}

void ActivationGradient(Queue& queue, Activation kind, Span<const float> outputs, Span<float> gradient) {
  const float* const in[] = {gradient.data, outputs.data};
  WithActivation(kind, [&](auto activation) {
    LaunchEach(queue, BackwardFunction<decltype(activation)>(), in, &gradient.data, gradient.size);
  });
}

void Sum(Queue& queue, Span<const std::byte* const> inputs, Span<float> sum) {
  LaunchSums<false>(
      queue, inputs.size, [&](int64_t s) { return FloatsAt(inputs[s]); }, nullptr, sum);
}

void WeightedSum(Queue& queue, Span<const float* const> inputs, Span<const float> weights, Span<float> sum) {
  LaunchSums<true>(
      queue, inputs.size, [&](int64_t s) { return inputs[s]; }, weights.data, sum);
}

void Scale(Queue& queue, float factor, Span<float> values) {
  Launch(queue, GridFor(queue, CeilDiv(values.size, 8)), ScaleKernel{factor, values.data, values.size});
}

void CheckFinite(Queue& queue, Span<const float> values, int64_t* non_finite) {
  const Grid grid = GridForSum(queue, CeilDiv(values.size, 16));
  Launch(queue, grid,
         NonFiniteKernel{values.data, values.size, GridSumFor<int64_t>(queue, grid), non_finite});
}

bool AnyNonFinite(Queue& queue, const std::byte* values, int64_t count) {
  CheckFinite(queue, {FloatsAt(values), count}, queue.Result());
  queue.Wait();
  return *queue.Result() != 0;
}

void ToHalf(Queue& queue, Half format, Span<const float> in, Span<uint16_t> out) {
  if (format == Half::kFloat16) {
    LaunchOne(queue, ToHalfFunction<Half::kFloat16>(), in.data, out.data, in.size);
  } else {
    LaunchOne(queue, ToHalfFunction<Half::kBfloat16>(), in.data, out.data, in.size);
  }
}

void FromHalf(Queue& queue, Half format, Span<const uint16_t> in, Span<float> out) {
  if (format == Half::kFloat16) {
    LaunchOne(queue, FromHalfFunction<Half::kFloat16>(), in.data, out.data, in.size);
  } else {
    LaunchOne(queue, FromHalfFunction<Half::kBfloat16>(), in.data, out.data, in.size);
  }
}

namespace {

constexpr int kWidth = 4;  // of packs

template <typename T>
void LaunchGather(Queue& queue, MatrixView<const T> table, Span<const int64_t> rows, MatrixView<float> out) {
  if (out.size() == 0) return;
  const bool packs = table.cols % kWidth == 0 &&
                     reinterpret_cast<uintptr_t>(table.data) % sizeof(Pack<T, kWidth>) == 0 &&
                     HasWholePacks(0, out.data);
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
