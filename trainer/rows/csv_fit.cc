#include "trainer/rows/csv_fit.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/input/csv_reader.h"
#include "trainer/input/sources.h"
#include "trainer/order/held_out.h"
#include "trainer/rows/csv_columns.h"
#include "trainer/rows/row_labels.h"

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
  throw FaultAt(
      reader.path(), field.place,
      fmt::format("{} has more than {} different texts; it cannot be in data.categories. Is it an id? "
                  "Name it in data.ignore.",
                  fit->title, kMaxTexts));
}

NumberText NumberOf(const CsvReader& reader, const InputColumn& column, std::string_view text,
                    float* number) {
  return column.is_date ? ParseDate(text, number) : ParseNumber(text, reader.decimal(), number);
}

void CountNumber(const CsvReader& reader, const CsvField& field, ColumnFit* fit) {
  float number = 0;
  if (NumberOf(reader, fit->column, field.text, &number) == NumberText::kGood) {
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
  const std::vector<int64_t> categories = FindInputs(columns, data.categories, "data.categories", reader);
  const std::vector<int64_t> dates = FindInputs(columns, data.dates, "data.dates", reader);
  std::vector<ColumnFit> fits;
  for (const int64_t input : columns.inputs) {
    ColumnFit fit;
    fit.column.column = input;
    if (!columns.names.empty()) fit.column.name = columns.names[static_cast<size_t>(input)];
    fit.column.is_category = std::count(categories.begin(), categories.end(), input) > 0;
    fit.column.is_date = std::count(dates.begin(), dates.end(), input) > 0;
    fit.title = ColumnTitle(columns, input);
    if (fit.column.is_category && fit.column.is_date) {
      throw FaultAt(
          reader.path(), reader.fields()[0].place,
          fmt::format("{} is in data.categories and data.dates; it is one of them. Take it out.", fit.title));
    }
    fits.push_back(std::move(fit));
  }
  return fits;
}

// Reads the next record; one that cannot be read is skipped where that is asked for. False: the file's end.
bool NextRecord(const DataConfig& data, CsvReader* reader) {
  while (true) {
    try {
      return reader->Next();
    } catch (const RowFault&) {
      if (data.bad_rows == BadRows::kStop) throw;
      reader->SkipFault();
    }
  }
}

// RowJudge: whether a record becomes a row of the table, as far as the run goes on at all. Rows are held out
// and counted in the table, so records that are left out there do not count here.
class RowJudge {
 public:
  RowJudge(const DataConfig& data, const CsvColumns& columns, const std::vector<ColumnFit>& fits)
      : data_(data), columns_(columns), fits_(fits) {
    AddLabelKeys(data, &labels_);
  }

  bool IsRow(const CsvReader& reader) const {
    const std::vector<CsvField>& fields = reader.fields();
    if (static_cast<int64_t>(fields.size()) != columns_.count) return false;
    const std::string_view label = fields[static_cast<size_t>(columns_.label)].text;
    const bool renamed = labels_.renamed.find(label) != labels_.renamed.end();
    if (IsMissing(label) && (!renamed || data_.missing == MissingValues::kDrop)) return false;
    return std::all_of(fits_.begin(), fits_.end(), [&](const ColumnFit& fit) {
      return IsGood(reader, fields[static_cast<size_t>(fit.column.column)].text, fit.column);
    });
  }

 private:
  bool IsGood(const CsvReader& reader, std::string_view text, const InputColumn& column) const {
    if (IsMissing(text)) {
      const bool left_out = data_.missing == MissingValues::kDrop;
      return !left_out && (column.is_category || data_.missing != MissingValues::kError);
    }
    float number = 0;
    return column.is_category || NumberOf(reader, column, text, &number) == NumberText::kGood;
  }

  const DataConfig& data_;
  const CsvColumns& columns_;
  const std::vector<ColumnFit>& fits_;
  LabelRules labels_;
};

using OnRow = std::function<bool(CsvReader* reader)>;

// Calls `on_row` for each row of one file, which the reader has begun, until it returns false, or until as
// much of a pipe was read as can be read again. Returns whether it has come to the file's end.
bool ForEachRowOfFile(const DataConfig& data, const RowJudge& judge, CsvReader* reader, const OnRow& on_row) {
  for (bool more = !data.train.header || NextRecord(data, reader); more; more = NextRecord(data, reader)) {
    if (reader->head_bytes() >= SourceInputs::kMaxHeadBytes) return false;
    if (judge.IsRow(*reader) && !on_row(reader)) return false;
  }
  return true;
}

// The same for all files; `first` has begun the first one.
void ForEachRow(const DataConfig& data, const CsvColumns& columns, const RowJudge& judge,
                SourceInputs* inputs, CsvReader* first, const OnRow& on_row) {
  if (!ForEachRowOfFile(data, judge, first, on_row)) return;
  for (size_t file = 1; file < inputs->size(); ++file) {
    CsvReader reader(inputs->OpenHead(file), DialectOf(data));
    CheckNextFile(columns, inputs->files()[0], &reader);
    if (!ForEachRowOfFile(data, judge, &reader, on_row)) return;
  }
}

// Returns a number for the class of a label: 1 and 1.0 are one class, unless they are names.
int32_t ClassOf(std::string_view label, const LabelRules& rules,
                std::map<std::string, int32_t, std::less<>>* classes) {
  const auto renamed = rules.renamed.find(label);
  std::string name(renamed == rules.renamed.end() ? label : renamed->second);
  float number = 0;
  if (!rules.names && ParseNumber(name, &number) == NumberText::kGood) name = fmt::format("{}", number);
  return classes->emplace(name, static_cast<int32_t>(classes->size())).first->second;
}

// Reads all files, since a share of their rows is held out. Returns for each row whether it is.
std::vector<bool> ReadMarks(const DataConfig& data, const CsvColumns& columns, const RowJudge& judge) {
  SourceInputs inputs(data.train.path, "data.train.path");
  CsvReader first(inputs.OpenHead(0), DialectOf(data));
  ReadTrainColumns(data, &first);
  const bool stratified = data.validation_by == HeldOutBy::kStratified;
  LabelRules rules;
  AddLabelKeys(data, &rules);
  std::map<std::string, int32_t, std::less<>> numbers;
  std::vector<int32_t> classes;
  ForEachRow(data, columns, judge, &inputs, &first, [&](CsvReader* reader) {
    const std::string_view text = reader->fields()[static_cast<size_t>(columns.label)].text;
    classes.push_back(stratified ? ClassOf(text, rules, &numbers) : 0);
    return true;
  });
  return HeldOutMarks(data, classes);
}

// Counts the rows of all files; `first` has begun the first one.
void CountRows(const DataConfig& data, const CsvColumns& columns, SourceInputs* inputs, CsvReader* first,
               std::vector<ColumnFit>* fits) {
  const RowJudge judge(data, columns, *fits);
  std::vector<bool> held_out;
  if (data.validation_share > 0) held_out = ReadMarks(data, columns, judge);
  int64_t row = 0, fitted = 0;
  ForEachRow(data, columns, judge, inputs, first, [&](CsvReader* reader) {
    const auto at = static_cast<size_t>(row++);
    if (held_out.empty() ? row <= data.validation : at < held_out.size() && held_out[at]) return true;
    for (ColumnFit& fit : *fits) {
      const CsvField& field = reader->fields()[static_cast<size_t>(fit.column.column)];
      fit.column.is_category ? CountText(*reader, field, &fit) : CountNumber(*reader, field, &fit);
    }
    return ++fitted < data.fit_rows;
  });
}

}  // namespace

bool HasColumnForms(const DataConfig& data) {
  return !data.ignore.empty() || !data.categories.empty() || !data.dates.empty() || !data.weight.empty() ||
         data.missing != MissingValues::kError;
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
  if (counts) CountRows(data, columns, inputs, reader, &fits);
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
  CsvReader reader(inputs->OpenHead(0), DialectOf(data));
  FittedColumns fitted = FitWith(data, inputs, &reader);
  inputs->GiveBack(reader.Release());
  return fitted;
}

int64_t CountClasses(const DataConfig& data) {
  ClassCounter counter(data);
  for (const std::string& file : SourceFiles(data.train.path, "data.train.path")) {
    CsvReader reader(file, "data.train.path", DialectOf(data));
    const CsvColumns columns = ReadTrainColumns(data, &reader);
    for (bool more = !data.train.header || NextRecord(data, &reader); more;
         more = NextRecord(data, &reader)) {
      if (static_cast<int64_t>(reader.fields().size()) != columns.count) continue;  // it is no row
      counter.Count(reader.path(), reader.fields()[static_cast<size_t>(columns.label)]);
    }
  }
  return counter.classes();
}

}  // namespace dtrain
