#include "trainer/rows/read_table.h"

#include <algorithm>
#include <utility>

#include "trainer/rows/pass.h"

namespace dtrain {
namespace {

CsvTable ReadTable(const DataConfig& data, const LabelRules& rules, const RowContext& context,
                   SourceInputs* inputs, const std::vector<std::string>* train_names) {
  Pass pass(data, context, inputs);
  CsvTable table{pass.columns(), context.how, {}, pass.NewLabels(rules, train_names), pass.inputs(), {}};
  CsvReserve reserve;
  int64_t reserved = 0;
  std::vector<float>& features = table.parsed.features;
  ReadAllRows(&pass, &table.labels, [&](const ParsedRows& part) {
    if (pass.count() > reserved) {
      reserved = reserve.NextRows(pass.count(), pass.read_bytes(), pass.expected_bytes());
      features.reserve(static_cast<size_t>(reserved * table.inputs));
      table.labels.Reserve(static_cast<size_t>(reserved));
    }
    features.insert(features.end(), part.features.begin(), part.features.end());
    table.parsed.AddNumbers(part);
  });
  pass.Finish(&table.labels);
  table.skipped = pass.skipped();
  return table;
}

}  // namespace

CsvTable ReadTrainTable(const DataConfig& data, const LabelRules& rules, std::vector<InputColumn> how,
                        SourceInputs* inputs) {
  RowContext context;
  context.how = std::move(how);
  return ReadTable(data, rules, context, inputs, nullptr);
}

CsvTable ReadTestTable(const DataConfig& data, const LabelRules& rules, const CsvTable& train,
                       SourceInputs* inputs) {
  RowContext context;
  context.how = train.how;
  context.train = &train.columns;
  return ReadTable(data, rules, context, inputs, &train.labels.names());
}

int64_t CsvReserve::NextRows(int64_t rows, int64_t row_bytes, int64_t content_bytes) {
  const int64_t min_rows = rows + rows / 8 + 1;
  const int64_t new_rows = rows - rows_, new_bytes = row_bytes - row_bytes_;
  double left = 0;
  if (new_bytes > 0) {
    const double pace = static_cast<double>(new_rows) / static_cast<double>(new_bytes);
    left = static_cast<double>(content_bytes - row_bytes) * pace;
  }
  rows_ = rows;
  row_bytes_ = row_bytes;
  // A 64th more, so that slightly shorter rows at the end do not cause a copy of the table.
  const double expected = static_cast<double>(rows) + left * (1 + 1.0 / 64);
  const double max_rows = static_cast<double>(rows) * kMaxGrowth;
  // If the estimate exceeds the limit, one larger step remains: it copies an eighth and not nearly all.
  const double next = expected <= max_rows ? expected : std::min(expected / kMaxGrowth, max_rows);
  return std::max(min_rows, static_cast<int64_t>(next) + 1);
}

}  // namespace dtrain
