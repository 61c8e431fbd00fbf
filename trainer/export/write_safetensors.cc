#include <nlohmann/json.hpp>

#include "trainer/export/formats.h"

namespace dtrain {
namespace {

// Behind the header the tensors are aligned so, hence all of them for float32.
constexpr size_t kAlignment = 64;

std::string Header(const ExportedModel& model) {
  nlohmann::ordered_json header;
  for (const auto& [name, text] : model.Metadata()) header["__metadata__"][name] = text;
  int64_t offset = 0;
  for (const Variable& variable : model.variables) {
    const int64_t end = offset + variable.size() * static_cast<int64_t>(sizeof(float));
    header[variable.name] = {
        {"dtype", "F32"}, {"shape", ExportedModel::ShapeOf(variable)}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const size_t end = sizeof(uint64_t) + text.size();
  return text.append((kAlignment - end % kAlignment) % kAlignment, ' ');
}

}  // namespace

void WriteSafetensors(const ExportedModel& model, OutputFile* file) {
  const std::string header = Header(model);
  const uint64_t size = header.size();  // little-endian, as this machine is
  file->Write(&size, sizeof size);
  file->Write(header);
  for (const Variable& variable : model.variables) {
    model.ForEachBlock(variable, [&](const float* values, int64_t count) {
      file->Write(values, static_cast<size_t>(count) * sizeof(float));
    });
  }
}

}  // namespace dtrain
