// Safetensors (https://huggingface.co/docs/safetensors): 8 bytes with the length of a JSON header, the
// header, the tensors.
#include <algorithm>
#include <map>

#include "base/json.h"
#include "trainer/config/user_text.h"
#include "trainer/export/exported_model.h"
#include "trainer/export/tensor_file.h"

namespace dtrain {
namespace {

bool IsSizes(const Json& list) {
  return list.is_array() && std::all_of(list.begin(), list.end(), [](const Json& size) {
           return size.is_number_unsigned() && size.get<uint64_t>() < (uint64_t{1} << 62);
         });
}

// Checks the size if the type is known.
bool FitsShape(const std::string& dtype, const std::vector<int64_t>& shape, uint64_t bytes) {
  const std::optional<ElementType> type = FromSafetensors(dtype);
  const std::optional<int64_t> element = type ? BytesOf(*type) : BytesOfForeign(dtype);
  if (!element) return true;
  const std::optional<int64_t> expected = BytesOfShape(shape, *element);
  return expected && bytes == static_cast<uint64_t>(*expected);
}

// SafetensorsFile: the reader. Owner: the caller of OpenTensorFile(). Thread: one.
class SafetensorsFile : public TensorFile {
 public:
  explicit SafetensorsFile(std::unique_ptr<SourceFile> file);
  void Read(size_t index, float* out) override;

 private:
  struct Place {
    ElementType type = ElementType::kFloat32;  // of a readable tensor
    uint64_t begin = 0;                        // offset in the file
    uint64_t bytes = 0;
  };
  void ReadHeader();
  Json ParseHeader(const std::string& header) const;
  void AddTensors(const Json& header);
  void AddTensor(const std::string& name, const Json& entry);
  void CheckPlaces() const;

