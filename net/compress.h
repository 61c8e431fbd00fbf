// Compression: the forms in which the values of a tensor travel (net.compress; docs/wire.md). Values are cut
// into groups of kGroupValues from the first one on; the last group may be shorter. Each group stands alone,
// so the bits do not depend on how a tensor is cut where the cuts are between groups.
// Thread: any; free functions that allocate nothing.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dtrain::net {

// The numbers are those of the wire.
enum class Compression : uint8_t {
  kNone = 0,  // float32
  kBf16 = 1,  // the upper half of a float32, rounded to even
  kInt8 = 2,  // of each group a scale, float32, then for each value a multiple of it, -127 to 127
  kTopk = 3,  // of each group the kTopValues of the largest magnitude: their places, then they as bf16
};

constexpr int64_t kGroupValues = 256;
constexpr int64_t kTopValues = 16;

// "int8".
const char* CompressionName(Compression form);

// Whether `form` cuts its values into groups.
inline bool HasGroups(Compression form) { return form == Compression::kInt8 || form == Compression::kTopk; }

// The form of rows of a table where tensors have `form`: the largest of a group are for tensors alone.
inline Compression FormOfRows(Compression form) {
  return form == Compression::kTopk ? Compression::kNone : form;
}

// The bytes of `count` values in this form, of kNone too.
size_t CompressedBytes(Compression form, int64_t count);

// Writes the CompressedBytes() of `values`; `form` is not kNone. `residual`, unless null, has what earlier
// calls have left out: it is added to the values, and holds afterwards what this call leaves out (error
// feedback, Seide et al., Interspeech 2014). A value that is not finite stays so: with kInt8 its whole group
// becomes NaN, with kTopk it is among the largest. It leaves nothing in the residual.
void Compress(Compression form, const float* values, float* residual, int64_t count, std::byte* out);

// The same without a memory, for kBf16 and kInt8: each value is rounded up or down at random, by a number
// that is a pure function of the seed and of the value's place, so that on average nothing is left out
// (stochastic rounding: Gupta et al., Deep learning with limited numerical precision, ICML 2015).
void CompressAtRandom(Compression form, const float* values, uint64_t seed, int64_t count, std::byte* out);

// Writes `count` values; `form` is not kNone. False, with nothing written behind them: `size` is another one,
// or places of a kTopk are not in their group or do not ascend.
bool Decompress(Compression form, const std::byte* data, size_t size, int64_t count, float* values);

}  // namespace dtrain::net
