#include "trainer/data/files/csv_fit.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/data/files/csv_columns.h"
#include "trainer/data/files/csv_reader.h"

namespace dtrain {
namespace {

// A column with more different texts is no category, and counting them would take memory without end.
constexpr size_t kMaxTexts = 100'000;

// ColumnFit: what the rows so far say about one column.
struct ColumnFit {
  InputColumn column;
  std::string title;                                  // for messages
  std::map<std::string, int64_t, std::less<>> texts;  // of a category: how often each is there
  double sum = 0;                                     // of a number, this and the fields below
  int64_t count = 0;
  int64_t gaps = 0;
};

void CountText(const CsvReader& reader, const CsvField& field, ColumnFit* fit) {
  const std::string_view text = IsMissing(field.text) ? std::string_view() : field.text;
  const auto found = fit->texts.find(text);
  if (found != fit->texts.end()) {
    ++found->second;
    return;
  }
  CheckName(reader.path(), field);
  fit->texts.emplace(text, 1);
  if (fit->texts.size() <= kMaxTexts) return;
  throw CsvError(
      reader.path(), field.place,
      fmt::format("{} has more than {} different texts; it cannot be in data.categories. Is it an id? "
                  "Name it in data.ignore.",
                  fit->title, kMaxTexts));
}

void CountNumber(const CsvField& field, ColumnFit* fit) {
  float number = 0;
  if (ParseNumber(field.text, &number) == NumberText::kGood) {
    fit->sum += number;
    ++fit->count;
  } else if (IsMissing(field.text)) {
    ++fit->gaps;
  }  // else the file is refused, or the row skipped, when it is read
}

// Keeps the most frequent texts; of equally frequent ones the first in the order of their bytes.
void ChooseCategories(const ColumnFit& fit, int64_t max, InputColumn* column) {
  std::vector<std::pair<int64_t, std::string>> texts;
  for (const auto& [text, count] : fit.texts) texts.emplace_back(-count, text);
  std::sort(texts.begin(), texts.end());
  column->has_other = static_cast<int64_t>(texts.size()) > max;
  if (column->has_other) texts.resize(static_cast<size_t>(max));
  for (auto& [count, text] : texts) column->categories.push_back(std::move(text));
  std::sort(column->categories.begin(), column->categories.end());
}

InputColumn Conclude(const ColumnFit& fit, const DataConfig& data) {
  InputColumn column = fit.column;
  if (column.is_category) {
    ChooseCategories(fit, data.max_categories, &column);
    return column;
  }
  const bool fills = data.missing != MissingValues::kError && data.missing != MissingValues::kDrop;
  if (!fills) return column;
  const bool zero = data.missing == MissingValues::kZero || fit.count == 0;
  column.fill = zero ? 0 : static_cast<double>(static_cast<float>(fit.sum / static_cast<double>(fit.count)));
  column.has_indicator = data.missing == MissingValues::kIndicator && fit.gaps > 0;
  return column;
}

std::vector<ColumnFit> StartFit(const DataConfig& data, const CsvColumns& columns, const CsvReader& reader) {
  std::vector<int64_t> categories;
  for (const std::string& text : data.categories) {
    categories.push_back(FindColumn(columns, text, "data.categories", reader));
    if (categories.back() != columns.label) continue;
    throw CsvError(reader.path(), reader.fields()[0].place,
                   fmt::format("{} is in data.categories and the label; it is one of them. Take it out.",
                               ColumnTitle(columns, columns.label)));
  }
  std::vector<ColumnFit> fits;
  for (const int64_t input : columns.inputs) {
    ColumnFit fit;
    fit.column.column = input;
    if (!columns.names.empty()) fit.column.name = columns.names[static_cast<size_t>(input)];
    fit.column.is_category = std::count(categories.begin(), categories.end(), input) > 0;
    fit.title = ColumnTitle(columns, input);
    fits.push_back(std::move(fit));
  }
  return fits;
}

// Reads the next record; one that cannot be read is skipped where that is asked for. False: the file's end.
bool NextRecord(const DataConfig& data, CsvReader* reader) {
  while (true) {
    try {
      return reader->Next();
    } catch (const CsvFault&) {
      if (data.bad_rows == BadRows::kStop) throw;
      reader->SkipFault();
    }
  }
}

// Counts the rows of one file, which the reader has begun. *rows: of all files so far.
void CountRows(const DataConfig& data, const CsvColumns& columns, CsvReader* reader, int64_t* rows,
               std::vector<ColumnFit>* fits) {
  const auto goes_on = [&] {
    return *rows < data.validation + kFittedRows && reader->head_bytes() < SourceInputs::kMaxHeadBytes;
  };
  for (bool more = !data.train.header || NextRecord(data, reader); more && goes_on();
       more = NextRecord(data, reader)) {
    if (static_cast<int64_t>(reader->fields().size()) != columns.count) continue;  // it is no row
    if ((*rows)++ < data.validation) continue;
    for (ColumnFit& fit : *fits) {
      const CsvField& field = reader->fields()[static_cast<size_t>(fit.column.column)];
      fit.column.is_category ? CountText(*reader, field, &fit) : CountNumber(field, &fit);
    }
  }
}

// Counts the rows of all files; `first` has begun the first one.
void CountFiles(const DataConfig& data, const CsvColumns& columns, SourceInputs* inputs, CsvReader* first,
                std::vector<ColumnFit>* fits) {
  int64_t rows = 0;
  CountRows(data, columns, first, &rows, fits);
  for (size_t file = 1; file < inputs->size() && rows < data.validation + kFittedRows; ++file) {
    CsvReader reader(inputs->OpenHead(file), data.delimiter);
    CheckNextFile(columns, inputs->files()[0], &reader);
    CountRows(data, columns, &reader, &rows, fits);
  }
}

}  // namespace

bool HasColumnForms(const DataConfig& data) {
  return !data.ignore.empty() || !data.categories.empty() || data.missing != MissingValues::kError;
}

namespace {

FittedColumns FitWith(const DataConfig& data, SourceInputs* inputs, CsvReader* reader) {
  const CsvColumns columns = ReadTrainColumns(data, reader);
  FittedColumns fitted;
  InputForm& form = fitted.form;
  form.label_column = columns.label;
  form.table_columns = columns.count;
  form.features = InputNames(columns);
  fitted.inputs = static_cast<int64_t>(columns.inputs.size());
  if (!HasColumnForms(data)) return fitted;
  std::vector<ColumnFit> fits = StartFit(data, columns, *reader);
  const bool counts = !data.categories.empty() || data.missing == MissingValues::kMean ||
                      data.missing == MissingValues::kIndicator;
  if (counts) CountFiles(data, columns, inputs, reader, &fits);
  form.features.clear();
  for (const ColumnFit& fit : fits) {
    form.columns.push_back(Conclude(fit, data));
    for (std::string& name : FeatureNamesOf(form.columns.back())) form.features.push_back(std::move(name));
  }
  fitted.inputs = static_cast<int64_t>(form.features.size());
  return fitted;
}

}  // namespace

FittedColumns FitColumns(const DataConfig& data, SourceInputs* inputs) {
  CsvReader reader(inputs->OpenHead(0), data.delimiter);
  FittedColumns fitted = FitWith(data, inputs, &reader);
  inputs->GiveBack(reader.Release());
  return fitted;
}

}  // namespace dtrain