  const std::unique_ptr<SourceFile> file_;
  uint64_t data_ = 0;  // where the tensors begin
  std::vector<Place> places_;
};

SafetensorsFile::SafetensorsFile(std::unique_ptr<SourceFile> file) : file_(std::move(file)) {
  ReadHeader();
  CheckPlaces();
}

void SafetensorsFile::ReadHeader() {
  uint64_t bytes = 0;
  file_->ReadAt(0, sizeof bytes, &bytes);
  if (!file_->Holds(sizeof bytes, bytes)) {
    file_->Refuse(
        fmt::format("byte 0: a header of {} bytes, in a file of {}. It is damaged, or no safetensors file.",
                    bytes, file_->size()));
  }
  if (bytes > kMaxDescription) {
    file_->Refuse(fmt::format(
        "byte 0: a header of {} bytes; must be at most {}. Save fewer tensors or less metadata in one file.",
        bytes, kMaxDescription));
  }
  std::string header(bytes, '\0');
  file_->ReadAt(sizeof bytes, bytes, header.data());
  data_ = sizeof bytes + bytes;
  AddTensors(ParseHeader(header));
}

// A repeated name would hide the values of the first one.
Json SafetensorsFile::ParseHeader(const std::string& header) const {
  Json::Problem problem;
  Json json = Json::ParseStrictly(header, kMaxMetadataDepth, &problem);
  if (problem.kind == Json::Problem::kDepth) {
    file_->Refuse(
        fmt::format("byte 8: its header is nested more than {} deep. It is damaged, or no safetensors file.",
                    kMaxMetadataDepth));
  }
  if (problem.kind == Json::Problem::kRepeated) {
    file_->Refuse(fmt::format("{} is there twice.", Quoted(Shown(problem.text))));
  }
  if (!json.is_object())
    file_->Refuse("byte 8: its header is no JSON object. It is damaged, or no safetensors file.");
  return json;
}

void SafetensorsFile::AddTensors(const Json& header) {
  std::map<std::string, const Json*> entries;  // in the order of names, as other readers do
  for (const auto& [name, entry] : header.items()) entries.emplace(name, &entry);
  for (const auto& [name, entry] : entries) {
    if (name != "__metadata__") {
      AddTensor(name, *entry);
    } else if (entry->is_object()) {
      AddMetadata(*entry);
    }
  }
}

void SafetensorsFile::AddTensor(const std::string& name, const Json& entry) {
  const std::string title = Quoted(Shown(name));
  const bool whole = entry.is_object() && entry.contains("dtype") && entry["dtype"].is_string() &&
                     entry.contains("shape") && IsSizes(entry["shape"]) && entry.contains("data_offsets") &&
                     IsSizes(entry["data_offsets"]) && entry["data_offsets"].size() == 2;
  if (!whole) file_->Refuse(fmt::format("{}: its dtype, shape or data_offsets cannot be read.", title));
  const auto dtype = entry["dtype"].get<std::string>();
  const std::optional<ElementType> type = FromSafetensors(dtype);
  FileTensor tensor{name, entry["shape"].get<std::vector<int64_t>>()};
  const auto begin = entry["data_offsets"][0].get<uint64_t>(), end = entry["data_offsets"][1].get<uint64_t>();
  if (!type) tensor.unreadable = fmt::format("dtype {}; must be F32, F64, F16 or BF16.", Shown(dtype));
  if (end < begin || !FitsShape(dtype, tensor.shape, end - begin) ||
      !file_->Holds(data_ + begin, end - begin)) {
    file_->Refuse(
        fmt::format("{}: {} of {} at bytes {} to {} behind the header; that does not fit, or is not in the "
                    "file. It is cut off or damaged: fetch it anew.",
                    title, tensor.ShapeText(), Shown(dtype), begin, end));
  }
  places_.push_back({type.value_or(ElementType::kFloat32), data_ + begin, end - begin});
  tensors_.push_back(std::move(tensor));
}

// Every byte belongs to a tensor in this format: a header of another length would shift all values.
void SafetensorsFile::CheckPlaces() const {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const Place& place : places_) ranges.emplace_back(place.begin, place.begin + place.bytes);
  std::sort(ranges.begin(), ranges.end());
  uint64_t end = data_;
  for (const auto& range : ranges) {
    if (range.first < end) file_->Refuse("two of its tensors overlap. It is damaged.");
    if (range.first > end) break;
    end = range.second;
  }
  if (end == file_->size()) return;
  file_->Refuse(fmt::format("byte {} is in no tensor. It is damaged: fetch it anew.", end));
}

void SafetensorsFile::Read(size_t index, float* out) {
  uint64_t at = places_[index].begin;
  const std::optional<BeyondFloat32> beyond = ReadElements(
      places_[index].type, tensors_[index].size(),
      [&](uint64_t bytes, void* to) {
        file_->ReadAt(at, bytes, to);
        at += bytes;
      },
      out);
  if (beyond) file_->Refuse(beyond->Text(tensors_[index].ElementText(beyond->element)));
}

// The tensors begin at this alignment behind the header, so each is aligned for float32.
constexpr size_t kAlignment = 64;

}  // namespace

std::string SafetensorsHeader(const std::vector<std::pair<std::string, std::string>>& metadata,
                              const std::vector<SafetensorsEntry>& entries) {
  Json header;
  for (const auto& [name, text] : metadata) header["__metadata__"][name] = text;
  int64_t offset = 0;
  for (const SafetensorsEntry& entry : entries) {
    const int64_t end = offset + entry.bytes;
    header[entry.name] = {{"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  const size_t unpadded = sizeof(uint64_t) + text.size();
  text.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  const uint64_t size = text.size();  // little-endian, like this machine
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + text;
}

std::unique_ptr<TensorFile> OpenSafetensors(std::unique_ptr<SourceFile> file) {
  return std::make_unique<SafetensorsFile>(std::move(file));
}

void WriteSafetensors(const ExportedModel& model, OutputFile* file) {
  std::vector<SafetensorsEntry> entries;
  for (const Variable& variable : model.variables) {
    entries.push_back({variable.name, "F32", ExportedModel::ShapeOf(variable),
                       variable.size() * static_cast<int64_t>(sizeof(float))});
  }
  file->Write(SafetensorsHeader(model.Metadata(), entries));
  for (const Variable& variable : model.variables) {
    model.ForEachBlock(variable, [&](const float* values, int64_t count) {
      file->Write(values, static_cast<size_t>(count) * sizeof(float));
    });
  }
}

}  // namespace dtrain
