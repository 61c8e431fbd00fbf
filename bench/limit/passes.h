// The plain passes over memory in limits. Each reads its inputs once and writes its output once, vectorised
// by the compiler for this processor. Thread: any.
#pragma once

#include <cstdint>

namespace dtrain::bench {

// Numbers inside a received frame have no alignment.
using AnyFloat = float __attribute__((aligned(1)));

// updated = weights - rate * gradient. `updated` may be `weights`.
void UpdatePass(const float* weights, const AnyFloat* gradient, float rate, float* updated, int64_t count);

// sum = first + second. `sum` may be either.
void AddPass(const AnyFloat* first, const AnyFloat* second, float* sum, int64_t count);

// out[i] = row rows[i] of `table`, each byte / 255 by one multiplication. Prefetches the next row.
void GatherPass(const uint8_t* table, const int64_t* rows, int64_t count, int64_t cols, float* out);

// out = exp(values), by the C library, one value at a time.
void ExponentialPass(const float* values, float* out, int64_t count);

// Returns the bitwise or of all values, so that each is read once.
uint32_t ReadPass(const uint32_t* values, int64_t count);

}  // namespace dtrain::bench
