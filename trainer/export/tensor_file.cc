#include "trainer/export/tensor_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "gpu/ops.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

constexpr int64_t kBlock = 1 << 17;  // elements

std::optional<BeyondFloat32> ConvertAll(const char* bytes, int64_t count, float* out) {
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
      return ConvertAll(bytes, count, out);
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

int64_t FileTensor::size() const {
  int64_t size = 1;
  for (const int64_t side : shape) size *= side;
  return size;
}

std::string FileTensor::ShapeText() const {
  return shape.empty() ? "scalar" : fmt::format("{}", fmt::join(shape, " x "));
}

std::string FileTensor::ElementText(int64_t element) const {
  std::vector<int64_t> place(shape.size());
  for (size_t side = shape.size(); side-- > 0; element /= shape[side]) place[side] = element % shape[side];
  return fmt::format("{}[{}]", Shown(name), fmt::join(place, ", "));
}

void TensorFile::AddMetadata(const Json& metadata) {
  for (const auto& [name, value] : metadata.items()) {
    metadata_[name] = value.is_string() ? value.get<std::string>() : value.dump();
  }
}

std::unique_ptr<TensorFile> OpenTensorFile(const std::string& path) {
  auto file = std::make_unique<SourceFile>(path);
  char magic[9] = {};
  if (file->size() < 9) file->Refuse("too short for a .safetensors or .npz file.");
  file->ReadAt(0, sizeof magic, magic);
  // A safetensors header may have a length with the bytes of an archive's magic; a brace as the ninth byte
  // tells them apart.
  if (magic[8] == '{') return OpenSafetensors(std::move(file));
  if (std::memcmp(magic, "PK\3\4", 4) == 0) return OpenNpz(std::move(file));
  file->Refuse("neither a .safetensors nor a .npz file. Convert it: numpy.savez(\"model.npz\", **weights).");
}

// Does not wait: open() would, if the file is a pipe.
SourceFile::SourceFile(const std::string& path)
    : path_(path), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (fd_ < 0) Refuse(fmt::format("cannot be opened: {}. Is the path right?", ErrnoText(errno)));
  struct stat about {};
  if (fstat(fd_, &about) != 0 || !S_ISREG(about.st_mode)) {
    close(fd_);
    Refuse("is no file. Name a .safetensors or .npz file.");
  }
  size_ = static_cast<uint64_t>(about.st_size);
}

SourceFile::~SourceFile() { close(fd_); }

void SourceFile::ReadAt(uint64_t offset, uint64_t bytes, void* out) const {
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = pread(fd_, to, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) Refuse(fmt::format("cannot be read at byte {}: {}.", offset, ErrnoText(errno)));
    if (got == 0) Refuse(fmt::format("ends at byte {}. The file is cut off: fetch it anew.", offset));
    to += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
}

}  // namespace dtrain
