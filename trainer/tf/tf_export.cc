#include "trainer/tf/tf_export.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/tfrecord.h"
#include "base/wire_fields.h"
#include "trainer/config/user_text.h"
#include "trainer/export/exported_table.h"
#include "trainer/export/output_file.h"
#include "trainer/model/model.h"
#include "trainer/optim/optimizer.h"
#include "trainer/tf/sorted_table.h"
#include "trainer/tf/tf_checkpoint.h"
#include "trainer/tf/tf_slots.h"

namespace dtrain {
namespace {

constexpr char kHeader[] =
    "\x08\x01\x1a\x02\x08\x01";  // BundleHeaderProto: num_shards 1, version 3 {producer 1}
constexpr char kStep[] = "global_step";
constexpr int64_t kBlock = 1 << 18;  // values that are read at once

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

using Take = std::function<void(const void* bytes, size_t size)>;

// The values of a model's variables and their slots.
class Values {
 public:
  Values(const ExportedModel& model, const TfColumns& columns)
      : model_(model),
        columns_(columns),
        stored_(model.checkpoint.manifest().all_slots()),
        of_table_(model.variables.size()) {
    has_slots_ = stored_ == SlotsOf(model.config) && !(stored_ == ModelSlots());
    if (UsesTable(model.config)) {
      table_ = TableVariables(model.config.model);
      columns.columns.empty() ? TakeAllRows() : TakeColumns();
      of_table_ -= places_.size();
    }
    slots_ = SlotsByVariable(has_slots_ ? stored_ : ModelSlots(), model.variables, of_table_);
  }

  bool has_slots() const { return has_slots_; }
  const std::vector<std::string>& said() const { return said_; }
  const std::vector<std::string>& slots(size_t variable) const { return slots_[variable]; }
  // `slot`: 0: the weights; then the slots, from 1.
  void ForEachBlock(size_t variable, size_t slot, const Take& take) const {
    if (variable >= of_table_) return ForEachRow(places_[variable - of_table_], slot, take);
    const Variable& of = model_.variables[variable];
    const std::string name = slot == 0 ? CheckpointReader::kWeights : slots_[variable][slot - 1];
    std::vector<float> values;
    if (columns_.order && of.name == columns_.order->layer) {
      values.resize(static_cast<size_t>(of.size()));
      model_.checkpoint.Read(of.name, name, 0, of.size(), values.data());
      columns_.order->Apply(/*to_ours=*/false, values.data(), of.cols);
      return take(values.data(), values.size() * sizeof(float));
    }
    for (int64_t first = 0; first < of.size(); first += kBlock) {
      values.resize(static_cast<size_t>(std::min(kBlock, of.size() - first)));
      const auto count = static_cast<int64_t>(values.size());
      model_.checkpoint.Read(of.name, name, first, count, values.data());
      take(values.data(), values.size() * sizeof(float));
    }
  }

 private:
  // Where the rows of a variable of the table are.
  struct Place {
    size_t variable = 0;  // in table_
    int64_t begin = 0, end = 0;
  };

  void TakeAllRows() {
    rows_ = DenseRows(model_.config, &model_.checkpoint, has_slots_);
    const int64_t features = table_[0].rows;
    for (size_t i = 0; i < table_.size(); ++i) {
      const bool bias = table_[i].bias;
      places_.push_back({i, bias ? features : 0, features + (bias ? 1 : 0)});
    }
    row_count_ = features + 1;
  }

  // In the order of ColumnVariables().
  void TakeColumns() {
    ColumnRows read = ReadColumns(model_.config, columns_.columns, &model_.checkpoint, has_slots_);
    rows_ = std::move(read.rows);
    said_ = std::move(read.said);
    for (const bool bias : {false, true}) {
      for (size_t i = 0; i < table_.size(); ++i) {
        if (table_[i].bias != bias) continue;
        row_count_ = 0;
        for (const VocabularyColumn& column : columns_.columns) {
          const int64_t begin = row_count_;
          row_count_ += static_cast<int64_t>(column.keys.size());
          if (!bias) places_.push_back({i, begin, row_count_});
        }
        if (bias) places_.push_back({i, row_count_, row_count_ + 1});
        ++row_count_;
      }
    }
  }

