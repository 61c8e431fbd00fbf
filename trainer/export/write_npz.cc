#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include "trainer/export/formats.h"
#include "trainer/export/zip_format.h"

namespace dtrain {
namespace {

struct Entry {
  std::string name;
  uint32_t crc = 0;
  uint64_t size = 0;
  uint64_t offset = 0;  // of its local header
};

// .npy 1.0: magic, length of the header, a Python literal padded so that the values are aligned to 64.
std::string NpyHeader(const Variable& variable) {
  const std::vector<int64_t> shape = ExportedModel::ShapeOf(variable);
  const std::string sides = fmt::format("{}{}", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  std::string text = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", sides);
  constexpr size_t kBefore = 10;
  text.append(63 - (kBefore + text.size()) % 64, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

// The checksum is known when all is written: the local header is then written once more.
Entry WriteEntry(const ExportedModel& model, const Variable& variable, OutputFile* file) {
  const std::string header = NpyHeader(variable);
  Entry entry{variable.name + ".npy", 0, 0, static_cast<uint64_t>(file->size())};
  entry.size = header.size() + static_cast<uint64_t>(variable.size()) * sizeof(float);
  zip::Local local;
  local.name = static_cast<uint16_t>(entry.name.size());
  local.extra = sizeof(zip::Extra64);
  zip::Extra64 extra;
  extra.size = extra.packed = entry.size;
  file->Write(&local, sizeof local);
  file->Write(entry.name);
  file->Write(&extra, sizeof extra);
  file->Write(header);
  uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(header.data()), header.size());
  model.ForEachBlock(variable, [&](const float* values, int64_t count) {
    const size_t bytes = static_cast<size_t>(count) * sizeof(float);
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(values), bytes);
    file->Write(values, bytes);
  });
  local.crc = entry.crc = static_cast<uint32_t>(crc);
  file->WriteAt(static_cast<int64_t>(entry.offset), &local, sizeof local);
  return entry;
}

void WriteCentral(const Entry& entry, OutputFile* file) {
  zip::Central central;
  central.crc = entry.crc;
  central.name = static_cast<uint16_t>(entry.name.size());
  central.extra = sizeof(zip::CentralExtra64);
  zip::CentralExtra64 extra;
  extra.size = extra.packed = entry.size;
  extra.offset = entry.offset;
  file->Write(&central, sizeof central);
  file->Write(entry.name);
  file->Write(&extra, sizeof extra);
}

}  // namespace

// Sizes always have 8 bytes (zip64), so that large models are no other path than small ones.
void WriteNpz(const ExportedModel& model, OutputFile* file) {
  std::vector<Entry> entries;
  for (const Variable& variable : model.variables) entries.push_back(WriteEntry(model, variable, file));
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
