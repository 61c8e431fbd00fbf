#include "cmd/models/imported_shard.h"

#include <algorithm>
#include <utility>

#include "trainer/checkpoint/part_pieces.h"
#include "trainer/checkpoint/shard_format.h"
#include "trainer/checkpoint/shard_writer.h"
#include "trainer/model/model.h"
#include "trainer/optim/optimizer.h"
#include "trainer/table/hash_pieces.h"
#include "trainer/table/row_optimizer.h"
#include "trainer/table/row_pieces.h"
#include "trainer/tf/row_sorter.h"
#include "trainer/tf/tf_slots.h"

namespace dtrain {
namespace {

// A part of a table's rows that lie one behind the other in the tensors.
struct RowRun {
  bool bias = false;
  const VocabularyColumn* column = nullptr;  // null: rows are of the features from 0 on
  int64_t rows = 0;
};

// Reads the rows of a table, each with what its feature, or the bias, has in the table's tensors, and with
// its slots, in the tensors' order, a block at a time. add(feature) returns where a row's values are to be
// written.
void ReadRows(const Config& config, const Layout& layout, const ImportedValues& taken,
              const std::function<float*(uint64_t feature)>& add) {
  constexpr int64_t kBlock = 1 << 18;  // values
  const TableLayout& table = *layout.table;
  const int64_t width = table.width(), values = RowValues(config, width);
  const std::vector<Variable> of_rows = TableVariables(config.model);
  const Layout tensors = WithTable(config, taken.columns, layout);
  const auto first_slots = FirstSlots(config, width);
  std::vector<RowRun> runs;
  for (const VocabularyColumn& column : taken.columns)
    runs.push_back({false, &column, static_cast<int64_t>(column.keys.size())});
  if (runs.empty()) runs.push_back({false, nullptr, table.features()});
  runs.push_back({true, nullptr, 1});
  for (const RowRun& run : runs) {
    const std::vector<TableColumns> columns = TableColumnsOf(SlotsOf(config), of_rows, width, run.bias);
    std::vector<size_t> places;  // of their variables in `tensors`
    for (const TableColumns& each : columns) {
      const std::string& name = of_rows[each.variable].name;
      const Variable& found = tensors.Find(run.column == nullptr ? name : run.column->NameOf(name));
      places.push_back(static_cast<size_t>(&found - tensors.variables.data()));
    }
    const bool is_left = run.bias || !taken.has_slots;  // values that are not read
    const int64_t step = std::max<int64_t>(1, kBlock / values);
    std::vector<std::vector<float>> blocks(columns.size());
    for (int64_t first = 0; first < run.rows; first += step) {
      const int64_t count = std::min(step, run.rows - first);
      for (size_t i = 0; i < columns.size(); ++i) {
        if (columns[i].slot > 0 && !taken.has_slots) continue;
        blocks[i].resize(static_cast<size_t>(count * columns[i].count));
        taken.read(places[i], columns[i].slot, first * columns[i].count, count * columns[i].count,
                   blocks[i].data());
      }
      for (int64_t r = 0; r < count; ++r) {
        const int64_t number = run.bias ? table.features() : first + r;
        float* const row = add(run.column == nullptr ? static_cast<uint64_t>(number)
                                                     : run.column->keys[static_cast<size_t>(number)]);
        const auto copy = [&](bool slots) {
          for (size_t i = 0; i < columns.size(); ++i) {
            const TableColumns& each = columns[i];
            if ((each.slot > 0) == slots)
              std::copy_n(blocks[i].data() + r * each.count, each.count, row + each.at);
          }
        };
        if (is_left) std::fill_n(row, values, 0.0f);
        copy(/*slots=*/false);
        if (is_left) first_slots(row);
        if (taken.has_slots) copy(/*slots=*/true);
      }
    }
  }
}

// Writes rows of a table of any keys in pieces that are as large as they may be.
void WriteHashRows(const std::vector<HashRow>& rows, int64_t width, int64_t values, const PartPieces& part,
                   ShardWriter* file, WrittenPart* written) {
  std::vector<std::byte> bytes(kMaxRowPieceBytes);
  auto next = rows.begin();
  while (next != rows.end()) {
    const auto begin = next;
    for (size_t count = 1; next != rows.end() && HashPieceBytes(count, count, values) <= bytes.size();
         ++count)
      ++next;
    const size_t size = WriteHashPiece({begin, next}, width, values, bytes.data());
    part.Write(0, {bytes.data(), size}, file, written);
  }
}

// Writes the rows of a table. Those of texts are all in memory; of a range all others are as they begin.
void AddRows(const Config& config, const Layout& layout, const ImportedValues& taken,
             const std::string& directory, ShardWriter* file, WrittenPart* written) {
  const TableLayout& table = *layout.table;
  const int64_t width = table.width(), values = RowValues(config, width);
  const auto part = std::move(PartsOf(layout, 0, SlotsOf(config).counts()).back());
  std::vector<HashRow> rows;
  std::vector<float> of_rows;
  if (!taken.columns.empty()) {
    ReadRows(config, layout, taken, [&](uint64_t feature) {
      rows.push_back({table.RowOf(feature), static_cast<uint64_t>(taken.step), 0, nullptr});
      of_rows.resize(of_rows.size() + static_cast<size_t>(values));
      return &of_rows[of_rows.size() - static_cast<size_t>(values)];
    });
    for (size_t i = 0; i < rows.size(); ++i)
      rows[i].values = of_rows.data() + i * static_cast<size_t>(values);
    std::sort(rows.begin(), rows.end(), [](const HashRow& a, const HashRow& b) { return a.row < b.row; });
    if (table.hashed()) return WriteHashRows(rows, width, values, *part, file, written);
  }
  const RowPieces pieces(table.PartOf(0), values);
  RowPieceWriter writer(width, values);
  std::vector<std::byte> bytes(kMaxRowPieceBytes);
  int64_t piece = 0;
  const auto finish = [&] {
    const size_t size = writer.Finish(pieces.At(piece), bytes.data());
    part->Write(piece++, {bytes.data(), size}, file, written);
  };
  const auto add = [&](uint64_t number, const float* row_values) {
    while (piece < pieces.Of(number)) finish();
    writer.Add(number, row_values);
  };
  for (const HashRow& row : rows) add(row.row, row.values);
  if (taken.columns.empty()) {
    RowSorter sorter(directory, table.rows(), values);
    ReadRows(config, layout, taken, [&](uint64_t feature) { return sorter.Add(table.RowOf(feature)); });
    sorter.Visit(add);
  }
  while (piece < pieces.count()) finish();
}

}  // namespace

Layout WithTable(const Config& config, const std::vector<VocabularyColumn>& columns, Layout layout) {
  if (!layout.table) return layout;
  for (Variable variable : columns.empty() ? TableVariables(config.model)
                                           : ColumnVariables(TableVariables(config.model), columns)) {
    variable.offset = layout.size;
    layout.size += variable.size();
    layout.variables.push_back(variable);
  }
  return layout;
}

std::vector<WrittenPart> WriteShard(const std::string& directory, const Config& config, const Layout& layout,
                                    const ImportedValues& taken) {
  const std::vector<float> slots = InitialSlots(OptimizerOf(config.train, ModelHalf::kOther).values);
  ShardWriter writer(directory + "/" + ShardName(0, 1));
  std::vector<uint64_t> checksums;
  std::vector<float> values;
  for (const TensorPiece& piece : PiecesOf(layout, 0, static_cast<int>(slots.size()))) {
    const auto slot = static_cast<size_t>(piece.slot);  // 0: the weights
    values.resize(static_cast<size_t>(piece.count));
    if (slot > 0 && !taken.has_slots) {
      std::fill(values.begin(), values.end(), slots[slot - 1]);
    } else {
      taken.read(static_cast<size_t>(piece.variable), slot, piece.first, piece.count, values.data());
    }
    checksums.push_back(writer.Add(values.data(), values.size() * sizeof(float)));
  }
  WrittenPart written(std::move(checksums));
  if (layout.table) AddRows(config, layout, taken, directory, &writer, &written);
  writer.Finish();
  return {std::move(written)};
}

}  // namespace dtrain
