// Mean softmax cross-entropy and its gradient: each logit is read once, each gradient written once, 8 bytes
// per logit; the labels and the loss are nothing beside them. Here a row is held in registers by several
// threads; rows of few classes: softmax_few.h, of very many: softmax_long.h. Rows are summed in f32 by trees,
// over rows of the launch in double. Loss: reduce.h. As on the CPU a row with a logit that is not a number
// has a loss that is none.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/cuda/kernels/each.h"
#include "gpu/cuda/kernels/reduce.h"

namespace dtrain::gpu::cuda {

struct SoftmaxXentRows {
  const float* logits;
  const int32_t* labels;
  float* dlogits;  // may be `logits`
  int64_t rows, classes;
  float scale;  // 1 / rows
  GridSum<double> sum;
  float* loss;

  template <typename Thread>
  DT_KERNEL_BODY void Finish(Thread& thread, double own) const {
    double total = 0;
    if (!sum.Add(thread, own, &total)) return;
    *loss = rows == 0 ? 0.0f : static_cast<float>(total / static_cast<double>(rows));
  }
};

constexpr int kSoftmaxBlockThreads = 512;

// A row by `group` neighbouring threads, lanes of one warp or a whole block, `each` classes in each: up to
// group * each. A thread has packs of `width` classes, the next ones `group` packs on, so that a warp's reads
// are of neighbouring addresses. Of width 4: whole packs, at addresses for them. A class costs about 20
// instructions, a row of a group some 60 more: a group is so small that most of its threads have most of
// their classes, else those 60 are what the row waits for.
template <int group, int each, int width>
struct SoftmaxXentKernel : SoftmaxXentRows {
  static constexpr bool kTogether = true;
  static constexpr bool kOfBlock = group > 32;
  static constexpr int kMaxThreads = kOfBlock ? group : 256;
  // With so many that one computes while another waits for memory: 40 registers for each of 8 values, 64
  // for 32.
  static constexpr int kBlocksOfMultiprocessor = (each > 8 ? 1024 : 1536) / kMaxThreads;

  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    const int groups = thread.threads() / group;
    double own = 0;
    // All groups go the same number of times: they shuffle together.
    for (int64_t first = thread.block() * groups; first < rows; first += thread.blocks() * groups) {
      own += LossOf(thread, first + thread.index() / group);
    }
    Finish(thread, own);
  }

 private:
  using Values = float[each];
  using Classes = Pack<float, width>;
  static_assert(each % width == 0);
  // Of a pack, from the thread's first one.
  DT_KERNEL_BODY static constexpr int Place(int pack) { return pack * group * width; }

  // Not 0 in the thread of the label only.
  template <typename Thread>
  DT_KERNEL_BODY double LossOf(Thread& thread, int64_t row) const {
    const int first = thread.index() % group * width;
    // Counted from `first`.
    const int end = (row < rows ? static_cast<int>(classes) : 0) - first;
    const int label = (row < rows ? labels[row] : -group * width) - first;
    float values[each];
    float largest = Load(logits + row * classes + first, end, values);
    largest = Max(thread, largest);
    float at_label = 0, own = 0;
    bool mine = false;
    DT_UNROLL()
    for (int c = 0; c < each; ++c) {
      const float below = values[c] - largest;
      if (Place(c / width) + c % width == label) at_label = below, mine = true;
      values[c] = expf(below);  // 0 behind the end
      own += values[c];
    }
    const float total = Sum(thread, own);
    Store(values, scale / total, label, end, dlogits + row * classes + first);
    return mine ? static_cast<double>(logf(total) - at_label) : 0.0;
  }

  // The largest.
  DT_KERNEL_BODY static float Load(const float* from, int end, Values& values) {
    DT_UNROLL()
    for (int p = 0; p < each / width; ++p) {
      Classes pack;
      DT_UNROLL()
      for (int e = 0; e < width; ++e) pack.at[e] = -INFINITY;
      if (Place(p) < end) pack = *reinterpret_cast<const Classes*>(from + Place(p));
      DT_UNROLL()
      for (int e = 0; e < width; ++e) values[p * width + e] = pack.at[e];
    }
    float largest = -INFINITY;
    DT_UNROLL()
    for (int c = 0; c < each; ++c) largest = fmaxf(largest, values[c]);
    return largest;
  }

  DT_KERNEL_BODY void Store(const Values& values, float factor, int label, int end, float* to) const {
    DT_UNROLL()
    for (int p = 0; p < each / width; ++p) {
      Classes pack;
      DT_UNROLL()
      for (int e = 0; e < width; ++e) {
        pack.at[e] = values[p * width + e] * factor - (Place(p) + e == label ? scale : 0.0f);
      }
      if (Place(p) < end) StorePack(pack, to + Place(p));
    }
  }

  template <typename Thread>
  DT_KERNEL_BODY static float Max(Thread& thread, float value) {
    if constexpr (kOfBlock) return BlockMax(thread, value);
    if constexpr (!kOfBlock) return GroupMax<group>(thread, value);
  }
  template <typename Thread>
  DT_KERNEL_BODY static float Sum(Thread& thread, float value) {
    if constexpr (kOfBlock) return BlockSum(thread, value);
    if constexpr (!kOfBlock) return GroupSum<group>(thread, value);
  }
};

}  // namespace dtrain::gpu::cuda
