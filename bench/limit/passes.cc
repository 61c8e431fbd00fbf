#include "bench/limit/passes.h"

#include <cmath>
#include <type_traits>

// One clone for each instruction set, chosen at program start. Sanitizers do not support code that runs so
// early.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FOR_EVERY_PROCESSOR
#else
#define FOR_EVERY_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#endif

namespace dtrain::bench {

FOR_EVERY_PROCESSOR
void UpdatePass(const float* weights, const AnyFloat* gradient, float rate, float* updated, int64_t count) {
  for (int64_t i = 0; i < count; ++i) updated[i] = weights[i] - rate * gradient[i];
}

FOR_EVERY_PROCESSOR
void AdagradPass(const float* weights, const AnyFloat* gradient, float rate, float* accumulators,
                 float* updated, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    accumulators[i] += gradient[i] * gradient[i];
    updated[i] = weights[i] - rate * gradient[i] / std::sqrt(accumulators[i]);
  }
}

FOR_EVERY_PROCESSOR
void AddPass(const AnyFloat* first, const AnyFloat* second, float* sum, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sum[i] = first[i] + second[i];
}

FOR_EVERY_PROCESSOR
void GatherPass(const uint8_t* table, const int64_t* rows, int64_t count, int64_t cols,
                float* __restrict out) {
  constexpr float kScale = 1.0f / 255;
  constexpr int64_t kCacheLine = 64;
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t* const next = table + rows[i + 1 < count ? i + 1 : i] * cols;
    for (int64_t j = 0; j < cols; j += kCacheLine) __builtin_prefetch(next + j);
    const uint8_t* const bytes = table + rows[i] * cols;
    for (int64_t j = 0; j < cols; ++j) out[i * cols + j] = kScale * static_cast<float>(bytes[j]);
  }
}

void ExponentialPass(const float* values, float* out, int64_t count) {
  for (int64_t i = 0; i < count; ++i) out[i] = std::exp(values[i]);
}

namespace {

// Calls `run` with the width, as a constant where it is that of a job: a weight, or one and an embedding.
template <typename Run>
inline __attribute__((always_inline)) void WithWidth(int64_t width, const Run& run) {
  if (width == 1) return run(std::integral_constant<int64_t, 1>());
  if (width == 9) return run(std::integral_constant<int64_t, 9>());
  run(width);
}

// A row further on is on its way from memory meanwhile.
inline float* RowAt(const RowTable& table, const AnyKey* keys, int64_t i, int64_t count) {
  constexpr int64_t kAhead = 16, kLineFloats = 16;
  const int64_t floats = table.adagrad ? 2 * table.width : table.width;
  if (i + kAhead < count) {
    const float* const next = table.rows + keys[i + kAhead] * floats;
    for (int64_t j = 0; j < floats; j += kLineFloats) __builtin_prefetch(next + j, 1);
    __builtin_prefetch(next + floats - 1, 1);
  }
  return table.rows + keys[i] * floats;
}

}  // namespace

FOR_EVERY_PROCESSOR
void UpdateRowsPass(const RowTable& table, const AnyKey* keys, const AnyFloat* gradient, float rate,
                    int64_t count) {
  WithWidth(
      table.width, [&](auto width) __attribute__((always_inline)) {
        for (int64_t i = 0; i < count; ++i) {
          float* __restrict row = RowAt(table, keys, i, count);
          const AnyFloat* __restrict slopes = gradient + i * width;
          if (!table.adagrad) {
            for (int64_t j = 0; j < width; ++j) row[j] -= rate * slopes[j];
            continue;
          }
          for (int64_t j = 0; j < width; ++j) {
            const float slope = slopes[j], sum = row[width + j] + slope * slope;
            row[width + j] = sum;
            row[j] -= rate * slope / std::sqrt(sum);
          }
        }
      });
}

FOR_EVERY_PROCESSOR
void GatherRowsPass(const RowTable& table, const AnyKey* keys, int64_t count, float* out) {
  WithWidth(
      table.width, [&](auto width) __attribute__((always_inline)) {
        for (int64_t i = 0; i < count; ++i) {
          const float* const row = RowAt(table, keys, i, count);
          for (int64_t j = 0; j < width; ++j) out[i * width + j] = row[j];
        }
      });
}

FOR_EVERY_PROCESSOR
void JoinPass(const EmbeddingShape& shape, const float* weights, const uint32_t* places, float* inputs,
              float* sums) {
  WithWidth(
      shape.width, [&](auto width) __attribute__((always_inline)) {
        for (int64_t row = 0; row < shape.rows; ++row, places += shape.features, inputs += shape.inputs) {
          float sum = 0;
          for (int64_t i = 0; i < shape.features; ++i) {
            const float* __restrict from = weights + places[i] * width;
            float* __restrict to = inputs + i * (width - 1);
            sum += from[0];
            for (int64_t j = 1; j < width; ++j) to[j - 1] = from[j];
          }
          sums[row] = sum;
        }
      });
}

FOR_EVERY_PROCESSOR
void SpreadPass(const EmbeddingShape& shape, const float* slopes, const float* sums, const uint32_t* places,
                float* gradient) {
  WithWidth(
      shape.width, [&](auto width) __attribute__((always_inline)) {
        for (int64_t row = 0; row < shape.rows; ++row, places += shape.features, slopes += shape.inputs) {
          for (int64_t i = 0; i < shape.features; ++i) {
            const float* __restrict from = slopes + i * (width - 1);
            float* __restrict to = gradient + places[i] * width;
            to[0] += sums[row] + 1;
            for (int64_t j = 1; j < width; ++j) to[j] += from[j - 1];
          }
        }
      });
}

FOR_EVERY_PROCESSOR
uint32_t ReadPass(const uint32_t* values, int64_t count) {
  uint32_t all = 0;
  for (int64_t i = 0; i < count; ++i) all |= values[i];
  return all;
}

}  // namespace dtrain::bench
