// Mean softmax cross-entropy and its gradient (softmax.h) of rows of any size: the largest logit and the sum
// relative to it in one pass, the gradient in another. 12 bytes per logit, but one block of a multiprocessor
// has one row, so that the rows under way (17 MB of 132 rows of 32000 classes) stay in the second-level
// cache: 8 of the device's memory, where that is large enough.
#pragma once

#include "gpu/cuda/kernels/softmax.h"

namespace dtrain::gpu::cuda {

// With a width of 4 the rows are whole packs, at addresses for packs.
template <int width>
struct SoftmaxXentLongKernel : SoftmaxXentRows {
  static constexpr bool kTogether = true;
  static constexpr int kMaxThreads = 1024;
  static constexpr int kBlocksOfMultiprocessor = 1;

  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    double own = 0;
    for (int64_t row = thread.block(); row < rows; row += thread.blocks()) own += LossOf(thread, row);
    Finish(thread, own);
  }

 private:
  static constexpr int kPacks = width == 1 ? 8 : 4;  // under way at once: 64 bytes of a thread
  static constexpr int kAtOnce = kPacks * width;
  using Classes = Pack<float, width>;
  using Values = float[kAtOnce];

  // Turns are added as trees: of a thread's f32 sum a term has as many roundings as there are turns, 2 for
  // 32000 classes, and those of its tree.
  struct Running {
    float largest = -INFINITY;
    float sum = 0;
    DT_KERNEL_BODY void Add(Values& values) {
      float above = largest;
      DT_UNROLL()
      for (int c = 0; c < kAtOnce; ++c) above = fmaxf(above, values[c]);
      const float base = above == -INFINITY ? 0.0f : above;  // no difference of infinities
      DT_UNROLL()
      for (int c = 0; c < kAtOnce; ++c) values[c] = expf(values[c] - base);
      DT_UNROLL()
      for (int half = kAtOnce / 2; half > 0; half /= 2) {
        DT_UNROLL()
        for (int c = 0; c < half; ++c) values[c] += values[c + half];
      }
      sum = sum * expf(largest - base) + values[0];
      largest = above;
    }
  };

  // values[c] is class first + c % width + c / width * (a block's width); behind the end -INFINITY.
  DT_KERNEL_BODY void Load(const float* from, int64_t first, int64_t step, Values& values) const {
    DT_UNROLL()
    for (int p = 0; p < kPacks; ++p) {
      Classes pack;
      DT_UNROLL()
      for (int e = 0; e < width; ++e) pack.at[e] = -INFINITY;
      const int64_t at = first + p * step;
      if (at < classes) pack = *reinterpret_cast<const Classes*>(from + at);
      DT_UNROLL()
      for (int e = 0; e < width; ++e) values[p * width + e] = pack.at[e];
    }
  }

  DT_KERNEL_BODY void Store(const Values& values, int64_t first, int64_t step, float* to) const {
    DT_UNROLL()
    for (int p = 0; p < kPacks; ++p) {
      Classes pack;
      DT_UNROLL()
      for (int e = 0; e < width; ++e) pack.at[e] = values[p * width + e];
      const int64_t at = first + p * step;
      if (at < classes) StorePack(pack, to + at);
    }
  }

  template <typename Thread>
  DT_KERNEL_BODY double LossOf(Thread& thread, int64_t row) const {
    const float* const from = logits + row * classes;
    float* const to = dlogits + row * classes;
    const int64_t label = labels[row];
    const float logit = from[label];  // before it may be overwritten: there are waits in between
    const int64_t begin = thread.index() * width, step = thread.threads() * width;
    Running running;
    float values[kAtOnce];
    DT_UNROLL(1)
    for (int64_t first = begin; first < classes; first += kPacks * step) {
      Load(from, first, step, values);
      running.Add(values);
    }
    const float largest = BlockMax(thread, running.largest);
    const float total = BlockSum(thread, running.sum * expf(running.largest - largest));
    const float factor = scale / total;
    DT_UNROLL(1)
    for (int64_t first = begin; first < classes; first += kPacks * step) {
      Load(from, first, step, values);
      DT_UNROLL()
      for (int c = 0; c < kAtOnce; ++c) values[c] = expf(values[c] - largest) * factor;
      Store(values, first, step, to);
    }
    // By the thread that has stored the label's already.
    if (label / width % thread.threads() == thread.index()) {
      to[label] = expf(logit - largest) * factor - scale;
    }
    return thread.index() == 0 ? static_cast<double>(logf(total) - (logit - largest)) : 0.0;
  }
};

}  // namespace dtrain::gpu::cuda
