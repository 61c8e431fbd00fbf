// Mean softmax cross-entropy and its gradient. Each logit is read once and each gradient written once: 8
// bytes per logit; the labels and the loss are negligible. This first kernel holds a row in the registers of
// several threads; others below are for rows with few and with very many classes. Sums over a row are f32
// trees; sums over rows are double (reduce.h). As on the CPU, a row with a NaN logit has a NaN loss.
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

// One row for each `group` neighbouring threads, which are lanes of one warp or a whole block. Each thread
// has `each` classes, so a row has up to group * each. A thread's packs of `width` classes are `group` packs
// apart, so that a warp reads neighbouring addresses; with a width of 4 there are only whole packs, at
// aligned addresses. A class costs about 20 instructions and a row some 60 more per thread, so groups are
// small: most of a group's threads should have most of their classes.
template <int group, int each, int width>
struct SoftmaxXentKernel : SoftmaxXentRows {
  static constexpr bool kSynchronizes = true;
  static constexpr bool kOfBlock = group > 32;
  static constexpr int kMaxThreads = kOfBlock ? group : 256;
  // Enough threads to compute while others wait for memory: 40 registers each for 8 values, 64 for 32.
  static constexpr int kBlocksOfMultiprocessor = (each > 8 ? 1024 : 1536) / kMaxThreads;

  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    const int groups = thread.threads() / group;
    double own = 0;
    // All groups loop equally often, because they shuffle together.
    for (int64_t first = thread.block() * groups; first < rows; first += thread.blocks() * groups) {
      own += LossOf(thread, first + thread.index() / group);
    }
    Finish(thread, own);
  }

 private:
  using Values = float[each];
  using Classes = Pack<float, width>;
  static_assert(each % width == 0);
  // The first class of a pack, counted from the thread's first one.
  DT_KERNEL_BODY static constexpr int Place(int pack) { return pack * group * width; }

  // Returns the row's loss in the thread that has the label, and 0 in all others.
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
      values[c] = expf(below);  // 0 beyond the end
      own += values[c];
    }
    const float total = Sum(thread, own);
    Store(values, scale / total, label, end, dlogits + row * classes + first);
    return mine ? static_cast<double>(logf(total) - at_label) : 0.0;
  }

  // Loads the values and returns the largest.
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

// Mean softmax cross-entropy and its gradient for rows of up to 32 classes, one thread for each row: work
// shared by several threads would cost more than reading such a short row. The rows of a block are adjacent
// and go through shared memory, so that device memory is read and written in whole lines. 8 bytes per logit.
// Some 20 instructions per class and 60 per row: for 10 classes less than half of what an H100 executes while
// it moves the row's 80 bytes.

