#include "trainer/rows/csv_columns.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/names.h"
#include "trainer/batch/input_form.h"
#include "trainer/config/data_config.h"
#include "trainer/config/user_text.h"
#include "trainer/rows/csv_header.h"

namespace dtrain {
namespace {

constexpr size_t kMaxListed = 20;

std::string ListQuoted(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < names.size() && i < kMaxListed; ++i) shown.push_back(Quoted(Shown(names[i])));
  if (names.size() > kMaxListed) shown.push_back(fmt::format("{} more", names.size() - kMaxListed));
  return ListText(shown, "and");
}

}  // namespace

std::vector<std::string> HeaderNames(const CsvReader& reader) {
  std::vector<std::string> names;
  for (const CsvField& field : reader.fields()) {
    CheckName(reader.path(), field);
    names.emplace_back(field.text);
  }
  return names;
}

int64_t FindColumn(const CsvColumns& columns, const std::string& text, const std::string& key,
                   const CsvReader& reader) {
  const std::string name = ColumnNameIn(text);
  const auto found = std::find(columns.names.begin(), columns.names.end(), name);
  const bool named = found != columns.names.end();
  if (const std::optional<int64_t> number = ColumnNumber(text)) {
    if (named && found - columns.names.begin() != *number) {
      throw reader.FaultAtRecord(
          fmt::format("{} = {} is the name of column {} and the number of another one, {}. For the column of "
                      "this name write \"{}\" in quotes; for the other its own name.",
                      key, Shown(text), found - columns.names.begin(),
                      *number < columns.count ? Quoted(Shown(columns.names[static_cast<size_t>(*number)]))
                                              : "which is not there",
                      Shown(text)));
    }
    if (*number < columns.count) return *number;
    throw reader.FaultAtRecord(
        fmt::format("no column {} ({} = {}); the columns are 0 to {}. Set one of them.", Shown(text), key,
                    Shown(text), columns.count - 1));
  }
  if (!named) {
    const std::string closest = ClosestName(name, columns.names);
    throw reader.FaultAtRecord(fmt::format(
        "no column {} ({}); the columns are {}.{}", Quoted(Shown(name)), key,
        columns.names.empty() ? fmt::format("0 to {}, by number: the file has no header", columns.count - 1)
                              : ListQuoted(columns.names),
        name != text      ? fmt::format(" For the column of this number write {} without quotes.", name)
        : closest.empty() ? ""
                          : fmt::format(" Did you mean {}?", Quoted(Shown(closest)))));
  }
  if (std::find(found + 1, columns.names.end(), name) != columns.names.end()) {
    throw reader.FaultAtRecord(
        fmt::format("more than one column {} ({}); name one. Give its number: the first column is 0.",
                    Quoted(Shown(name)), key));
  }
  return found - columns.names.begin();
}

std::vector<int64_t> FindNames(const CsvColumns& columns, const std::vector<std::string>& names,
                               const CsvReader& reader, const std::string& known, const std::string& remedy) {
  std::map<std::string_view, int64_t> places;
  for (size_t i = 0; i < columns.names.size(); ++i) {
    places.emplace(columns.names[i], static_cast<int64_t>(i));
  }
  std::vector<int64_t> found;
  for (const std::string& name : names) {
    const auto place = places.find(name);
    if (place == places.end()) {
      const std::string closest = ClosestName(name, columns.names);
      throw reader.FaultAtRecord(
          fmt::format("no column {}{}.{} {}", Quoted(Shown(name)), known,
                      closest.empty() ? "" : fmt::format(" Is it {}?", Quoted(Shown(closest))), remedy));
    }
    found.push_back(place->second);
  }
  return found;
}

std::vector<int64_t> FindInputs(const CsvColumns& columns, const std::vector<std::string>& listed,
                                const std::string& key, const CsvReader& reader) {
  std::vector<int64_t> found;
  for (const std::string& text : listed) {
    const int64_t column = found.emplace_back(FindColumn(columns, text, key, reader));
    if (std::count(columns.inputs.begin(), columns.inputs.end(), column) > 0) continue;
    throw reader.FaultAtRecord(fmt::format("{} is in {} and {}; it is one of them. Take it out.",
                                           ColumnTitle(columns, column), key,
                                           column == columns.label    ? "the label"
                                           : column == columns.weight ? "data.weight"
                                           : column == columns.offset ? "data.offset"
                                                                      : "data.ignore"));
  }
  return found;
}

