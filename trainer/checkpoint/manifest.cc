#include "trainer/checkpoint/manifest.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "trainer/checkpoint/manifest_generated.h"
#include "trainer/checkpoint/shard_format.h"
#include "trainer/config/run_config.h"
#include "trainer/version.h"

namespace dtrain {
namespace {

using flatbuffers::Offset;

constexpr uint32_t kFormat = 1;
constexpr uint32_t kTableFormat = 3;           // has a table; in format 2 its rows had other numbers
constexpr uint32_t kHashFormat = 4;            // has a hash table
constexpr uint32_t kDeltaFormat = 5;           // has a table and a base
constexpr uint32_t kHashDeltaFormat = 6;       // has a hash table and a base
constexpr uint32_t kTwoOptimizers = 4;         // added to these where the first value of rows has other slots
constexpr size_t kTrailer = sizeof(uint64_t);  // XXH3-64 of the bytes before it, little-endian

struct Facts {
  bool has_table;
  bool hashed;
  bool has_two;  // optimizers
  bool has_base;
};

uint32_t FormatOf(const Facts& of) {
  const uint32_t of_one = of.has_base    ? of.hashed ? kHashDeltaFormat : kDeltaFormat
                          : of.hashed    ? kHashFormat
                          : of.has_table ? kTableFormat
                                         : kFormat;
  return of_one + (of.has_two ? kTwoOptimizers : 0);
}

Offset<stored::Shard> Encode(const StoredShard& shard, flatbuffers::FlatBufferBuilder* builder) {
  std::vector<stored::Piece> pieces;
  pieces.reserve(shard.pieces.size());
  for (const StoredPiece& piece : shard.pieces) {
    pieces.emplace_back(static_cast<uint32_t>(piece.tensor), static_cast<uint32_t>(piece.slot), piece.first,
                        piece.count, piece.offset, piece.checksum);
  }
  const auto file = builder->CreateString(shard.file);
  return stored::CreateShard(*builder, file, shard.bytes, builder->CreateVectorOfStructs(pieces));
}

Offset<stored::InputColumn> Encode(const InputColumn& column, flatbuffers::FlatBufferBuilder* builder) {
  const auto name = column.name.empty() ? 0 : builder->CreateString(column.name);
  const auto categories = column.categories.empty() ? 0 : builder->CreateVectorOfStrings(column.categories);
  return stored::CreateInputColumn(*builder, column.column, name, column.is_category, categories,
                                   column.has_other, column.fill.has_value(), column.fill.value_or(0),
                                   column.has_indicator, column.is_date);
}

Offset<stored::Inputs> Encode(const InputForm& form, flatbuffers::FlatBufferBuilder* builder) {
  const auto features = builder->CreateVectorOfStrings(form.features);
  const auto classes = builder->CreateVectorOfStrings(form.classes);
  const auto shift = builder->CreateVector(form.scale.shift);
  const auto factor = builder->CreateVector(form.scale.factor);
  std::vector<Offset<stored::InputColumn>> columns;
  for (const InputColumn& column : form.columns) columns.push_back(Encode(column, builder));
  const auto all_columns = columns.empty() ? 0 : builder->CreateVector(columns);
  return stored::CreateInputs(*builder, features, classes, shift, factor, form.label_column, all_columns,
                              form.table_columns);
}

Offset<stored::Manifest> Encode(const Manifest& manifest, flatbuffers::FlatBufferBuilder* builder) {
  std::vector<Offset<stored::Tensor>> tensors;
  for (const StoredTensor& tensor : manifest.tensors) {
    const auto name = builder->CreateString(tensor.name);
    tensors.push_back(stored::CreateTensor(*builder, name, tensor.rows, tensor.cols));
  }
  std::vector<Offset<stored::Shard>> shards;
  for (const StoredShard& shard : manifest.shards) shards.push_back(Encode(shard, builder));
  const auto version = builder->CreateString(manifest.version);
  const auto optimizer = builder->CreateString(manifest.optimizer);
  const auto mode = builder->CreateString(manifest.mode);
  const auto all_tensors = builder->CreateVector(tensors);
  const auto slots = builder->CreateVectorOfStrings(manifest.slots);
  const auto all_shards = builder->CreateVector(shards);
  const auto positions = builder->CreateString(manifest.positions);
  const auto inputs = manifest.inputs ? Encode(*manifest.inputs, builder) : 0;
  const std::optional<StoredTable>& its = manifest.table;
  const bool hashed = its && its->hashed();
  const bool has_two = its && its->linear_slots;
  const auto linear_slots = has_two ? builder->CreateVectorOfStrings(*its->linear_slots) : 0;
  const auto table =
      its ? stored::CreateRowTable(*builder, hashed ? 0 : its->features, its->width, hashed, linear_slots)
          : 0;
  const Origin& origin = manifest.origin;
  const auto began_with = origin.path.empty() ? 0 : builder->CreateString(origin.path);
  const std::optional<StoredBase>& since = manifest.base;
  const auto base = since ? stored::CreateBase(*builder, since->sequence, since->step, since->checksum) : 0;
  const std::optional<StoredFigure>& figure = manifest.best_by;
  const auto best_by =
      figure ? stored::CreateFigure(*builder, builder->CreateString(figure->metric), figure->value) : 0;
  return stored::CreateManifest(
      *builder, FormatOf({its.has_value(), hashed, has_two, since.has_value()}), manifest.sequence,
      manifest.step, manifest.saved_unix_ms, manifest.run_id, version, optimizer, mode, all_tensors, slots,
      all_shards, positions, manifest.config_bytes, manifest.config_checksum, manifest.loss,
      manifest.accuracy, inputs, manifest.run_epoch, table, began_with, origin.updates, base, best_by);
}

size_t BytesReferredTo(const stored::InputColumn& column) {
  size_t bytes = sizeof(uint32_t) + (column.name() == nullptr ? 0 : column.name()->size());
  if (column.categories() == nullptr) return bytes;
  for (const auto* text : *column.categories()) bytes += sizeof(uint32_t) + text->size();
  return bytes;
}

// Our own manifests share nothing. A hostile one may refer to one long text a million times; this bounds its
// size in memory by its size in the file.
size_t BytesReferredTo(const stored::Manifest& from) {
  constexpr size_t kTable = 12;  // the min size: the offset to it, that of its field map, and a text's length
  size_t bytes = 0;
  for (const auto* tensor : *from.tensors()) bytes += kTable + tensor->name()->size();
  for (const auto* slot : *from.slots()) bytes += sizeof(uint32_t) + slot->size();
  if (from.table() != nullptr && from.table()->linear_slots() != nullptr) {
    for (const auto* slot : *from.table()->linear_slots()) bytes += sizeof(uint32_t) + slot->size();
  }
  for (const auto* shard : *from.shards()) {
    bytes += kTable + shard->file()->size() + sizeof(stored::Piece) * shard->pieces()->size();
  }
  if (from.began_with() != nullptr) bytes += sizeof(uint32_t) + from.began_with()->size();
  if (from.inputs() == nullptr) return bytes;
  for (const auto* names : {from.inputs()->features(), from.inputs()->classes()}) {
    for (const auto* name : *names) bytes += sizeof(uint32_t) + name->size();
  }
  if (from.inputs()->columns() != nullptr) {
    for (const auto* column : *from.inputs()->columns()) bytes += BytesReferredTo(*column);
  }
  return bytes + sizeof(double) * (from.inputs()->shift()->size() + from.inputs()->factor()->size());
}

// The verifier does not check the alignment of structs in a list. An empty list, as of a table that nothing
// was written to, need not be aligned.
bool PiecesAligned(const stored::Manifest& from) {
  for (const auto* shard : *from.shards()) {
    if (shard->pieces()->size() == 0) continue;
    if (reinterpret_cast<uintptr_t>(shard->pieces()->Data()) % alignof(stored::Piece) != 0) return false;
  }
  return true;
}

StoredShard Decode(const stored::Shard& from) {
  StoredShard shard{from.file()->str(), static_cast<int64_t>(from.bytes()), {}};
  shard.pieces.reserve(from.pieces()->size());
  for (const stored::Piece* piece : *from.pieces()) {
    shard.pieces.push_back({piece->tensor(), piece->slot(), static_cast<int64_t>(piece->first()),
                            static_cast<int64_t>(piece->count()), static_cast<int64_t>(piece->offset()),
                            piece->checksum()});
  }
  return shard;
}

InputColumn Decode(const stored::InputColumn& from) {
  InputColumn column;
  column.column = from.column();
  if (from.name() != nullptr) column.name = from.name()->str();
  column.is_category = from.category();
  if (from.categories() != nullptr) {
    for (const auto* text : *from.categories()) column.categories.push_back(text->str());
  }
  column.has_other = from.other();
  if (from.fills()) column.fill = from.fill();
  column.has_indicator = from.indicator();
  column.is_date = from.date();
  return column;
}

InputForm Decode(const stored::Inputs& from) {
  InputForm form;
  for (const auto* name : *from.features()) form.features.push_back(name->str());
  for (const auto* name : *from.classes()) form.classes.push_back(name->str());
  form.scale.shift.assign(from.shift()->begin(), from.shift()->end());
  form.scale.factor.assign(from.factor()->begin(), from.factor()->end());
  form.label_column = from.label_column();
  form.table_columns = from.table_columns();
  if (from.columns() == nullptr) return form;
  for (const auto* column : *from.columns()) form.columns.push_back(Decode(*column));
  return form;
}

Manifest Decode(const stored::Manifest& from) {
  Manifest manifest;
  manifest.sequence = static_cast<int64_t>(from.sequence());
  manifest.step = static_cast<int64_t>(from.step());
  manifest.saved_unix_ms = from.saved_unix_ms();
  manifest.run_id = from.run_id();
  manifest.run_epoch = from.run_epoch();
  manifest.version = from.version()->str();
  manifest.optimizer = from.optimizer()->str();
  manifest.mode = from.mode()->str();
  for (const auto* tensor : *from.tensors()) {
    manifest.tensors.push_back(
        {tensor->name()->str(), static_cast<int64_t>(tensor->rows()), static_cast<int64_t>(tensor->cols())});
  }
  for (const auto* slot : *from.slots()) manifest.slots.push_back(slot->str());
  for (const auto* shard : *from.shards()) manifest.shards.push_back(Decode(*shard));
  manifest.positions = from.positions()->str();
  manifest.config_bytes = static_cast<int64_t>(from.config_bytes());
  manifest.config_checksum = from.config_checksum();
  manifest.loss = from.loss();
  manifest.accuracy = from.accuracy();
  if (from.best_by() != nullptr)
    manifest.best_by = {from.best_by()->metric()->str(), from.best_by()->value()};
  if (from.began_with() != nullptr) manifest.origin.path = from.began_with()->str();
  manifest.origin.updates = static_cast<int64_t>(from.earlier_updates());
  if (from.inputs() != nullptr) manifest.inputs = Decode(*from.inputs());
  if (from.table() != nullptr) {
    const stored::RowTable& table = *from.table();
    constexpr uint64_t kMax = TableLayout::kMaxFeatures;  // which is refused
    const auto features = static_cast<int64_t>(std::min(table.features(), kMax));
    manifest.table = {
        table.hashed() ? TableLayout::kHashed : features, static_cast<int64_t>(table.width()), {}};
    if (table.linear_slots() != nullptr) {
      std::vector<std::string>& slots = manifest.table->linear_slots.emplace();
      for (const auto* slot : *table.linear_slots()) slots.push_back(slot->str());
    }
  }
  if (from.base() != nullptr) {
    manifest.base = {static_cast<int64_t>(from.base()->sequence()), static_cast<int64_t>(from.base()->step()),
                     from.base()->checksum()};
  }
  return manifest;
}

}  // namespace

Manifest ModelManifest(const Layout& layout, const ModelSlots& slots) {
  Manifest manifest;
  manifest.version = kVersion;
  manifest.slots = slots.names;
  for (const Variable& variable : layout.variables) {
    manifest.tensors.push_back({variable.name, variable.rows, variable.cols});
  }
  if (layout.table) {
    manifest.table = {layout.table->features(), layout.table->width(), {}};
    if (slots.differ()) manifest.table->linear_slots = slots.linear;
    manifest.tensors.push_back({kTableName, manifest.table->tensor_rows(), layout.table->width()});
  }
  return manifest;
}

double Manifest::FigureOf(EvalMetric metric) const {
  if (metric == EvalMetric::kLoss) return loss;
  if (metric == EvalMetric::kAccuracy) return accuracy;
  return best_by && best_by->metric == MetricName(metric) ? best_by->value
                                                          : std::numeric_limits<double>::quiet_NaN();
}

int64_t Manifest::bytes() const {
  int64_t all = config_bytes;
  for (const StoredShard& shard : shards) all += shard.bytes;
  return all;
}

std::string ToBytes(const Manifest& manifest, uint64_t* checksum_out) {
  const std::optional<std::string> problem = ManifestProblem(manifest);
  if (problem) throw Failure(ExitCode::kInternal, fmt::format("the checkpoint's manifest has {}.", *problem));
  flatbuffers::FlatBufferBuilder builder;
  stored::FinishManifestBuffer(builder, Encode(manifest, &builder));
  std::string bytes(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
  const uint64_t checksum = Checksum(bytes.data(), bytes.size());
  bytes.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
  if (checksum_out != nullptr) *checksum_out = checksum;
  return bytes;
}

std::optional<std::string> FromBytes(std::string_view bytes, Manifest* manifest) {
  if (bytes.size() <= kTrailer) return fmt::format("{} bytes are too few", bytes.size());
  const std::string_view body = bytes.substr(0, bytes.size() - kTrailer);
  uint64_t expected = 0;
  std::memcpy(&expected, bytes.data() + body.size(), sizeof expected);
  const uint64_t checksum = Checksum(body.data(), body.size());
  if (checksum != expected) {
    return fmt::format("the checksum of its first {} bytes is {:016x}, not {:016x}", body.size(), checksum,
                       expected);
  }
  // A copy that is aligned, so that fields can be read in place.
  const std::vector<uint64_t> aligned = [&] {
    std::vector<uint64_t> words((body.size() + 7) / 8);
    std::memcpy(words.data(), body.data(), body.size());
    return words;
  }();
  const auto* data = reinterpret_cast<const uint8_t*>(aligned.data());
  // A table takes at least 4 bytes.
  flatbuffers::Verifier verifier(data, body.size(), /*max_depth=*/8,
                                 static_cast<flatbuffers::uoffset_t>(body.size() / 4));
  if (!stored::VerifyManifestBuffer(verifier)) return "it is no manifest of a dtrain checkpoint";
  const stored::Manifest& from = *stored::GetManifest(data);
  const bool has_table = from.table() != nullptr;
  const uint32_t format =
      FormatOf({has_table, has_table && from.table()->hashed(),
                has_table && from.table()->linear_slots() != nullptr, from.base() != nullptr});
  if (from.format() != format) {
    return fmt::format(
        "its format is {}, and this dtrain reads {}; with a table {} or {}, with a base {} or {}, and {} "
        "more "
        "with two optimizers",
        from.format(), kFormat, kTableFormat, kHashFormat, kDeltaFormat, kHashDeltaFormat, kTwoOptimizers);
  }
  if (BytesReferredTo(from) > body.size()) return "its parts overlap";
  if (!PiecesAligned(from)) return "its pieces are not at a multiple of 8 bytes";
  Manifest decoded = Decode(from);
  if (std::optional<std::string> problem = ManifestProblem(decoded)) return problem;
  *manifest = std::move(decoded);
  manifest->checksum = checksum;
  return std::nullopt;
}

RowRange Manifest::RowsOf(size_t shard) const {
  const TableLayout layout(table->features, table->width, static_cast<int64_t>(shards.size()));
  return layout.PartOf(static_cast<int64_t>(shard));
}

RowPieces Manifest::RowPiecesOf(size_t shard) const { return RowPieces(RowsOf(shard), row_values()); }

ModelSlots Manifest::all_slots() const {
  return table && table->linear_slots ? ModelSlots(slots, *table->linear_slots) : ModelSlots(slots);
}

}  // namespace dtrain
