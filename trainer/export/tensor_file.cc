#include "trainer/export/tensor_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <utility>

#include "trainer/config/user_text.h"
#include "trainer/export/npz_file.h"
#include "trainer/export/safetensors_file.h"

namespace dtrain {

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

std::unique_ptr<TensorFile> OpenTensorFile(const std::string& path) {
  auto file = std::make_unique<SourceFile>(path);
  char magic[9] = {};
  if (file->size() < 9) file->Refuse("too short for a .safetensors or .npz file.");
  file->ReadAt(0, sizeof magic, magic);
  // The length of a header may begin with the letters of an archive, whose ninth byte is no brace.
  if (magic[8] == '{') return std::make_unique<SafetensorsFile>(std::move(file));
  if (std::memcmp(magic, "PK\3\4", 4) == 0) return std::make_unique<NpzFile>(std::move(file));
  file->Refuse("neither a .safetensors nor a .npz file. Convert it: numpy.savez(\"model.npz\", **weights).");
}

}  // namespace dtrain
