// Npz: the files of numpy.savez and numpy.savez_compressed: a zip archive of .npy files. Those that we write
// are stored, not compressed, with zip64 sizes.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>

#include "base/json.h"
#include "trainer/config/user_text.h"
#include "trainer/export/exported_model.h"
#include "trainer/export/tensor_file.h"
#include "trainer/export/zip.h"

namespace dtrain {
namespace {

constexpr std::string_view kSuffix = ".npy";
// Of ours: ExportedModel::Metadata() as an object of JSON, whose bytes are an array that every reader knows.
constexpr char kMetadata[] = "metadata";
constexpr char kBytes[] = "|u1";
constexpr size_t kMaxHeader = 1 << 20;
constexpr size_t kMaxDims = 32;  // numpy's limit

// Returns what follows 'key': in the header's Python literal; empty if the key is missing.
std::string_view ValueOf(std::string_view header, const char* key) {
  const std::string quoted = std::string("'") + key + "':";
  const size_t at = header.find(quoted);
  if (at == std::string_view::npos) return {};
  header.remove_prefix(at + quoted.size());
  const size_t begin = header.find_first_not_of(' ');
  return begin == std::string_view::npos ? std::string_view() : header.substr(begin);
}

// Reads "(784, 10)", "(10,)" or "()".
bool ParseShape(std::string_view text, std::vector<int64_t>* shape) {
  const size_t close = text.find(')');
  if (text.empty() || text.front() != '(' || close == std::string_view::npos) return false;
  text = text.substr(1, close - 1);
  while (true) {
    const size_t begin = text.find_first_not_of(" ,");
    if (begin == std::string_view::npos) return shape->size() <= kMaxDims;
    text.remove_prefix(begin);
    int64_t side = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), side);
    if (parsed.ec != std::errc() || side < 0) return false;
    shape->push_back(side);
    text.remove_prefix(static_cast<size_t>(parsed.ptr - text.data()));
  }
}

// NpzFile: the reader. Owner: the caller of OpenTensorFile(). Thread: one.
class NpzFile : public TensorFile {
 public:
  explicit NpzFile(std::unique_ptr<SourceFile> file);
  void Read(size_t index, float* out) override;

 private:
  struct Array {
    std::string dtype;
    ElementType type = ElementType::kFloat32;  // of a readable array
    std::string unreadable;
    bool by_columns = false;  // in Fortran's order
    std::vector<int64_t> shape;
  };
  void AddArray(const std::string& name, const ZipMember& member);
  bool TakeMetadata(const Array& array, ZipStream* stream);
  // Reads the header in front of the values.
  Array ReadHeader(const ZipMember& member, ZipStream* stream) const;

  const std::unique_ptr<SourceFile> file_;
  // By index of tensors_.
  std::vector<ZipMember> members_;
  std::vector<Array> arrays_;
};

NpzFile::NpzFile(std::unique_ptr<SourceFile> file) : file_(std::move(file)) {
  std::set<std::string> names;
  for (const ZipMember& member : ReadZipDirectory(*file_)) {
    if (!names.insert(member.name).second)
      file_->Refuse(fmt::format("{} is there twice.", Quoted(Shown(member.name))));
    const size_t stem = member.name.size() - std::min(member.name.size(), kSuffix.size());
    if (stem > 0 && member.name.compare(stem, kSuffix.size(), kSuffix) == 0) {
      AddArray(member.name.substr(0, stem), member);
    } else {
      others_.push_back(member.name);
    }
  }
}

// Returns whether it is an object of JSON, as ours is.
bool NpzFile::TakeMetadata(const Array& array, ZipStream* stream) {
  if (array.dtype != kBytes || stream->left() > kMaxDescription) return false;
  std::string text(stream->left(), '\0');
  stream->Read(text.data(), text.size());
  stream->Finish();
  Json::Problem problem;
  const Json json = Json::ParseStrictly(text, kMaxMetadataDepth, &problem);
  if (!json.is_object()) return false;
  AddMetadata(json);
  return true;
}

