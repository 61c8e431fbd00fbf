// Kernels over the elements of a matrix that need their row or column: biases and gathered rows.
#pragma once

#include <cstdint>

#include "gpu/cuda/kernels/activation.h"
#include "gpu/cuda/kernels/each.h"
#include "gpu/number.h"

namespace dtrain::gpu::cuda {

// RowWalk: a thread's position on its way through all packs of a matrix, row after row. It divides once at
// the start and never again.
class RowWalk {
 public:
  template <typename Thread>
  DT_KERNEL_BODY RowWalk(Thread& thread, int64_t packs_of_row) : packs_of_row_(packs_of_row) {
    const int64_t first = thread.block() * thread.threads() + thread.index();
    const int64_t step = thread.blocks() * thread.threads();
    row_ = first / packs_of_row;
    column_ = first - row_ * packs_of_row;
    step_rows_ = step / packs_of_row;
    step_columns_ = step - step_rows_ * packs_of_row;
  }
  DT_KERNEL_BODY int64_t row() const { return row_; }
  DT_KERNEL_BODY int64_t column() const { return column_; }  // in packs
  DT_KERNEL_BODY void Next() {
    row_ += step_rows_;
    column_ += step_columns_;
    if (column_ < packs_of_row_) return;
    column_ -= packs_of_row_;
    ++row_;
  }

 private:
  int64_t packs_of_row_, row_, column_, step_rows_, step_columns_;
};

// values = activation(values + biases), for a matrix of whole packs: 8 bytes per value; the biases stay in
// the caches.
template <typename Kind, int width>
struct BiasKernel {
  static constexpr bool kSynchronizes = false;
  float* values;
  const float* biases;
  int64_t rows, packs_of_row;

  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    for (RowWalk at(thread, packs_of_row); at.row() < rows; at.Next()) {
      auto* const place =
          reinterpret_cast<Pack<float, width>*>(values) + at.row() * packs_of_row + at.column();
      const auto bias = reinterpret_cast<const Pack<float, width>*>(biases)[at.column()];
      Pack<float, width> pack = *place;
      DT_UNROLL()
      for (int e = 0; e < width; ++e) pack.at[e] = Kind::Of(pack.at[e] + bias.at[e]);
      *place = pack;
    }
  }
};

DT_KERNEL_BODY inline float AsFloat(uint8_t byte) { return ByteAsFloat(byte); }
DT_KERNEL_BODY inline float AsFloat(float value) { return value; }

// Copies rows of a table to floats: 5 bytes per value from bytes, 8 from floats. The number of a row is read
// for each of its packs, from the cache.
template <typename T, int width>
struct GatherKernel {
  static constexpr bool kSynchronizes = false;
  const T* table;
  const int64_t* numbers;
  float* out;
  int64_t rows, packs_of_row;

  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    for (RowWalk at(thread, packs_of_row); at.row() < rows; at.Next()) {
      const int64_t from = numbers[at.row()] * packs_of_row + at.column();
      const auto pack = reinterpret_cast<const Pack<T, width>*>(table)[from];
      Pack<float, width> to;
      DT_UNROLL()
      for (int e = 0; e < width; ++e) to.at[e] = AsFloat(pack.at[e]);
      reinterpret_cast<Pack<float, width>*>(out)[at.row() * packs_of_row + at.column()] = to;
    }
  }
};

}  // namespace dtrain::gpu::cuda
