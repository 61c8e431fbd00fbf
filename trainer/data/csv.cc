#include "trainer/data/csv.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/names.h"
#include "trainer/data/csv_number.h"
#include "trainer/data/csv_reserve.h"
#include "trainer/data/float_set.h"
#include "trainer/data/scale.h"

namespace dtrain {
namespace {

// What is read of one file.
struct CsvTable {
  CsvColumns columns;
  std::vector<float> features;  // [rows, columns.features()]
  CsvLabels labels;

  void Reserve(int64_t rows) {
    features.reserve(static_cast<size_t>(rows * columns.features()));
    labels.Reserve(static_cast<size_t>(rows));
  }
  gpu::MatrixView<float> Rows() {
    const int64_t inputs = columns.features();
    return {features.data(), static_cast<int64_t>(features.size()) / inputs, inputs};
  }
};

// Refuses a record with too few or too many fields, at the first that is missing or too much.
void CheckWhole(const CsvReader& reader, int64_t count) {
  const int64_t fields = static_cast<int64_t>(reader.fields().size());
  if (fields == count) return;
  const CsvPlace place =
      fields < count ? reader.record_end() : reader.fields()[static_cast<size_t>(count)].place;
  throw CsvError(reader.path(), place,
                 fmt::format("{}; must be {}, as in the first line. Correct the row, or remove it.",
                             Plural(fields, "field"), count));
}

// What stands in the first row may be what all of its column is.
std::string FeatureRemedy(const CsvTable& table, NumberText state, const std::string& section) {
  const bool first_row = static_cast<int64_t>(table.features.size()) < table.columns.features();
  if (!first_row || state != NumberText::kNoNumber) return "Correct it, or remove the row.";
  const char* const column =
      "If all of the column is text, remove it from the file: every column but the label is a feature.";
  if (!table.columns.names.empty()) return fmt::format("Correct it, or remove the row. {}", column);
  return fmt::format("If this line is a header, set {}.header to true. {}", section, column);
}

[[noreturn]] void RefuseFeature(const CsvReader& reader, const CsvTable& table, int64_t column,
                                NumberText state, const std::string& section) {
  throw FieldError(reader.path(), ColumnTitle(table.columns, column),
                   reader.fields()[static_cast<size_t>(column)],
                   fmt::format("{}. {}", NumberRule(state), FeatureRemedy(table, state, section)));
}

// The reader's record becomes the last row.
void AddRow(const CsvReader& reader, const std::string& section, CsvTable* table) {
  const CsvColumns& columns = table->columns;
  CheckWhole(reader, columns.count);
  for (int64_t column = 0; column < columns.count; ++column) {
    const CsvField& field = reader.fields()[static_cast<size_t>(column)];
    if (column == columns.label) {
      table->labels.Add(field);
      continue;
    }
    float number = 0;
    const NumberText state = ParseNumber(field.text, &number);
    if (state != NumberText::kGood) RefuseFeature(reader, *table, column, state, section);
    table->features.push_back(number);
  }
}

// All rows behind a header that has been read; returns how many. Without a header the first has been read.
int64_t ReadRows(CsvReader* reader, bool header, const std::string& section, CsvTable* table) {
  CsvReserve reserve;
  const int64_t header_bytes = header ? reader->record_bytes() : 0;
  int64_t rows = 0, reserved = 0, row_bytes = 0;
  for (bool more = !header || reader->Next(); more; more = reader->Next()) {
    if (rows == reserved) {
      reserved = reserve.NextRows(rows, row_bytes, reader->content_bytes() - header_bytes);
      table->Reserve(reserved);
    }
    AddRow(*reader, section, table);
    ++rows;
    row_bytes = reader->record_bytes() - header_bytes;
  }
  return rows;
}

// `train`: null for the training file itself.
CsvTable ReadCsv(const DataSourceConfig& source, const std::string& section, const LabelRules& rules,
                 const CsvTable* train, const std::string& train_path) {
  CsvReader reader(source.path, section + ".path");
  const CsvColumns columns = ReadColumns(source, section, &reader);
  if (train != nullptr) CheckSameFeatures(columns, reader, train->columns, train_path);
  const std::string title = ColumnTitle(columns, columns.label);
  CsvTable table{columns,
                 {},
                 train == nullptr ? CsvLabels(rules, source.path, title)
                                  : CsvLabels(rules, source.path, title, train->labels.names())};
  const int64_t rows = ReadRows(&reader, source.header, section, &table);
  if (rows == 0) {
    throw CsvError(source.path, reader.record_end(),
                   fmt::format("no rows after the header; {}.path must name a file with data. If the first "
                               "line is data, set {}.header to false.",
                               section, section));
  }
  table.labels.Finish();
  return table;
}

std::shared_ptr<const DataSet> ToSet(CsvTable table, std::optional<int64_t> classes) {
  return std::make_shared<FloatSet>(std::move(table.features), table.columns.features(), classes,
                                    std::move(table.labels.classes()), std::move(table.labels.targets()));
}

// The training rows that are not held out.
gpu::MatrixView<const float> FittedRows(CsvTable* train, int64_t validation) {
  const gpu::MatrixView<float> all = train->Rows();
  const int64_t held_out = std::min(validation, all.rows);  // who makes batches refuses to hold out all
  return gpu::MatrixView<float>(all.row(held_out), all.rows - held_out, all.cols);
}

}  // namespace

LoadedData LoadCsv(const Config& config, const LabelRules& labels, const FittedScale* scale) {
  const DataConfig& data = config.data;
  CsvTable train = ReadCsv(data.train, "data.train", labels, nullptr, "");
  std::optional<CsvTable> test;
  if (data.test.format == DataFormat::kCsv) {
    test.emplace(ReadCsv(data.test, "data.test", labels, &train, data.train.path));
  }
  LoadedData loaded;
  loaded.form.features = FeatureNames(train.columns);
  loaded.form.classes = train.labels.names();
  loaded.form.label_column = train.columns.label;
  if (data.scale != FeatureScale::kNone) {
    loaded.form.scale = scale != nullptr ? *scale : FitScale(data.scale, FittedRows(&train, data.validation));
    ApplyScale(loaded.form.scale, train.Rows());
    if (test.has_value()) ApplyScale(loaded.form.scale, test->Rows());
  }
  loaded.train = ToSet(std::move(train), labels.classes);
  if (test.has_value()) loaded.test = ToSet(std::move(*test), labels.classes);
  return loaded;
}

}  // namespace dtrain
