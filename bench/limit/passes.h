// The plain passes over memory in limits. Each reads its inputs once and writes its output once, vectorised
// by the compiler for this processor. Thread: any.
#pragma once

#include <cstdint>

namespace dtrain::bench {

// Numbers inside a received frame have no alignment.
using AnyFloat = float __attribute__((aligned(1)));
using AnyKey = uint32_t __attribute__((aligned(1)));

// updated = weights - rate * gradient. `updated` may be `weights`.
void UpdatePass(const float* weights, const AnyFloat* gradient, float rate, float* updated, int64_t count);

// The same by adagrad: accumulators += gradient^2, and each rate is over the root of its accumulator.
void AdagradPass(const float* weights, const AnyFloat* gradient, float rate, float* accumulators,
                 float* updated, int64_t count);

// sum = first + second. `sum` may be either.
void AddPass(const AnyFloat* first, const AnyFloat* second, float* sum, int64_t count);

// out[i] = row rows[i] of `table`, each byte / 255 by one multiplication. Prefetches the next row.
void GatherPass(const uint8_t* table, const int64_t* rows, int64_t count, int64_t cols, float* out);

// out = exp(values), by the C library, one value at a time.
void ExponentialPass(const float* values, float* out, int64_t count);

// Rows: those of a table, each of so many floats and, with adagrad, of as many accumulators behind them.
struct RowTable {
  float* rows;
  int64_t width;
  bool adagrad;
};

// Updates the rows `keys` as UpdatePass or AdagradPass. `gradient`: [count, width]. Prefetches rows.
void UpdateRowsPass(const RowTable& table, const AnyKey* keys, const AnyFloat* gradient, float rate,
                    int64_t count);
// Copies the weights of rows to [count, width]. Prefetches rows.
void GatherRowsPass(const RowTable& table, const AnyKey* keys, int64_t count, float* out);

// EmbeddingShape: a batch of rows of data with embeddings: [rows, features] places of rows of the table,
// whose first float is a weight and the others an embedding, and [rows, inputs] inputs of layers.
struct EmbeddingShape {
  int64_t rows;
  int64_t features;
  int64_t width;
  int64_t inputs;
};

// Joins the embeddings of each row of data at the front of its inputs; sums = those of its weights.
void JoinPass(const EmbeddingShape& shape, const float* weights, const uint32_t* places, float* inputs,
              float* sums);
// Adds the gradients of the inputs to those of the rows of the table, and sum + 1 to that of each weight.
void SpreadPass(const EmbeddingShape& shape, const float* slopes, const float* sums, const uint32_t* places,
                float* gradient);

// Returns the bitwise or of all values, so that each is read once.
uint32_t ReadPass(const uint32_t* values, int64_t count);

}  // namespace dtrain::bench