// `exact`: rows have kMax classes; otherwise at most kMax, a multiple of `width`. A thread reads its row in
// packs of `width`. Rows lie an odd number of packs apart if possible, so that the banks of shared memory are
// used evenly.
template <int kMax, int width, bool exact>
struct SoftmaxXentFewKernel : SoftmaxXentRows {
  static constexpr bool kSynchronizes = true;
  static constexpr int kMaxThreads = kMax > 16 ? 128 : 256;
  // 64 registers per thread for rows of 32 classes, 48 for others.
  static constexpr int kBlocksOfMultiprocessor = (kMax > 16 ? 1024 : 1280) / kMaxThreads;
  bool packs;  // both matrices are aligned for packs

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
      thread.Sync();  // until the last rows are stored
      packs ? Fetch<4>(thread, logits + at, here, tile) : Fetch<1>(thread, logits + at, here, tile);
      thread.Sync();
      if (ours) own += LossOf(tile + thread.index() * (exact ? kStride : Count()), label);
      thread.Sync();
      packs ? Put<4>(thread, tile, here, dlogits + at) : Put<1>(thread, tile, here, dlogits + at);
    }
    Finish(thread, own);
  }

 private:
  // Rows of 8, 16 and 32 classes get one pack of padding.
  static constexpr bool kApart = exact && kMax % 8 == 0;
  static constexpr int kStride = kApart ? kMax + 4 : kMax;
  using Classes = Pack<float, width>;
  static_assert(kMax % width == 0);

  DT_KERNEL_BODY int Count() const { return exact ? kMax : static_cast<int>(classes); }
  // Returns where element i of a block's rows lies.
  DT_KERNEL_BODY static int Place(int i) { return kApart ? i + i / kMax * (kStride - kMax) : i; }

  // Copies in packs of `wide`, with four per thread in flight, and then the elements behind the last whole
  // pack. With a width of 1 only one is in flight: the case is rare and must not cost the others registers.
  template <int wide, typename Thread>
  DT_KERNEL_BODY void Fetch(Thread& thread, const float* from, int here, float* tile) const {
    constexpr int kInFlight = wide;
    using Some = Pack<float, wide>;
    const int size = here * Count(), whole = size / wide, step = thread.threads();
    DT_UNROLL(1)
    for (int first = thread.index(); first < whole; first += kInFlight * step) {
      Some some[kInFlight];
      DT_UNROLL()
      for (int t = 0; t < kInFlight; ++t) {
        const int p = first + t * step;
        if (p < whole) some[t] = *reinterpret_cast<const Some*>(from + p * wide);
      }
      DT_UNROLL()
      for (int t = 0; t < kInFlight; ++t) {
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

  // Passes over the row three times: a row in registers would need more than a multiprocessor has when it is
  // full.
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

// Mean softmax cross-entropy and its gradient for rows of any size. One pass finds the largest logit and the
// sum relative to it, a second one writes the gradient. 12 bytes per logit; but each multiprocessor has one
// row at a time, so the rows in work (17 MB for 132 rows of 32000 classes) stay in the second-level cache if
// it is large enough, and device memory sees 8.

// With a width of 4 the rows are whole packs at aligned addresses.
template <int width>
struct SoftmaxXentLongKernel : SoftmaxXentRows {
  static constexpr bool kSynchronizes = true;
  static constexpr int kMaxThreads = 1024;
  static constexpr int kBlocksOfMultiprocessor = 1;

  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    double own = 0;
    for (int64_t row = thread.block(); row < rows; row += thread.blocks()) own += LossOf(thread, row);
    Finish(thread, own);
  }

 private:
  static constexpr int kPacks = width == 1 ? 8 : 4;  // in flight: 64 bytes of a thread
  static constexpr int kInFlight = kPacks * width;
  using Classes = Pack<float, width>;
  using Values = float[kInFlight];

  // The values of a turn are added as a tree. A term of a thread's f32 sum is then rounded once per turn (2
  // turns for 32000 classes) and once per level of its tree.
  struct Running {
    float largest = -INFINITY;
    float sum = 0;
    DT_KERNEL_BODY void Add(Values& values) {
      float above = largest;
      DT_UNROLL()
      for (int c = 0; c < kInFlight; ++c) above = fmaxf(above, values[c]);
      const float base = above == -INFINITY ? 0.0f : above;  // avoids the difference of two infinities
      DT_UNROLL()
      for (int c = 0; c < kInFlight; ++c) values[c] = expf(values[c] - base);
      DT_UNROLL()
      for (int half = kInFlight / 2; half > 0; half /= 2) {
        DT_UNROLL()
        for (int c = 0; c < half; ++c) values[c] += values[c + half];
      }
      sum = sum * expf(largest - base) + values[0];
      largest = above;
    }
  };

  // values[c] is class first + c % width + c / width * step, and -INFINITY beyond the end.
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
    const float logit = from[label];  // read before it may be overwritten: there are waits in between
    const int64_t begin = thread.index() * width, step = thread.threads() * width;
    Running running;
    float values[kInFlight];
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
      for (int c = 0; c < kInFlight; ++c) values[c] = expf(values[c] - largest) * factor;
      Store(values, first, step, to);
    }
    // Done by the thread that stored the label's gradient.
    if (label / width % thread.threads() == thread.index()) {
      to[label] = expf(logit - largest) * factor - scale;
    }
    return thread.index() == 0 ? static_cast<double>(logf(total) - (logit - largest)) : 0.0;
  }
};

}  // namespace dtrain::gpu::cuda
