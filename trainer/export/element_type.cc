#include "trainer/export/element_type.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "gpu/ops.h"

namespace dtrain {
namespace {

constexpr int64_t kBlock = 1 << 17;  // elements

std::optional<BeyondFloat32> RoundAll(const char* bytes, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) {
    double value = 0;
    std::memcpy(&value, bytes + i * static_cast<int64_t>(sizeof value), sizeof value);
    out[i] = static_cast<float>(value);
    if (std::isinf(out[i]) && std::isfinite(value)) return BeyondFloat32{i, value};
  }
  return std::nullopt;
}

std::optional<BeyondFloat32> Convert(ElementType type, const char* bytes, int64_t count, float* out) {
  gpu::Stream stream;
  const auto* const halves = reinterpret_cast<const uint16_t*>(bytes);
  switch (type) {
    case ElementType::kFloat32:
      std::memcpy(out, bytes, static_cast<size_t>(count) * sizeof(float));
      break;
    case ElementType::kFloat64:
      return RoundAll(bytes, count, out);
    case ElementType::kFloat16:
      gpu::FromHalf(stream, gpu::Half::kFloat16, {halves, count}, {out, count});
      break;
    case ElementType::kBfloat16:
      gpu::FromHalf(stream, gpu::Half::kBfloat16, {halves, count}, {out, count});
      break;
  }
  return std::nullopt;
}

}  // namespace

int64_t BytesOf(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return 4;
    case ElementType::kFloat64:
      return 8;
    case ElementType::kFloat16:
    case ElementType::kBfloat16:
      break;
  }
  return 2;
}

std::optional<ElementType> FromSafetensors(const std::string& name) {
  if (name == "F32") return ElementType::kFloat32;
  if (name == "F64") return ElementType::kFloat64;
  if (name == "F16") return ElementType::kFloat16;
  if (name == "BF16") return ElementType::kBfloat16;
  return std::nullopt;
}

std::optional<int64_t> BytesOfForeign(const std::string& name) {
  const std::pair<const char*, int64_t> sizes[] = {{"BOOL", 1}, {"I8", 1},  {"U8", 1},  {"I16", 2},
                                                   {"U16", 2},  {"I32", 4}, {"U32", 4}, {"I64", 8},
                                                   {"U64", 8},  {"C64", 8}};
  for (const auto& [type, bytes] : sizes) {
    if (name == type) return bytes;
  }
  return std::nullopt;
}

std::optional<ElementType> FromNumpy(const std::string& descr) {
  if (descr == "<f4") return ElementType::kFloat32;
  if (descr == "<f8") return ElementType::kFloat64;
  if (descr == "<f2") return ElementType::kFloat16;
  return std::nullopt;
}

std::string BeyondFloat32::Text(const std::string& element_text) const {
  return fmt::format(
      "{} is {:.6g} in the file; weights are float32, which ends at {:.6g}. Is it the right file?",
      element_text, value, std::numeric_limits<float>::max());
}

std::optional<BeyondFloat32> ReadElements(ElementType type, int64_t count,
                                          const std::function<void(uint64_t bytes, void* to)>& read,
                                          float* out) {
  std::vector<uint64_t> block(static_cast<size_t>(std::min(count, kBlock) * BytesOf(type) + 7) / 8);
  for (int64_t first = 0; first < count; first += kBlock) {
    const int64_t here = std::min(kBlock, count - first);
    read(static_cast<uint64_t>(here * BytesOf(type)), block.data());
    const auto beyond = Convert(type, reinterpret_cast<const char*>(block.data()), here, out + first);
    if (beyond) return BeyondFloat32{first + beyond->element, beyond->value};
  }
  return std::nullopt;
}

void Transpose(int64_t rows, int64_t cols, const float* from, float* to) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) to[c * rows + r] = from[r * cols + c];
  }
}

std::vector<int64_t> Squeezed(std::vector<int64_t> shape) {
  shape.erase(std::remove(shape.begin(), shape.end(), 1), shape.end());
  return shape;
}

std::optional<int64_t> BytesOfShape(const std::vector<int64_t>& shape, int64_t element_bytes) {
  int64_t bytes = element_bytes;
  for (const int64_t side : shape) {
    if (side < 0 || __builtin_mul_overflow(bytes, side, &bytes) || bytes > (int64_t{1} << 62))
      return std::nullopt;
  }
  return bytes;
}

}  // namespace dtrain
