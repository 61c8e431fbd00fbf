// Sums of the columns of a matrix: the gradient of biases, and the total of partial sums of several blocks.
#pragma once

#include <cstdint>

#include "gpu/cuda/kernels/reduce.h"

namespace dtrain::gpu::cuda {

// A block has a tile of `width` columns (its warps read neighbouring addresses) and one of `chunks` parts of
// the rows. Each thread adds rows of one column; the threads of a column are added as a tree; the last block
// of a tile adds up the tile's parts in the same way. 4 bytes per value, f32.
struct ColumnSumsKernel {
  static constexpr bool kSynchronizes = true;
  static constexpr int kThreads = 256;
  static constexpr int kMaxThreads = kThreads;
  static constexpr int kMaxWidth = 32;
  const float* matrix;  // [rows, columns]
  int64_t rows, columns;
  int width;           // a power of two
  int64_t chunks;      // blocks: chunks times the tiles
  float* parts;        // [chunks, columns]; used if there are several chunks
  uint32_t* tickets;   // [tiles], likewise
  float* sums;         // of columns [0, split)
  float* sums_behind;  // of the other columns
  int64_t split;

  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    const int64_t tiles = thread.blocks() / chunks;
    const int64_t chunk = thread.block() / tiles;
    const int64_t tile = thread.block() - chunk * tiles;
    const int64_t column = tile * width + thread.index() % width;
    const float sum = SumOf(thread, matrix, column, rows * chunk / chunks, rows * (chunk + 1) / chunks);
    const bool ours = thread.index() < width && column < columns;
    if (chunks == 1) {
      if (ours) Put(column, sum);
      return;
    }
    if (ours) parts[chunk * columns + column] = sum;
    if (!LastBlock(thread, tickets + tile, chunks)) return;
    const volatile float* const found = parts;
    const float total = SumOf(thread, found, column, 0, chunks);
    if (ours) Put(column, total);
  }

 private:
  DT_KERNEL_BODY void Put(int64_t column, float sum) const {
    (column < split ? sums + column : sums_behind + (column - split))[0] = sum;
  }

  // Returns the sum of one column of `values`, in the first `width` threads.
  template <typename Thread, typename Value>
  DT_KERNEL_BODY float SumOf(Thread& thread, Value* values, int64_t column, int64_t begin,
                             int64_t end) const {
    float* const own = thread.template Shared<float, kThreads>();
    const int height = kThreads / width;
    float sum = 0;
    if (column < columns) {
      DT_UNROLL(8)
      for (int64_t row = begin + thread.index() / width; row < end; row += height) {
        sum += values[row * columns + column];
      }
    }
    own[thread.index()] = sum;
    for (int half = height / 2; half > 0; half /= 2) {
      thread.Sync();
      if (thread.index() < half * width) own[thread.index()] += own[thread.index() + half * width];
    }
    return own[thread.index()];
  }
};

}  // namespace dtrain::gpu::cuda
