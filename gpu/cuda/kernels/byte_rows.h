// Layers with few outputs on rows of bytes, which are read in place. Sums are f32, of bytes times floats with
// one rounding each (fmaf), and are multiplied by 1/255 at the end.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/cuda/kernels/activation.h"
#include "gpu/cuda/kernels/each.h"
#include "gpu/cuda/kernels/reduce.h"
#include "gpu/ops.h"

namespace dtrain::gpu::cuda {

constexpr float kByteScale = 1.0f / 255;

struct ByteTable {
  const uint8_t* bytes;
  const int64_t* numbers;  // [rows]
  int64_t rows, columns;
  DT_KERNEL_BODY int64_t Start(int64_t row) const { return numbers[row] * columns; }
};

// Epilogue: the activation that follows, for kernels in which a branch costs nothing in comparison.
enum class Epilogue : int { kNone, kSigmoid, kTanh, kRelu };
DT_KERNEL_BODY inline float Finished(Epilogue epilogue, float value) {
  if (epilogue == Epilogue::kSigmoid) return Sigmoid::Of(value);
  if (epilogue == Epilogue::kTanh) return Tanh::Of(value);
  return epilogue == Epilogue::kRelu ? Relu::Of(value) : value;
}

// out = activation(x * w + b), for up to kOutputs outputs. A block takes kRows rows at a time. Each thread
// takes four neighbouring inputs and then advances by four times the block's threads; it keeps sums for all
// rows and outputs in registers. The sums are added over the warp by shuffles and over the warps through
// shared memory. Cost: a byte and 2 * outputs flops per input and row. The weights are read from the caches
// once for kRows rows. Batches of about 100 rows take one row per block, to fill the machine; large ones take
// four.
template <int kOutputs, int kRows>
struct ByteForwardKernel {
  static constexpr bool kSynchronizes = true;
  static constexpr int kMaxThreads = 256;
  static constexpr int kMaxWarps = kMaxThreads / 32;
  ByteTable x;
  const float* weights;  // [columns, outputs]
  const float* biases;
  float* out;  // [rows, outputs]
  int outputs;
  bool byte_packs;    // four bytes of a row are aligned for packs
  bool weight_packs;  // so are the weights of four inputs, kOutputs each
  Epilogue epilogue;

  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    for (int64_t first = thread.block() * kRows; first < x.rows; first += thread.blocks() * kRows) {
      float sums[kRows][kOutputs] = {};
      Multiply(thread, first, sums);
      Reduce(thread, first, sums);
    }
  }

 private:
  using Sums = float[kRows][kOutputs];

  template <typename Thread>
  DT_KERNEL_BODY void Multiply(Thread& thread, int64_t first, Sums& sums) const {
    int64_t rows[kRows];  // where the rows start
    DT_UNROLL()
    for (int r = 0; r < kRows; ++r) {
      rows[r] = x.Start(first + r < x.rows ? first + r : x.rows - 1);  // the surplus row is not stored
    }
    const int64_t step = 4 * thread.threads();
    int64_t i = 4 * thread.index();
    DT_UNROLL(1)
    for (; i + 4 <= x.columns; i += step) {
      Pack<uint8_t, 4> bytes[kRows];
      DT_UNROLL()
      for (int r = 0; r < kRows; ++r) bytes[r] = FourBytes(x.bytes + rows[r] + i);
      if (weight_packs) {
        AddFour(bytes, PackedWeights(i), sums);
      } else {
        AddFour(bytes, FourWeights(i), sums);
      }
    }
    DT_UNROLL(1)
    for (; i < x.columns; ++i) {  // the last inputs, fewer than four
      DT_UNROLL()
      for (int r = 0; r < kRows; ++r) {
        const auto byte = static_cast<float>(x.bytes[rows[r] + i]);
        DT_UNROLL()
        for (int j = 0; j < kOutputs; ++j) {
          if (j < outputs) sums[r][j] = fmaf(byte, weights[i * outputs + j], sums[r][j]);
        }
      }
    }
  }

