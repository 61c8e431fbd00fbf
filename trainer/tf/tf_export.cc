#include "trainer/tf/tf_export.h"

#include <vector>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/tfrecord.h"
#include "base/wire_fields.h"
#include "trainer/config/user_text.h"
#include "trainer/export/output_file.h"
#include "trainer/tf/sorted_table.h"
#include "trainer/tf/tf_checkpoint.h"

namespace dtrain {
namespace {

constexpr char kHeader[] =
    "\x08\x01\x1a\x02\x08\x01";  // BundleHeaderProto: num_shards 1, version 3 {producer 1}
constexpr char kStep[] = "global_step";

void AppendField(uint64_t number, WireFields::Type type, uint64_t value, std::string* out) {
  AppendVarint(number << 3 | type, out);
  AppendVarint(value, out);
}

// BundleEntryProto: dtype 1, shape 2 {dim 2 {size 1}}, offset 4, size 5, crc32c 6.
std::string EntryOf(TfType type, const std::vector<int64_t>& shape, uint64_t offset, uint64_t bytes,
                    uint32_t crc) {
  std::string dims, entry;
  for (const int64_t side : shape) {
    std::string dim;
    AppendField(1, WireFields::kVarint, static_cast<uint64_t>(side), &dim);
    AppendField(2, WireFields::kBytes, dim.size(), &dims);
    dims += dim;
  }
  AppendField(1, WireFields::kVarint, static_cast<uint64_t>(type), &entry);
  AppendField(2, WireFields::kBytes, dims.size(), &entry);
  entry += dims;
  if (offset > 0) AppendField(4, WireFields::kVarint, offset, &entry);
  AppendField(5, WireFields::kVarint, bytes, &entry);
  AppendVarint(6 << 3 | WireFields::kFixed32, &entry);
  const uint32_t masked = MaskCrc(crc);
  entry.append(reinterpret_cast<const char*>(&masked), sizeof masked);
  return entry;
}

}  // namespace

int64_t WriteTfCheckpoint(const ExportedModel& model, const std::map<std::string, std::string>& names,
                          const std::string& prefix) {
  std::map<std::string, std::string> entries;  // by name
  OutputFile data(prefix + ".data-00000-of-00001");
  const auto add = [&](const std::string& name, TfType type, const std::vector<int64_t>& shape,
                       const auto& write) {
    const auto offset = static_cast<uint64_t>(data.size());
    uint32_t crc = 0;
    write([&](const void* bytes, size_t size) {
      crc = Crc32cExtend(crc, bytes, size);
      data.Write(bytes, size);
    });
    const uint64_t bytes = static_cast<uint64_t>(data.size()) - offset;
    if (entries.emplace(name, EntryOf(type, shape, offset, bytes, crc)).second) return;
    throw UserError("--out {}: two tensors are called {}. Give one another name: --map THEIRS=OURS.", prefix,
                    Quoted(Shown(name)));
  };
  for (const Variable& variable : model.variables) {
    const auto named = names.find(variable.name);
    add(named == names.end() ? variable.name : named->second, TfType::kFloat32,
        ExportedModel::ShapeOf(variable), [&](const auto& take) {
          model.ForEachBlock(variable, [&](const float* values, int64_t count) {
            take(values, static_cast<size_t>(count) * sizeof(float));
          });
        });
  }
  const int64_t step = model.checkpoint.manifest().step;
  add(kStep, TfType::kInt64, {}, [&](const auto& take) { take(&step, sizeof step); });
  SortedTableBuilder table;
  table.Add("", {kHeader, sizeof kHeader - 1});
  for (const auto& [name, entry] : entries) table.Add(name, entry);
  OutputFile index(prefix + ".index");
  index.Write(table.Finish());
  data.Finish();
  index.Finish();
  return data.size() + index.size();
}

}  // namespace dtrain