namespace {

// Returns where the inputs of the training file stand in one of as many columns, whose label may be another
// column: the columns beside the label are in the same order.
std::vector<int64_t> InputsBesideLabel(const CsvColumns& columns, const CsvColumns& train) {
  std::vector<int64_t> inputs;
  for (const int64_t input : train.inputs) {
    const int64_t place = input - (input > train.label ? 1 : 0);
    inputs.push_back(place + (place >= columns.label ? 1 : 0));
  }
  return inputs;
}

// Whether a column that is no input may be missing, as it is.
bool IsLeftOut(const CsvColumns& columns, const std::string& text, bool labels) {
  return !labels && !columns.names.empty() && !ColumnNumber(text) &&
         std::count(columns.names.begin(), columns.names.end(), ColumnNameIn(text)) == 0;
}

// Reads the first record: count, names and label. `names`: by which it is a header in any case.
CsvColumns ReadFirst(const DataSourceConfig& source, const std::string& section, CsvReader* reader,
                     bool labels, const std::vector<std::string>& names = {}) {
  if (!reader->Next()) {
    throw FaultAt(reader->path(), {1, 1},
                  fmt::format("no rows; {}.path must name a file with data. Fetch it anew.", section));
  }
  const bool header = source.header || HasNames(*reader, names);
  if (header) FitHeader(reader);
  CsvColumns columns;
  columns.count = static_cast<int64_t>(reader->fields().size());
  if (labels && columns.count < 2) {
    throw reader->FaultAtRecord(fmt::format(
        "1 column; a label and at least one feature are needed. Is it the right file?{}",
        reader->names_columns() ? ""
                                : " Commas, tabs, semicolons or bars separate the fields; if blanks do, set "
                                  "data.delimiter to blanks."));
  }
  if (header) {
    CheckHeader(*reader, source, section);
    columns.names = HeaderNames(*reader);
  }
  columns.label = IsLeftOut(columns, source.label, labels)
                      ? -1
                      : FindColumn(columns, source.label, section + ".label", *reader);
  return columns;
}

// Finds the columns of weights, if `weighs`, and of offsets. Rows need an offset also where they need no
// label.
void FindNumbers(const DataConfig& data, const CsvReader& reader, bool labels, bool weighs,
                 CsvColumns* columns) {
  weighs = weighs && !data.weight.empty() && !IsLeftOut(*columns, data.weight, labels);
  if (weighs) columns->weight = FindColumn(*columns, data.weight, "data.weight", reader);
  if (!data.offset.empty()) columns->offset = FindColumn(*columns, data.offset, "data.offset", reader);
  const auto check = [&](int64_t column, int64_t other, const char* roles) {
    if (column < 0 || column != other) return;
    throw reader.FaultAtRecord(fmt::format("{} is {}; it is one of them. Name another column.",
                                           ColumnTitle(*columns, column), roles));
  };
  check(columns->weight, columns->label, "the label and data.weight");
  check(columns->offset, columns->label, "the label and data.offset");
  check(columns->offset, columns->weight, "data.weight and data.offset");
}

// Throws for a column that is not there, of the keys that say how columns are written.
void CheckColumnTexts(const DataConfig& data, const CsvColumns& columns, const CsvReader& reader,
                      bool labels) {
  for (const auto& [key, items] : {std::pair("data.missing_values", &data.missing_values),
                                   std::pair("data.number_format", &data.number_format)}) {
    for (const std::string& item : *items) {
      const std::string column = ParseColumnItem(item).column;
      if (!column.empty() && !IsLeftOut(columns, column, labels)) FindColumn(columns, column, key, reader);
    }
  }
}

}  // namespace

void ReadAsWritten(const DataConfig& data, const CsvColumns& train, const CsvColumns& columns,
                   CsvReader* reader) {
  std::vector<FieldReading> readings;
  const auto add = [&](int64_t there, int64_t here) {
    if (there < 0 || here < 0) return;
    readings.push_back(
        ReadingOf(data, there, train.names.empty() ? "" : train.names[static_cast<size_t>(there)]));
    readings.back().column = here;
    if (readings.back().is_plain()) readings.pop_back();
  };
  const size_t inputs = std::min(train.inputs.size(), columns.inputs.size());
  for (size_t i = 0; i < inputs; ++i) add(train.inputs[i], columns.inputs[i]);
  add(train.label, columns.label);
  add(train.weight, columns.weight);
  add(train.offset, columns.offset);
  if (!readings.empty()) reader->ReadAs(std::move(readings));
}