  DT_KERNEL_BODY Pack<uint8_t, 4> FourBytes(const uint8_t* from) const {
    if (byte_packs) return *reinterpret_cast<const Pack<uint8_t, 4>*>(from);
    return {{from[0], from[1], from[2], from[3]}};
  }
  // Weights: those of four inputs, all outputs of the first input first.
  struct Weights {
    float at[4 * kOutputs];
  };
  DT_KERNEL_BODY Weights PackedWeights(int64_t i) const {
    const auto* const packs = reinterpret_cast<const Pack<float, 4>*>(weights + i * kOutputs);
    Weights four;
    DT_UNROLL()
    for (int p = 0; p < kOutputs; ++p) {
      const Pack<float, 4> pack = packs[p];
      DT_UNROLL()
      for (int e = 0; e < 4; ++e) four.at[4 * p + e] = pack.at[e];
    }
    return four;
  }
  DT_KERNEL_BODY Weights FourWeights(int64_t i) const {
    Weights four;
    DT_UNROLL()
    for (int e = 0; e < 4 * kOutputs; ++e) {
      const int j = e % kOutputs;
      four.at[e] = j < outputs ? weights[(i + e / kOutputs) * outputs + j] : 0.0f;
    }
    return four;
  }
  DT_KERNEL_BODY static void AddFour(const Pack<uint8_t, 4> (&bytes)[kRows], const Weights& four,
                                     Sums& sums) {
    DT_UNROLL()
    for (int q = 0; q < 4; ++q) {
      DT_UNROLL()
      for (int r = 0; r < kRows; ++r) {
        const auto byte = static_cast<float>(bytes[r].at[q]);
        DT_UNROLL()
        for (int j = 0; j < kOutputs; ++j) sums[r][j] = fmaf(byte, four.at[q * kOutputs + j], sums[r][j]);
      }
    }
  }

  template <typename Thread>
  DT_KERNEL_BODY void Reduce(Thread& thread, int64_t first, Sums& sums) const {
    constexpr int kSums = kRows * kOutputs;
    float* const warps = thread.template Shared<float, kMaxWarps * kSums>();
    thread.Sync();  // until the sums of the last rows are read
    DT_UNROLL()
    for (int e = 0; e < kSums; ++e) {
      const float sum = GroupSum<32>(thread, sums[e / kOutputs][e % kOutputs]);
      if (thread.lane() == 0) warps[thread.warp() * kSums + e] = sum;
    }
    thread.Sync();
    for (int e = thread.index(); e < kSums; e += thread.threads()) {
      const int64_t row = first + e / kOutputs;
      const int j = e % kOutputs;
      if (row >= x.rows || j >= outputs) continue;
      float sum = 0;
      DT_UNROLL(1)
      for (int w = 0; w < thread.warps(); ++w) sum += warps[w * kSums + e];
      out[row * outputs + j] = Finished(epilogue, sum * kByteScale + biases[j]);
    }
  }
};

