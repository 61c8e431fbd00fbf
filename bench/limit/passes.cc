#include "bench/limit/passes.h"

#include <cmath>

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

FOR_EVERY_PROCESSOR
uint32_t ReadPass(const uint32_t* values, int64_t count) {
  uint32_t all = 0;
  for (int64_t i = 0; i < count; ++i) all |= values[i];
  return all;
}

}  // namespace dtrain::bench
