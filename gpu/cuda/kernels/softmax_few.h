// Mean softmax cross-entropy and its gradient (softmax.h) of rows of up to 32 classes. A row is so short
// that whatever several threads did together for it would cost more than its bytes: one thread has a row.
// The rows of a block lie next to each other; they go through shared memory, so that what is read from and
// written to the device's is whole lines. 8 bytes per logit, once. Some 20 instructions per class, and 60 per
// row: of 10 classes less than half of what an H100 does while it moves the row's 80 bytes.
#pragma once

#include "gpu/cuda/kernels/softmax.h"

namespace dtrain::gpu::cuda {

// `exact`: of kMax classes; else up to so many, multiples of `width`. A thread reads its row in packs of
// `width`: odd distances of packs between rows, where it can be, so that the banks of shared memory are used
// evenly.
template <int kMax, int width, bool exact>
struct SoftmaxXentFewKernel : SoftmaxXentRows {
  static constexpr bool kTogether = true;
  static constexpr int kMaxThreads = kMax > 16 ? 128 : 256;
  // 64 registers for each thread of rows of 32, 48 for the others.
  static constexpr int kBlocksOfMultiprocessor = (kMax > 16 ? 1024 : 1280) / kMaxThreads;
  bool packs;  // both matrices begin at addresses for packs

  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    Pack<float, 4>* const packs_of_block =
        thread.template Shared<Pack<float, 4>, kMaxThreads * kStride / 4>();
    float* const tile = packs_of_block->at;
    double own = 0;
    const int64_t step = thread.blocks() * thread.threads();
    for (int64_t first = thread.block() * thread.threads(); first < rows; first += step) {
      const int here = rows - first < thread.threads() ? static_cast<int>(rows - first) : thread.threads();
      const bool ours = thread.index() < here;
      const int label = ours ? labels[first + thread.index()] : 0;
      const int64_t at = first * Count();
      thread.Sync();  // the last rows are stored
      packs ? Fetch<4>(thread, logits + at, here, tile) : Fetch<1>(thread, logits + at, here, tile);
      thread.Sync();
      if (ours) own += LossOf(tile + thread.index() * (exact ? kStride : Count()), label);
      thread.Sync();
      packs ? Put<4>(thread, tile, here, dlogits + at) : Put<1>(thread, tile, here, dlogits + at);
    }
    Finish(thread, own);
  }

 private:
  // Rows of 8, 16 and 32 classes lie a pack further apart.
  static constexpr bool kApart = exact && kMax % 8 == 0;
  static constexpr int kStride = kApart ? kMax + 4 : kMax;
  using Classes = Pack<float, width>;
  static_assert(kMax % width == 0);

  DT_KERNEL_BODY int Count() const { return exact ? kMax : static_cast<int>(classes); }
  // Where element i of a block's rows lies.
  DT_KERNEL_BODY static int Place(int i) { return kApart ? i + i / kMax * (kStride - kMax) : i; }

  // In packs of `wide`, four of a thread under way at once, and elements behind the last whole one. Of single
  // elements one: a rare case, which must not cost the others registers.
  template <int wide, typename Thread>
  DT_KERNEL_BODY void Fetch(Thread& thread, const float* from, int here, float* tile) const {
    constexpr int kAtOnce = wide;
    using Some = Pack<float, wide>;
    const int size = here * Count(), whole = size / wide, step = thread.threads();
    DT_UNROLL(1)
    for (int first = thread.index(); first < whole; first += kAtOnce * step) {
      Some some[kAtOnce];
      DT_UNROLL()
      for (int t = 0; t < kAtOnce; ++t) {
        const int p = first + t * step;
        if (p < whole) some[t] = *reinterpret_cast<const Some*>(from + p * wide);
      }
      DT_UNROLL()
      for (int t = 0; t < kAtOnce; ++t) {
        const int p = first + t * step;
        if (p < whole) *reinterpret_cast<Some*>(tile + Place(p * wide)) = some[t];
      }
    }
    const int rest = whole * wide + thread.index();
    if (rest < size) tile[Place(rest)] = from[rest];
  }

  template <int wide, typename Thread>
  DT_KERNEL_BODY void Put(Thread& thread, const float* tile, int here, float* to) const {
    using Some = Pack<float, wide>;
    const int size = here * Count(), whole = size / wide;
    DT_UNROLL(2)
    for (int p = thread.index(); p < whole; p += thread.threads()) {
      StorePack(*reinterpret_cast<const Some*>(tile + Place(p * wide)), to + p * wide);
    }
    const int rest = whole * wide + thread.index();
    if (rest < size) to[rest] = tile[Place(rest)];
  }

  // Over the row's packs three times: held in registers they would need more than a full multiprocessor has.
  DT_KERNEL_BODY double LossOf(float* row, int label) const {
    auto* const packs_of_row = reinterpret_cast<Classes*>(row);
    const int count = Count() / width;
    float largest = -INFINITY;
    DT_UNROLL(4)
    for (int p = 0; p < count; ++p) {
      const Classes pack = packs_of_row[p];
      DT_UNROLL()
      for (int e = 0; e < width; ++e) largest = fmaxf(largest, pack.at[e]);
    }
    const float at_label = row[label] - largest;
    float sums[width] = {};
    DT_UNROLL(2)
    for (int p = 0; p < count; ++p) {
      Classes pack = packs_of_row[p];
      DT_UNROLL()
      for (int e = 0; e < width; ++e) {
        pack.at[e] = expf(pack.at[e] - largest);
        sums[e] += pack.at[e];
      }
      packs_of_row[p] = pack;
    }
    float total = sums[0];
    DT_UNROLL()
    for (int e = 1; e < width; ++e) total += sums[e];
    const float factor = scale / total;
    DT_UNROLL(4)
    for (int p = 0; p < count; ++p) {
      Classes pack = packs_of_row[p];
      DT_UNROLL()
      for (int e = 0; e < width; ++e) pack.at[e] *= factor;
      packs_of_row[p] = pack;
    }
    row[label] -= scale;
    return static_cast<double>(logf(total) - at_label);
  }
};

}  // namespace dtrain::gpu::cuda