// dw = x^T * dout and db = column sums of dout, for up to kOutputs outputs, or these sums for each of
// `chunks` parts of the rows. A block has 32 neighbouring inputs, one for each lane, so that a warp reads one
// sector of a row. Its warps take rows in turn with the sums of all outputs in registers; the warps' sums are
// added through shared memory, in order. Row numbers and dout are staged there, kPiece rows at a time. Cost:
// a byte and 2 * outputs flops per input and row, and dout once for each 32 inputs.
// 784 inputs make 25 blocks of 16 warps; 100 rows are then 6 or 7 for each warp, in one stage. More rows take
// more blocks and a second stage (column_sums.h), which costs 4 * chunks bytes per weight.
template <int kOutputs>
struct ByteGradientKernel {
  static constexpr bool kSynchronizes = true;
  static constexpr int kWarps = 16;
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kMaxThreads = kThreads;
  static constexpr int kBlocksOfMultiprocessor = kOutputs > 10 ? 1 : 0;  // otherwise registers are spilled
  static constexpr int kInputs = 32;
  static constexpr int kPiece = 128;
  ByteTable x;
  const float* dout;  // [rows, outputs]
  int outputs;
  int64_t chunks;  // blocks: chunks times the tiles of 32 inputs
  float* dw;       // [columns, outputs]; each chunk `stride` floats behind the one before
  float* db;       // [outputs]; likewise
  int64_t stride;

  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    const int64_t tiles = thread.blocks() / chunks;
    const int64_t chunk = thread.block() / tiles;
    const int64_t input = (thread.block() - chunk * tiles) * kInputs;
    const int64_t end = x.rows * (chunk + 1) / chunks;
    float sums[kOutputs] = {};
    float bias = 0;  // of the output with the number lane()
    for (int64_t first = x.rows * chunk / chunks; first < end; first += kPiece) {
      const int rows = static_cast<int>(end - first < kPiece ? end - first : kPiece);
      AddPiece(thread, input + thread.lane(), first, rows, sums, &bias);
    }
    Reduce(thread, input, sums, bias, chunk * stride);
  }

 private:
  using Sums = float[kOutputs];
  // How many outputs of a row are read from shared memory at once.
  static constexpr int kWidth = kOutputs % 4 == 0 ? 4 : kOutputs % 2 == 0 ? 2 : 1;
  using Slopes = Pack<float, kWidth>;
  static constexpr int kSlopesOfRow = kOutputs / kWidth;

  template <typename Thread>
  DT_KERNEL_BODY void AddPiece(Thread& thread, int64_t input, int64_t first, int rows, Sums& sums,
                               float* bias) const {
    int64_t* const starts = thread.template Shared<int64_t, kPiece>();
    Slopes* const packs = thread.template Shared<Slopes, kPiece * kSlopesOfRow>();
    float* const slopes = packs->at;
    thread.Sync();  // until the last piece is read
    for (int i = thread.index(); i < rows; i += kThreads) starts[i] = x.Start(first + i);
    for (int e = thread.index(); e < rows * kOutputs; e += kThreads) {
      const int j = e % kOutputs;
      slopes[e] = j < outputs ? dout[(first + e / kOutputs) * outputs + j] : 0.0f;
    }
    thread.Sync();
    DT_UNROLL(4)
    for (int i = thread.warp(); i < rows; i += kWarps) {
      const float byte = input < x.columns ? static_cast<float>(x.bytes[starts[i] + input]) : 0.0f;
      DT_UNROLL()
      for (int p = 0; p < kSlopesOfRow; ++p) {
        const Slopes pack = packs[i * kSlopesOfRow + p];
        DT_UNROLL()
        for (int e = 0; e < kWidth; ++e) sums[p * kWidth + e] = fmaf(byte, pack.at[e], sums[p * kWidth + e]);
      }
      if (thread.lane() < kOutputs) *bias += slopes[i * kOutputs + thread.lane()];
    }
  }

  template <typename Thread>
  DT_KERNEL_BODY void Reduce(Thread& thread, int64_t input, const Sums& sums, float bias,
                             int64_t offset) const {
    constexpr int kSums = (kInputs + 1) * kOutputs;  // the biases behind the weights
    float* const warps = thread.template Shared<float, kWarps * kSums>();
    float* const own = warps + thread.warp() * kSums;
    DT_UNROLL()
    for (int j = 0; j < kOutputs; ++j) own[thread.lane() * kOutputs + j] = sums[j];
    if (thread.lane() < kOutputs) own[kInputs * kOutputs + thread.lane()] = bias;
    thread.Sync();
    for (int e = thread.index(); e < kSums; e += kThreads) {
      const int j = e % kOutputs;
      const int64_t row = input + e / kOutputs;
      float sum = 0;
      DT_UNROLL()
      for (int w = 0; w < kWarps; ++w) sum += warps[w * kSums + e];
      if (j >= outputs) continue;
      if (e >= kInputs * kOutputs) {
        if (input == 0) db[offset + j] = sum;
      } else if (row < x.columns) {
        dw[offset + row * outputs + j] = sum * kByteScale;
      }
    }
  }
};

}  // namespace dtrain::gpu::cuda
