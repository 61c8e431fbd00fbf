#include "trainer/data/files/csv_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/names.h"

namespace dtrain {

std::vector<int64_t> FeatureColumns(const CsvColumns& columns) {
  std::vector<int64_t> features;
  for (int64_t column = 0; column < columns.count; ++column) {
    if (column != columns.label) features.push_back(column);
  }
  return features;
}

CsvRows::CsvRows(CsvReader* reader, CsvLayout layout, std::string first_row_remedy)
    : reader_(*reader),
      layout_(std::move(layout)),
      first_row_remedy_(std::move(first_row_remedy)),
      before_label_(layout_.features.size()),
      next_is_read_(layout_.first_is_row) {
  if (layout_.columns.label < 0 || !std::is_sorted(layout_.features.begin(), layout_.features.end())) return;
  before_label_ = static_cast<size_t>(
      std::lower_bound(layout_.features.begin(), layout_.features.end(), layout_.columns.label) -
      layout_.features.begin());
}

bool CsvRows::Next() {
  if (!next_is_read_ && !reader_.Next()) return false;
  next_is_read_ = false;
  ++row_;
  CheckWhole();
  return true;
}

// Throws for a record with too few or too many fields, at the first one missing or superfluous.
void CsvRows::CheckWhole() const {
  const int64_t fields = static_cast<int64_t>(reader_.fields().size()), count = layout_.columns.count;
  if (fields == count) return;
  const CsvPlace place =
      fields < count ? reader_.record_end() : reader_.fields()[static_cast<size_t>(count)].place;
  throw CsvError(reader_.path(), place,
                 fmt::format("{}; must be {}, as in the first line. Correct the row, or remove it.",
                             Plural(fields, "field"), count));
}

void CsvRows::Read(std::vector<float>* features, CsvLabels* labels) const {
  ReadFeatures(0, before_label_, features);
  if (labels != nullptr) labels->Add(reader_.fields()[static_cast<size_t>(layout_.columns.label)]);
  ReadFeatures(before_label_, layout_.features.size(), features);
}

void CsvRows::ReadFeatures(size_t begin, size_t end, std::vector<float>* out) const {
  for (size_t feature = begin; feature < end; ++feature) {
    float number = 0;
    const NumberText state = ParseNumber(FieldOf(feature).text, &number);
    if (state != NumberText::kGood || (layout_.pixels && !IsPixel(number))) Refuse(feature, state);
    out->push_back(number);
  }
}

void CsvRows::Refuse(size_t feature, NumberText state) const {
  const bool first = row_ == 0 && state == NumberText::kNotANumber;
  throw FieldError(reader_.path(), ColumnTitle(layout_.columns, layout_.features[feature]), FieldOf(feature),
                   fmt::format("{}. {}", state == NumberText::kGood ? kPixelRule : NumberRule(state),
                               first ? first_row_remedy_ : "Correct it, or remove the row."));
}

namespace {

constexpr char kTextColumn[] =
    "If all of the column is text, remove it from the file: every column but the label is a feature.";

// Returns the remedy for a text in the first row: the column may be text, or the line may be a header.
std::string FirstRowRemedy(const CsvColumns& columns, const std::string& section) {
  if (columns.names.empty())
    return fmt::format("If this line is a header, set {}.header to true. {}", section, kTextColumn);
  return fmt::format("Correct it, or remove the row. {}", kTextColumn);
}

void Reserve(int64_t rows, CsvTable* table) {
  table->features.reserve(static_cast<size_t>(rows * table->columns.features()));
  table->labels.Reserve(static_cast<size_t>(rows));
}

// Reads all rows of `reader`, which is at the first record. Returns their number.
int64_t ReadRows(CsvReader* reader, bool header, const std::string& section, CsvTable* table) {
  const CsvColumns& columns = table->columns;
  CsvRows csv(reader, {columns, FeatureColumns(columns), !header}, FirstRowRemedy(columns, section));
  CsvReserve reserve;
  const int64_t header_bytes = header ? reader->record_bytes() : 0;
  int64_t rows = 0, reserved = 0, row_bytes = 0;
  for (; csv.Next(); ++rows) {
    if (rows == reserved) {
      reserved = reserve.NextRows(rows, row_bytes, reader->content_bytes() - header_bytes);
      Reserve(reserved, table);
    }
    csv.Read(&table->features, &table->labels);
    row_bytes = reader->record_bytes() - header_bytes;
  }
  return rows;
}

}  // namespace

CsvTable ReadCsvTable(const DataSourceConfig& source, const std::string& section, const LabelRules& rules,
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
