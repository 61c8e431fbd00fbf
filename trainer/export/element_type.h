// The numbers that files of tensors hold, and how they become float32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace dtrain {

enum class ElementType { kFloat32, kFloat64, kFloat16, kBfloat16 };

int64_t BytesOf(ElementType type);
// "F32" of safetensors; unset: not one of these.
std::optional<ElementType> FromSafetensors(const std::string& name);
// The bytes of an element of a type that safetensors has and we do not read ("I64"); unset: not known.
std::optional<int64_t> BytesOfForeign(const std::string& name);
// "<f4" of numpy, little-endian; unset: not one of these.
std::optional<ElementType> FromNumpy(const std::string& descr);

// A finite float64 whose float32 is not.
struct BeyondFloat32 {
  int64_t element = 0;
  double value = 0;
  // "weights/W1[0, 1] is 1e+299 in the file, ..."
  std::string Text(const std::string& element_text) const;
};

// `count` elements as `read(bytes, to)` gives them, one piece after the other, rounded to the nearest
// float32. The first that is beyond it ends the reading; unset: there is none.
std::optional<BeyondFloat32> ReadElements(ElementType type, int64_t count,
                                          const std::function<void(uint64_t bytes, void* to)>& read,
                                          float* out);

// [rows, cols] row by row into [cols, rows] row by row.
void Transpose(int64_t rows, int64_t cols, const float* from, float* to);

// Without the sides of 1: a column, a row and a vector are the same values in the same order.
std::vector<int64_t> Squeezed(std::vector<int64_t> shape);

// The product of the sides times the bytes of an element; unset where that is no 62-bit number.
std::optional<int64_t> BytesOfShape(const std::vector<int64_t>& shape, int64_t element_bytes);

}  // namespace dtrain