  void ForEachRow(const Place& place, size_t slot, const Take& take) const {
    const size_t variable = place.variable;
    const bool bias = table_[variable].bias;
    const int64_t width = model_.checkpoint.manifest().table->width;
    const int64_t row_values = static_cast<int64_t>(rows_.size()) / row_count_;
    for (const TableColumns& each :
         TableColumnsOf(has_slots_ ? stored_ : ModelSlots(), table_, width, bias)) {
      if (each.variable != variable || each.slot != slot) continue;
      std::vector<float> block;
      for (int64_t row = place.begin, end = place.end; row < end; ++row) {
        const float* const from = rows_.data() + row * row_values + each.at;
        block.insert(block.end(), from, from + each.count);
        if (row + 1 < end && static_cast<int64_t>(block.size()) < kBlock) continue;
        take(block.data(), block.size() * sizeof(float));
        block.clear();
      }
    }
  }

  const ExportedModel& model_;
  const TfColumns& columns_;
  const ModelSlots stored_;
  size_t of_table_;
  bool has_slots_ = false;
  std::vector<Variable> table_;
  std::vector<Place> places_;  // by variable from of_table_ on
  std::vector<float> rows_;  // of the table, by feature or by text, with their slots; the last is the bias's
  int64_t row_count_ = 0;
  std::vector<std::string> said_;
  std::vector<std::vector<std::string>> slots_;  // by variable
};

// beta^(updates + 1) of float32s, rounded at each update.
float PowerOf(double beta, int64_t updates) {
  const auto factor = static_cast<float>(beta);
  float power = factor;
  for (float before = 0; updates > 0 && power != before; --updates) {
    before = power;
    power *= factor;
  }
  return power;
}

}  // namespace

TfWritten WriteTfCheckpoint(const ExportedModel& model, const std::map<std::string, std::string>& names,
                            const TfColumns& columns, const std::string& prefix) {
  std::map<std::string, std::string> entries;  // by name
  OutputFile data(prefix + ".data-00000-of-00001");
  const auto add = [&](const std::string& name, TfType type, const std::vector<int64_t>& shape,
                       const std::function<void(const Take&)>& write) {
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
  const Values values(model, columns);
  TfWritten written;
  written.said = values.said();
  for (size_t i = 0; i < model.variables.size(); ++i) {
    const Variable& variable = model.variables[i];
    const auto named = names.find(variable.name);
    const std::string& name = named == names.end() ? variable.name : named->second;
    const std::vector<int64_t> shape = ExportedModel::ShapeOf(variable);
    const std::vector<std::string>& slots = values.slots(i);
    for (size_t slot = 0; slot <= slots.size(); ++slot) {
      add(slot == 0 ? name : name + "/" + SlotNameOf(slots[slot - 1]).saver, TfType::kFloat32, shape,
          [&](const Take& take) { values.ForEachBlock(i, slot, take); });
    }
    written.slots += static_cast<int64_t>(slots.size());
    if (std::count(slots.begin(), slots.end(), "mean_square") == 0) continue;
    ++written.slots;
    add(name + "/RMSProp_1", TfType::kFloat32, shape, [&](const Take& take) {
      const std::vector<float> zeros(static_cast<size_t>(std::min(kBlock, variable.size())));
      for (int64_t first = 0; first < variable.size(); first += kBlock)
        take(zeros.data(), static_cast<size_t>(std::min(kBlock, variable.size() - first)) * sizeof(float));
    });
  }
  const int64_t step = model.checkpoint.manifest().step;
  add(kStep, TfType::kInt64, {}, [&](const Take& take) { take(&step, sizeof step); });
  std::string number;  // of a second Adam
  for (const NamedOptimizer& each : OptimizersOf(model.config.train)) {
    const bool is_adam =
        each.values.kind == OptimizerKind::kAdam || each.values.kind == OptimizerKind::kAdamw;
    if (!values.has_slots() || !is_adam) continue;
    for (const auto& [name, beta] :
         {std::pair("beta1_power", each.values.beta1), std::pair("beta2_power", each.values.beta2)}) {
      const float power = PowerOf(beta, model.checkpoint.slot_updates());
      add(name + number, TfType::kFloat32, {}, [&](const Take& take) { take(&power, sizeof power); });
      ++written.slots;
    }
    number = "_1";
  }
  SortedTableBuilder table;
  table.Add("", {kHeader, sizeof kHeader - 1});
  for (const auto& [name, entry] : entries) table.Add(name, entry);
  OutputFile index(prefix + ".index");
  index.Write(table.Finish());
  data.Finish();
  index.Finish();
  written.bytes = data.size() + index.size();
  return written;
}

}  // namespace dtrain