void NpzFile::AddArray(const std::string& name, const ZipMember& member) {
  ZipStream stream(*file_, member);
  Array array = ReadHeader(member, &stream);
  if (name == kMetadata && TakeMetadata(array, &stream)) return;
  FileTensor tensor{name, array.shape, array.unreadable};
  const std::optional<int64_t> bytes = BytesOfShape(array.shape, BytesOf(array.type));
  if (tensor.unreadable.empty() && (!bytes || static_cast<uint64_t>(*bytes) != stream.left())) {
    file_->Refuse(
        fmt::format("{}: {} values take another number of bytes than the {} that are there. It is damaged.",
                    Quoted(Shown(name)), tensor.ShapeText(), stream.left()));
  }
  tensors_.push_back(std::move(tensor));
  members_.push_back(member);
  arrays_.push_back(std::move(array));
}

NpzFile::Array NpzFile::ReadHeader(const ZipMember& member, ZipStream* stream) const {
  const auto refuse = [&](const std::string& text) {
    file_->Refuse(fmt::format("{}: {}", Quoted(Shown(member.name)), text));
  };
  unsigned char magic[8];
  stream->Read(magic, sizeof magic);
  if (std::memcmp(magic, "\x93NUMPY", 6) != 0 || magic[6] < 1 || magic[6] > 3) refuse("no array of numpy.");
  unsigned char length[4] = {};
  stream->Read(length, magic[6] == 1 ? 2 : 4);
  const size_t bytes = length[0] | length[1] << 8 | length[2] << 16 | static_cast<size_t>(length[3]) << 24;
  if (bytes > kMaxHeader || bytes > stream->left())
    refuse(fmt::format("a header of {} bytes. It is damaged.", bytes));
  std::string header(bytes, '\0');
  stream->Read(header.data(), bytes);
  Array array;
  std::string_view descr = ValueOf(header, "descr");
  if (!descr.empty() && descr.front() == '\'') descr.remove_prefix(1);
  const std::string dtype(descr.substr(0, descr.find('\'')));
  array.dtype = dtype;
  if (const std::optional<ElementType> type = FromNumpy(dtype)) {
    array.type = *type;
  } else {
    array.unreadable = fmt::format(
        "dtype {}; must be float32, float64 or float16, little-endian. Convert it: array.astype(\"<f4\").",
        Shown(dtype));
  }
  array.by_columns = ValueOf(header, "fortran_order").substr(0, 4) == "True";
  if (!ParseShape(ValueOf(header, "shape"), &array.shape)) refuse("its shape cannot be read.");
  return array;
}

void NpzFile::Read(size_t index, float* out) {
  ZipStream stream(*file_, members_[index]);
  ReadHeader(members_[index], &stream);  // skips it: the values follow
  const Array& array = arrays_[index];   // already checked against the file
  const int64_t size = tensors_[index].size();
  // Dimensions of 1 do not affect the order, and our tensors have at most two others.
  const std::vector<int64_t> sides = Squeezed(array.shape);
  const bool turned = array.by_columns && sides.size() == 2;
  std::vector<float> columns(turned ? static_cast<size_t>(size) : 0);
  const std::optional<BeyondFloat32> beyond = ReadElements(
      array.type, size, [&](uint64_t bytes, void* to) { stream.Read(to, bytes); },
      turned ? columns.data() : out);
  if (beyond) {
    const int64_t at = beyond->element;
    const int64_t by_rows = turned ? at % sides[0] * sides[1] + at / sides[0] : at;
    file_->Refuse(beyond->Text(tensors_[index].ElementText(by_rows)));
  }
  stream.Finish();
  if (turned) Transpose(sides[1], sides[0], columns.data(), out);
}

struct Entry {
  std::string name;
  uint32_t crc = 0;
  uint64_t size = 0;
  uint64_t offset = 0;  // of its local header
};

