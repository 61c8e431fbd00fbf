#include "trainer/rows/row_files.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "trainer/config/item_text.h"
#include "trainer/input/sources.h"
#include "trainer/rows/example_reader.h"
#include "trainer/rows/idx.h"
#include "trainer/rows/sparse_file.h"

namespace dtrain {
namespace {

constexpr const char* kKey = "data.train.path";
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Whether, behind `blanks` blanks, the name of a column begins and not a JSON row: both may begin with a
// bracket.
bool BeginsWithColumn(InputBytes* file, size_t blanks, const RowSpec& spec) {
  std::vector<std::string> names = ColumnNames(spec.form);
  names.push_back(spec.label);
  for (const std::string& name : names) {
    if (name.empty() || !file->ContinuesWith(name, blanks)) continue;
    for (const char* end : {",", ";", "|", "\n", "\r", " ", "\t"}) {
      if (file->ContinuesWith(name + end, blanks)) return true;
    }
  }
  return false;
}

// Returns the format of a file: of a run's as the config says. Of one for a trained model, a
// record of TFRecord tells itself, and if the spec does not give the format, the first byte behind a byte
// order mark, which is read, decides: a brace or bracket means JSON lines, unless it begins the name of a
// column; a zero means IDX; all else CSV.
RowFormat FormatOf(const DataConfig& data, const RowSpec* spec, InputBytes* file) {
  const bool table = IsTable(data.train.format), sparse = HasSparseRows(data);
  const bool records = data.train.format == DataFormat::kTfrecord;
  const bool may_be_records = spec == nullptr ? records : (table || !sparse) && (records || !file->is_pipe());
  if (may_be_records && (file->BeginsRecords(records) || spec == nullptr)) return RowFormat::kRecords;
  if (spec != nullptr && file->ContinuesWith(kByteOrderMark)) {
    std::array<char, kByteOrderMark.size()> mark{};
    file->Read(mark.data(), mark.size());
  }
  // In CSV, quotes stand around whole fields, so no CSV file begins this way.
  if (spec != nullptr && (sparse || spec->format == RowFormat::kCsv) && file->ContinuesWith("{\"")) {
    throw UserError("{}: is JSON lines ({}); {}", file->path(), spec->key,
                    sparse ? "sparse models have none. Give rows in the form of data.train."
                           : "rows with labels are read of CSV and IDX files only. Save it as CSV, or use "
                             "dtrain predict.");
  }
  if (spec == nullptr || sparse) return table ? RowFormat::kCsv : RowFormat::kLines;
  if (spec->format) return *spec->format;
  if (file->ContinuesWith(std::string_view("\0", 1))) return RowFormat::kIdx;
  const size_t blanks = file->CountBlanks(" \t\r\n");
  const bool bracket = file->ContinuesWith("{", blanks) || file->ContinuesWith("[", blanks);
  const bool json = bracket && !BeginsWithColumn(file, blanks, *spec);
  return json ? RowFormat::kJsonLines : RowFormat::kCsv;
}

// The columns of a run's table. *is_row: the reader is at a row, and not at a header or at the end.
CsvColumns ColumnsOf(const DataConfig& data, const RowContext& context, CsvReader* reader, bool* is_row) {
  if (context.first != nullptr) {
    *is_row = CheckNextFile(*context.first, context.first_path, reader) && context.first->names.empty();
    ReadAsWritten(data, context.train != nullptr ? *context.train : *context.first, *context.first, reader);
    return *context.first;
  }
  CsvColumns columns = context.train != nullptr
                           ? ReadTestColumns(data, *context.train, reader, context.labels)
                           : ReadTrainColumns(data, reader, context.labels);
  *is_row = columns.names.empty();
  return columns;
}

// What a table was not trained on, by its names: the config names it, or it is passed on.
bool IsKnown(const DataConfig& data, const RowSpec* spec, const std::string& name, int64_t column) {
  const auto names = [&](const std::string& text) {
    return ColumnNameIn(text) == name || ColumnNumber(text) == column;
  };
  const bool kept = spec != nullptr && std::any_of(spec->keep.begin(), spec->keep.end(), names);
  return kept || names(data.weight) || names(data.offset) ||
         std::any_of(data.ignore.begin(), data.ignore.end(), names);
}

// Notes how the columns of a table were found whose header is read, and which ones no model has. `named`:
// whether those of the training data have names.
void NoteColumns(const DataConfig& data, const RowSpec* spec, const CsvColumns& columns, bool named,
                 SkippedRows* skipped) {
  if (!named) {
    skipped->notes.insert(
        "the names in the first line are not used: the model's columns have none, and are taken by their "
        "places");
    return;
  }
  if (!std::is_sorted(columns.inputs.begin(), columns.inputs.end())) {
    skipped->notes.insert(
        "the columns are in another order than in the training data: they are found by their "
        "names");
  }
  std::vector<bool> used(columns.names.size());
  for (const int64_t input : columns.inputs) used[static_cast<size_t>(input)] = true;
  for (size_t i = 0; i < used.size(); ++i) {
    const auto column = static_cast<int64_t>(i);
    if (used[i] || column == columns.label || IsKnown(data, spec, columns.names[i], column)) continue;
    skipped->AddUnused(columns.names[i]);
  }
}

std::unique_ptr<CsvReader> OpenText(const DataConfig& data, const RowSpec* spec,
                                    std::unique_ptr<InputBytes> file) {
  CsvDialect dialect = DialectOf(data);  // rows of the user's own may have another delimiter
  dialect.may_differ = spec != nullptr && spec->key == "--data" && ColumnCount(spec->form, spec->inputs) > 1;
  return std::make_unique<CsvReader>(std::move(file), dialect);
}

// A file need not have all features in its first records where another one has them, or where the config
// names them and a later record of the first file has them.
std::unique_ptr<CsvReader> OpenRecords(const DataConfig& data, const RowContext& context,
                                       std::unique_ptr<InputBytes> file) {
  ExampleRules rules;
  const auto add = [](const std::vector<std::string>& columns, std::vector<std::string>* names) {
    for (const std::string& column : columns) {
      if (!ColumnNumber(column)) names->push_back(ColumnNameIn(column));
    }
  };
  add(data.ignore, &rules.whole);
  for (const std::string& item : data.bags) {
    const BagItem bag = ParseBag(item);
    add({bag.column}, &rules.whole);
    if (!bag.weights.empty()) add({bag.weights}, &rules.whole);
  }
  if (context.spec != nullptr) {
    rules.names = ColumnNames(context.spec->form);
    rules.waits = !file->is_pipe();
  } else if (context.train != nullptr) {
    rules.names = InputNames(*context.train);
  } else if (context.first != nullptr) {
    rules.names = context.first->names;
  } else if (!file->is_pipe()) {
    std::vector<std::string> listed = rules.whole;
    for (const std::vector<std::string>& more : {data.categories, data.hash, DateColumns(data)})
      add(more, &listed);
    std::unique_ptr<InputBytes> again = listed.empty() ? nullptr : OpenInput(file->path(), kKey);
    if (again != nullptr) again->BeginsRecords(true);
    if (again != nullptr) rules.names = ExampleReader::NamesIn(std::move(again), listed);
  }
  rules.all_known = context.spec == nullptr && context.train == nullptr;
  rules.empty_is_gap = context.spec != nullptr || data.missing != MissingValues::kError;
  return std::make_unique<ExampleReader>(std::move(file), rules);
}

// The columns whose texts the fit of columns looks at.
void TakeTexts(const DataConfig& data, const CsvColumns& columns, CsvReader* reader) {
  if (!reader->names_columns()) return;
  for (const auto& [key, listed] :
       {std::pair("data.categories", data.categories), std::pair("data.dates", DateColumns(data)),
        std::pair("data.hash", data.hash)}) {
    for (const int64_t column : FindInputs(columns, listed, key, *reader)) reader->Take(column, false);
  }
  for (const std::string& item : data.bags) {
    const BagItem bag = ParseBag(item);
    reader->TakeList(FindInputs(columns, {bag.column}, "data.bags", *reader)[0], false);
    if (!bag.weights.empty())
      reader->TakeList(FindInputs(columns, {bag.weights}, "data.bags", *reader)[0], true);
  }
}

}  // namespace

std::unique_ptr<RowFile> OpenRowFile(const DataConfig& data, const RowContext& context,
                                     std::unique_ptr<InputBytes> file, SkippedRows* skipped) {
  const RowFormat format = FormatOf(data, context.spec, file.get());
  switch (format) {
    case RowFormat::kIdx:
      return OpenIdxFile(*context.spec, std::move(file), context.idx_labels, skipped);
    case RowFormat::kJsonLines:
      return OpenJsonFile(*context.spec, std::move(file), skipped);
    case RowFormat::kLines:
      return std::make_unique<SparseFile>(data, context, std::move(file), skipped);
    case RowFormat::kCsv:
    case RowFormat::kRecords:
      break;
  }
  std::unique_ptr<CsvReader> reader = format == RowFormat::kRecords
                                          ? OpenRecords(data, context, std::move(file))
                                          : OpenText(data, context.spec, std::move(file));
  if (context.spec != nullptr && !HasSparseRows(data)) {
    CsvLayout layout = FindModelColumns(*context.spec, reader.get());
    const bool named = !ColumnNames(context.spec->form).empty();
    if (!layout.first_is_row) NoteColumns(data, context.spec, layout.columns, named, skipped);
    return std::make_unique<CsvFile>(data, std::move(reader), std::move(layout), skipped);
  }
  bool is_row = false;
  const CsvColumns columns = ColumnsOf(data, context, reader.get(), &is_row);
  const char* const section = context.train != nullptr ? "data.test" : "data.train";
  if (context.train != nullptr && !is_row) {
    NoteColumns(data, context.spec, columns, !context.train->names.empty(), skipped);
  }
  if (context.records || !HasSparseRows(data)) {
    CsvLayout layout = LayoutOf(data, section, !is_row, columns, context.how);
    layout.records = context.records;
    layout.takes_numbers = !context.records || context.numbers;
    if (context.records) TakeTexts(data, columns, reader.get());
    return std::make_unique<CsvFile>(data, std::move(reader), std::move(layout), skipped);
  }
  return OpenHashedCsv(data, section, !is_row, std::move(reader), columns,
                       context.train != nullptr ? *context.train : columns, skipped,
                       context.spec != nullptr ? context.spec->names : nullptr);
}

RowFiles::RowFiles(const DataConfig& data, std::vector<InputColumn> how, int64_t inputs)
    : data_(data), files_(SourceFiles(data.train.path, kKey)) {
  context_.how = std::move(how);
  context_.inputs = inputs;
  SkippedRows none;
  const std::unique_ptr<RowFile> first = OpenRowFile(data_, context_, OpenInput(files_.front(), kKey), &none);
  columns_ = first->columns();
  inputs_ = first->inputs();
}

std::unique_ptr<RowFile> RowFiles::Open(size_t file, SkippedRows* skipped) const {
  RowContext context = context_;
  if (file > 0) {
    context.first = &columns_;
    context.first_path = files_.front();
  }
  return OpenRowFile(data_, context, OpenInput(files_[file], kKey), skipped);
}

}  // namespace dtrain