CsvColumns ReadTrainColumns(const DataConfig& data, CsvReader* reader, bool labels) {
  CsvColumns columns = ReadFirst(data.train, "data.train", reader, labels);
  std::vector<bool> left_out(static_cast<size_t>(columns.count));
  if (columns.label >= 0) left_out[static_cast<size_t>(columns.label)] = true;
  FindNumbers(data, *reader, labels, true, &columns);
  for (const int64_t column : {columns.weight, columns.offset}) {
    if (column >= 0) left_out[static_cast<size_t>(column)] = true;
  }
  for (const std::string& text : data.ignore) {
    if (IsLeftOut(columns, text, labels)) continue;
    left_out[static_cast<size_t>(FindColumn(columns, text, "data.ignore", *reader))] = true;
  }
  for (int64_t column = 0; column < columns.count; ++column) {
    if (!left_out[static_cast<size_t>(column)]) columns.inputs.push_back(column);
  }
  if (columns.inputs.empty()) {
    throw reader->FaultAtRecord(
        "no column is left beside the label, data.weight, data.offset and data.ignore. Ignore fewer.");
  }
  if (!labels) columns.weight = -1;  // how much a row counts matters beside its label alone
  CheckColumnTexts(data, columns, *reader, labels);
  ReadAsWritten(data, columns, columns, reader);
  return columns;
}

CsvColumns ReadTestColumns(const DataConfig& data, const CsvColumns& train, CsvReader* reader, bool labels) {
  const std::string train_path = PathText(data.train);
  CsvColumns columns = ReadFirst(data.test, "data.test", reader, labels, train.names);
  FindNumbers(data, *reader, labels, labels, &columns);
  if (!columns.names.empty() && !train.names.empty() &&
      !std::equal(columns.names.begin(), columns.names.end(), train.names.begin(), train.names.end())) {
    columns.inputs = FindNames(columns, InputNames(train), *reader,
                               fmt::format(", which is in {}", train_path), "Name the columns as there.");
    ReadAsWritten(data, train, columns, reader);
    return columns;
  }
  if (columns.count != train.count) {
    throw reader->FaultAtRecord(fmt::format("{} columns; must be {}, as {} has. Name files of one kind.",
                                            columns.count, train.count, train_path));
  }
  columns.inputs = InputsBesideLabel(columns, train);
  ReadAsWritten(data, train, columns, reader);
  return columns;
}

namespace {

// Says which names a header has, or lacks, unlike the first one; empty: none.
std::string OtherNames(const std::vector<CsvField>& fields, const std::vector<std::string>& first) {
  if (first.empty()) return "";
  std::vector<std::string> names, more, fewer;
  for (const CsvField& field : fields) names.emplace_back(field.text);
  const auto lacks = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) == list.end();
  };
  std::copy_if(names.begin(), names.end(), std::back_inserter(more),
               [&](const std::string& name) { return lacks(first, name); });
  std::copy_if(first.begin(), first.end(), std::back_inserter(fewer),
               [&](const std::string& name) { return lacks(names, name); });
  std::string text = more.empty() ? "" : fmt::format(", without {}", ListQuoted(more));
  if (!fewer.empty()) text += fmt::format(", and {}", ListQuoted(fewer));
  return text;
}

}  // namespace

bool CheckNextFile(const CsvColumns& first, const std::string& first_path, CsvReader* reader) {
  if (!reader->Next()) return false;
  if (!first.names.empty()) FitHeader(reader);
  const std::vector<CsvField>& fields = reader->fields();
  if (const auto count = static_cast<int64_t>(fields.size());
      !IsWholeRow(fields, static_cast<size_t>(first.count))) {
    throw reader->FaultAtRecord(fmt::format("{}; must be {}, as {} has{}. Name files of one kind.",
                                            Plural(count, "column"), first.count, first_path,
                                            OtherNames(fields, first.names)));
  }
  for (size_t i = 0; i < first.names.size(); ++i) {
    if (fields[i].text == first.names[i]) continue;
    throw reader->FaultAtRecord(
        fmt::format("the column is {} and must be {}, as in {}: the files of a list are one table. "
                    "Give each file the same header.",
                    Quoted(Shown(std::string(fields[i].text))), Quoted(Shown(first.names[i])), first_path),
        static_cast<int64_t>(i));
  }
  return true;
}

std::vector<std::string> InputNames(const CsvColumns& columns) {
  std::vector<std::string> names;
  if (columns.names.empty()) return names;
  for (const int64_t input : columns.inputs) names.push_back(columns.names[static_cast<size_t>(input)]);
  return names;
}

std::string ColumnTitle(const CsvColumns& columns, int64_t column) {
  const bool named = !columns.names.empty() && !columns.names[static_cast<size_t>(column)].empty();
  if (named) return Shown(columns.names[static_cast<size_t>(column)]);
  return column == columns.label ? "the label" : fmt::format("column {}", column + 1);
}

}  // namespace dtrain