// Returns a .npy 1.0 header: magic, length, and a Python literal padded so that the values are aligned to 64.
std::string NpyHeader(const char* dtype, const std::vector<int64_t>& shape) {
  const std::string sides = fmt::format("{}{}", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", dtype, sides);
  constexpr size_t kBefore = 10;
  text.append(63 - (kBefore + text.size()) % 64, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

// An array of so many bytes, which `write(add)` gives to `add(bytes, count)`. The checksum is known at the
// end; then the local header is written again.
template <typename WriteValues>
Entry WriteEntry(const std::string& name, const std::string& header, uint64_t bytes, OutputFile* file,
                 WriteValues write) {
  Entry entry{name + std::string(kSuffix), 0, header.size() + bytes, static_cast<uint64_t>(file->size())};
  zip::Local local;
  local.name = static_cast<uint16_t>(entry.name.size());
  local.extra = sizeof(zip::Extra64);
  zip::Extra64 extra;
  extra.size = extra.compressed = entry.size;
  file->Write(&local, sizeof local);
  file->Write(entry.name);
  file->Write(&extra, sizeof extra);
  uLong crc = 0;
  const auto add = [&](const void* bytes, size_t count) {
    crc = crc32_z(crc, static_cast<const Bytef*>(bytes), count);
    file->Write(bytes, count);
  };
  add(header.data(), header.size());
  write(add);
  local.crc = entry.crc = static_cast<uint32_t>(crc);
  file->WriteAt(static_cast<int64_t>(entry.offset), &local, sizeof local);
  return entry;
}

Entry WriteVariable(const ExportedModel& model, const Variable& variable, OutputFile* file) {
  const uint64_t bytes = static_cast<uint64_t>(variable.size()) * sizeof(float);
  const std::string header = NpyHeader("<f4", ExportedModel::ShapeOf(variable));
  return WriteEntry(variable.name, header, bytes, file, [&](const auto& add) {
    model.ForEachBlock(variable, [&](const float* values, int64_t count) {
      add(values, static_cast<size_t>(count) * sizeof(float));
    });
  });
}

Entry WriteMetadata(const ExportedModel& model, OutputFile* file) {
  Json all;
  for (const auto& [name, text] : model.Metadata()) all[name] = text;
  const std::string text = all.dump();
  const std::string header = NpyHeader(kBytes, {static_cast<int64_t>(text.size())});
  return WriteEntry(kMetadata, header, text.size(), file,
                    [&](const auto& add) { add(text.data(), text.size()); });
}

void WriteCentral(const Entry& entry, OutputFile* file) {
  zip::Central central;
  central.crc = entry.crc;
  central.name = static_cast<uint16_t>(entry.name.size());
  central.extra = sizeof(zip::CentralExtra64);
  zip::CentralExtra64 extra;
  extra.size = extra.compressed = entry.size;
  extra.offset = entry.offset;
  file->Write(&central, sizeof central);
  file->Write(entry.name);
  file->Write(&extra, sizeof extra);
}

}  // namespace

std::unique_ptr<TensorFile> OpenNpz(std::unique_ptr<SourceFile> file) {
  return std::make_unique<NpzFile>(std::move(file));
}

// Sizes always have 8 bytes (zip64), so that large models need no path of their own.
void WriteNpz(const ExportedModel& model, OutputFile* file) {
  std::vector<Entry> entries;
  for (const Variable& variable : model.variables) entries.push_back(WriteVariable(model, variable, file));
  entries.push_back(WriteMetadata(model, file));
  zip::End64 end64;
  end64.entries = end64.entries_here = entries.size();
  end64.directory = static_cast<uint64_t>(file->size());
  for (const Entry& entry : entries) WriteCentral(entry, file);
  end64.directory_bytes = static_cast<uint64_t>(file->size()) - end64.directory;
  zip::End64Locator locator;
  locator.end64 = static_cast<uint64_t>(file->size());
  file->Write(&end64, sizeof end64);
  file->Write(&locator, sizeof locator);
  const zip::End end;
  file->Write(&end, sizeof end);
}

}  // namespace dtrain
