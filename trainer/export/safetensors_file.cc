#include "trainer/export/safetensors_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMostHeader = 100'000'000;  // as the format's own reader

bool IsSizes(const Json& list) {
  return list.is_array() && std::all_of(list.begin(), list.end(), [](const Json& size) {
           return size.is_number_unsigned() && size.get<uint64_t>() < (uint64_t{1} << 62);
         });
}

}  // namespace

SafetensorsFile::SafetensorsFile(std::unique_ptr<SourceFile> file) : file_(std::move(file)) {
  ReadHeader();
  CheckOverlaps();
}

void SafetensorsFile::ReadHeader() {
  uint64_t bytes = 0;
  file_->ReadAt(0, sizeof bytes, &bytes);
  if (bytes > kMostHeader || !file_->Holds(sizeof bytes, bytes)) {
    file_->Refuse(
        fmt::format("byte 0: a header of {} bytes, in a file of {}. It is damaged, or no safetensors file.",
                    bytes, file_->size()));
  }
  std::string header(bytes, '\0');
  file_->ReadAt(sizeof bytes, bytes, header.data());
  data_ = sizeof bytes + bytes;
  AddTensors(header);
}

void SafetensorsFile::AddTensors(const std::string& header) {
  const Json json = Json::parse(header, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object())
    file_->Refuse("byte 8: its header is no JSON object. It is damaged, or no safetensors file.");
  for (const auto& [name, entry] : json.items()) {
    if (name == "__metadata__") continue;
    const std::string title = Quoted(Shown(name));
    const bool whole = entry.is_object() && entry.contains("dtype") && entry["dtype"].is_string() &&
                       entry.contains("shape") && IsSizes(entry["shape"]) && entry.contains("data_offsets") &&
                       IsSizes(entry["data_offsets"]) && entry["data_offsets"].size() == 2;
    if (!whole) file_->Refuse(fmt::format("{}: its dtype, shape or data_offsets cannot be read.", title));
    const auto dtype = entry["dtype"].get<std::string>();
    const std::optional<ElementType> type = FromSafetensors(dtype);
    if (!type)
      file_->Refuse(fmt::format("{}: dtype {}; must be F32, F64, F16 or BF16.", title, Shown(dtype)));
    FileTensor tensor{name, entry["shape"].get<std::vector<int64_t>>()};
    const auto begin = entry["data_offsets"][0].get<uint64_t>(),
               end = entry["data_offsets"][1].get<uint64_t>();
    const std::optional<int64_t> bytes = BytesOfShape(tensor.shape, *type);
    if (!bytes || end < begin || end - begin != static_cast<uint64_t>(*bytes) ||
        !file_->Holds(data_ + begin, end - begin)) {
      file_->Refuse(
          fmt::format("{}: {} of {} at bytes {} to {} behind the header; that does not fit, or is not in the "
                      "file. It is cut off or damaged: fetch it anew.",
                      title, tensor.ShapeText(), dtype, begin, end));
    }
    places_.push_back({*type, data_ + begin, end - begin});
    tensors_.push_back(std::move(tensor));
  }
}

void SafetensorsFile::CheckOverlaps() const {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const Place& place : places_) ranges.emplace_back(place.begin, place.begin + place.bytes);
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) file_->Refuse("two of its tensors overlap. It is damaged.");
  }
}

void SafetensorsFile::Read(size_t index, float* out) {
  uint64_t at = places_[index].begin;
  ReadElements(
      places_[index].type, tensors_[index].size(),
      [&](uint64_t bytes, void* to) {
        file_->ReadAt(at, bytes, to);
        at += bytes;
      },
      out);
}

}  // namespace dtrain
