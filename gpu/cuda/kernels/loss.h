// Losses with one output per row, with their gradients, and counts of correct answers. The threads' results
// are summed in a fixed order, losses in double (reduce.h), and written by one store.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/cuda/kernels/reduce.h"
#include "gpu/point_loss_rows.h"

namespace dtrain::gpu::cuda {

// Writes the gradient of one row and returns its loss, by the formulas of cpu/loss.cc.
struct SquaredError {
  using Target = float;
  DT_KERNEL_BODY static double Of(float y, float target, float scale, float* gradient) {
    const float difference = y - target;
    *gradient = scale * difference;
    return static_cast<double>(difference) * static_cast<double>(difference);
  }
};

struct LogisticLoss {
  using Target = int32_t;
  DT_KERNEL_BODY static double Of(float z, int32_t label, float scale, float* gradient) {
    const float small = expf(-fabsf(z));
    const bool wrong_side = (z > 0) != (label == 1);
    const float towards = small / (1.0f + small);
    const float miss = wrong_side ? 1.0f / (1.0f + small) : towards;
    *gradient = scale * (label == 1 ? -miss : miss);
    return static_cast<double>(log1pf(small) + (wrong_side ? fabsf(z) : 0.0f));
  }
};

// Any loss of gpu/point_loss_rows.h with such targets: one kernel for all, since memory decides the time.
template <typename T>
struct PointLossOf {
  using Target = T;
  LossKind kind;
  float parameter;
  DT_KERNEL_BODY double Of(float output, Target target, float scale, float* gradient) const {
    float slope = 0, value = 0;
    VisitLossRow<Target>(kind,
                         [&](auto row) { value = row.Of(output, TargetOf(target), parameter, &slope); });
    *gradient = scale * slope;
    return static_cast<double>(value);
  }
};

// The mean of a loss over all rows. 12 bytes per row.
template <typename Loss>
struct MeanLossKernel {
  static constexpr bool kSynchronizes = true;
  const float* outputs;
  const typename Loss::Target* targets;
  float* gradient;  // may be `outputs`
  int64_t rows;
  float scale;  // of the gradient
  GridSum<double> sum;
  float* loss;
  Loss of;

  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    double own = 0, total = 0;
    const int64_t step = thread.blocks() * thread.threads();
    for (int64_t i = thread.block() * thread.threads() + thread.index(); i < rows; i += step) {
      float slope = 0;
      own += of.Of(outputs[i], targets[i], scale, &slope);
      gradient[i] = slope;
    }
    if (sum.Add(thread, own, &total)) {
      *loss = rows == 0 ? 0.0f : static_cast<float>(total / static_cast<double>(rows));
    }
  }
};

// Counts the rows whose sign is right. 8 bytes per row.
struct CountSignKernel {
  static constexpr bool kSynchronizes = true;
  const float* logits;
  const int32_t* labels;
  int64_t rows;
  GridSum<int64_t> sum;
  int64_t* correct;

  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    int64_t own = 0, total = 0;
    const int64_t step = thread.blocks() * thread.threads();
    for (int64_t i = thread.block() * thread.threads() + thread.index(); i < rows; i += step) {
      own += (logits[i] > 0) == (labels[i] == 1);
    }
    if (sum.Add(thread, own, &total)) *correct = total;
  }
};

// Counts the rows whose largest score is at the label. `group` lanes share a row, each with every group-th
// class. 4 bytes per score.
template <int group>
struct CountArgmaxKernel {
  static constexpr bool kSynchronizes = true;
  const float* scores;
  const int32_t* labels;
  int64_t rows, classes;
  GridSum<int64_t> sum;
  int64_t* correct;

  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    const int64_t groups = thread.threads() / group;
    int64_t own = 0, total = 0;
    // All groups loop equally often, because they shuffle together.
    for (int64_t first = thread.block() * groups; first < rows; first += thread.blocks() * groups) {
      const int64_t row = first + thread.index() / group;
      const int64_t best = BestOf(thread, row);
      if (row < rows && thread.lane() % group == 0) own += best == labels[row];
    }
    if (sum.Add(thread, own, &total)) *correct = total;
  }

 private:
  // Finds the first of the largest scores. As on the CPU, a first score that is NaN is never exceeded, and
  // other NaN scores never win.
  template <typename Thread>
  DT_KERNEL_BODY int64_t BestOf(Thread& thread, int64_t row) const {
    float best = -INFINITY;
    int64_t at = INT64_MAX;
    const int lane = thread.lane() % group;
    if (row < rows && lane < classes) {
      best = scores[row * classes + lane];
      at = best != best && lane != 0 ? INT64_MAX : lane;
      if (best != best) best = lane == 0 ? INFINITY : -INFINITY;
      for (int64_t j = lane + group; j < classes; j += group) {
        const float score = scores[row * classes + j];
        if (score > best || (at == INT64_MAX && score == best)) best = score, at = j;
      }
    }
    DT_UNROLL()
    for (int mask = group / 2; mask > 0; mask /= 2) {
      const float other = thread.ShuffleXor(best, mask);
      const int64_t other_at = thread.ShuffleXor(at, mask);
      if (other > best || (other == best && other_at < at)) best = other, at = other_at;
    }
    return at;
  }
};

}  // namespace dtrain::gpu::cuda
