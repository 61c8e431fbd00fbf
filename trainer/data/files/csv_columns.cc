#include "trainer/data/files/csv_columns.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/names.h"
#include "trainer/config/user_text.h"
#include "trainer/data/files/csv_reader.h"
#include "trainer/data/files/input_form.h"

namespace dtrain {
namespace {

constexpr size_t kMaxListed = 20;

std::string ListQuoted(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < names.size() && i < kMaxListed; ++i) shown.push_back(Quoted(Shown(names[i])));
  if (names.size() > kMaxListed) shown.push_back(fmt::format("{} more", names.size() - kMaxListed));
  return ListText(shown, "and");
}

void CheckCount(const CsvReader& reader, int64_t count) {
  if (count >= 2) return;
  throw CsvError(reader.path(), reader.fields()[0].place,
                 "1 column; a label and at least one feature are needed. Is it the right file? Commas, tabs, "
                 "semicolons or bars separate the fields (data.delimiter).");
}

bool IsGood(const CsvReader& reader, int64_t column, float* number) {
  const std::string_view text = reader.fields()[static_cast<size_t>(column)].text;
  return ParseNumber(text, reader.decimal(), number) == NumberText::kGood;
}

// Returns the column of a label given by number, if its text in the first row is a name of a header or of a
// class; else -1.
int64_t TextLabel(const CsvReader& reader, const std::string& label) {
  const std::optional<int64_t> column = ColumnNumber(label);
  if (!column || *column >= static_cast<int64_t>(reader.fields().size())) return -1;
  float ignored = 0;
  return IsGood(reader, *column, &ignored) ? -1 : *column;
}

// Throws if the first row is all numbers, which would be lost as a header. Headers of numbers count on: 0, 1,
// 2. Beside a label with a text name they count from 0 or 1 and may count or skip the label.
void CheckHeader(const CsvReader& reader, const DataSourceConfig& source, const std::string& section) {
  const int64_t label = TextLabel(reader, source.label);
  float before = -1;
  bool counting = true;
  for (int64_t i = 0; i < static_cast<int64_t>(reader.fields().size()); ++i) {
    if (i == label) continue;
    float number = 0;
    if (!IsGood(reader, i, &number)) return;
    const bool any = i == 0 && label < 0, may_skip = i == 0 || i == label + 1;
    counting = counting && (any || number == before + 1 || (may_skip && number == before + 2));
    before = number;
  }
  if (counting) return;
  throw CsvError(
      reader.path(), reader.fields()[0].place,
      fmt::format("the header has only numbers{}; it must name the columns. If the file has no header, set "
                  "{}.header to false.{}",
                  label < 0 ? "" : " beside the label", section,
                  label < 0 ? "" : fmt::format(" If it has one, give {}.label as a name.", section)));
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
  const auto refuse = [&](const std::string& why) {
    return CsvError(reader.path(), reader.fields()[0].place, why);
  };
  const std::string name = ColumnNameIn(text);
  const auto found = std::find(columns.names.begin(), columns.names.end(), name);
  const bool named = found != columns.names.end();
  if (const std::optional<int64_t> number = ColumnNumber(text)) {
    if (named && found - columns.names.begin() != *number) {
      throw refuse(
          fmt::format("{} = {} is the name of column {} and the number of another one, {}. For the column of "
                      "this name write \"{}\" in quotes; for the other its own name.",
                      key, Shown(text), found - columns.names.begin(),
                      *number < columns.count ? Quoted(Shown(columns.names[static_cast<size_t>(*number)]))
                                              : "which is not there",
                      Shown(text)));
    }
    if (*number < columns.count) return *number;
    throw refuse(fmt::format("no column {} ({} = {}); the columns are 0 to {}. Set one of them.", Shown(text),
                             key, Shown(text), columns.count - 1));
  }
  if (!named) {
    const std::string closest = ClosestName(name, columns.names);
    throw refuse(fmt::format(
        "no column {} ({}); the columns are {}.{}", Quoted(Shown(name)), key,
        columns.names.empty() ? fmt::format("0 to {}, by number: the file has no header", columns.count - 1)
                              : ListQuoted(columns.names),
        name != text      ? fmt::format(" For the column of this number write {} without quotes.", name)
        : closest.empty() ? ""
                          : fmt::format(" Did you mean {}?", Quoted(Shown(closest)))));
  }
  if (std::find(found + 1, columns.names.end(), name) != columns.names.end()) {
    throw refuse(
        fmt::format("more than one column {} ({}); name one. Give its number: the first column is 0.",
                    Quoted(Shown(name)), key));
  }
  return found - columns.names.begin();
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

// Reads the first record: count, names and label.
CsvColumns ReadFirst(const DataSourceConfig& source, const std::string& section, CsvReader* reader) {
  if (!reader->Next()) {
    throw CsvError(reader->path(), {1, 1},
                   fmt::format("no rows; {}.path must name a file with data. Fetch it anew.", section));
  }
  CsvColumns columns;
  columns.count = static_cast<int64_t>(reader->fields().size());
  CheckCount(*reader, columns.count);
  if (source.header) {
    CheckHeader(*reader, source, section);
    columns.names = HeaderNames(*reader);
  }
  columns.label = FindColumn(columns, source.label, section + ".label", *reader);
  return columns;
}

void FindWeight(const DataConfig& data, const CsvReader& reader, CsvColumns* columns) {
  if (data.weight.empty()) return;
  columns->weight = FindColumn(*columns, data.weight, "data.weight", reader);
  if (columns->weight != columns->label) return;
  throw CsvError(reader.path(), reader.fields()[0].place,
                 fmt::format("{} is the label and data.weight; it is one of them. Name another column.",
                             ColumnTitle(*columns, columns->label)));
}

}  // namespace

CsvColumns ReadTrainColumns(const DataConfig& data, CsvReader* reader) {
  CsvColumns columns = ReadFirst(data.train, "data.train", reader);
  std::vector<bool> left_out(static_cast<size_t>(columns.count));
  left_out[static_cast<size_t>(columns.label)] = true;
  FindWeight(data, *reader, &columns);
  if (columns.weight >= 0) left_out[static_cast<size_t>(columns.weight)] = true;
  for (const std::string& text : data.ignore) {
    left_out[static_cast<size_t>(FindColumn(columns, text, "data.ignore", *reader))] = true;
  }
  for (int64_t column = 0; column < columns.count; ++column) {
    if (!left_out[static_cast<size_t>(column)]) columns.inputs.push_back(column);
  }
  if (columns.inputs.empty()) {
    throw CsvError(reader->path(), reader->fields()[0].place,
                   "no column is left beside the label, data.weight and data.ignore. Ignore fewer.");
  }
  return columns;
}

CsvColumns ReadTestColumns(const DataConfig& data, const CsvColumns& train, CsvReader* reader) {
  const std::string train_path = PathText(data.train);
  CsvColumns columns = ReadFirst(data.test, "data.test", reader);
  FindWeight(data, *reader, &columns);
  if (!columns.names.empty() && !train.names.empty() &&
      !std::equal(columns.names.begin(), columns.names.end(), train.names.begin(), train.names.end())) {
    for (const int64_t input : train.inputs) {
      const std::string& name = train.names[static_cast<size_t>(input)];
      const auto found = std::find(columns.names.begin(), columns.names.end(), name);
      if (found == columns.names.end()) {
        const std::string closest = ClosestName(name, columns.names);
        throw CsvError(reader->path(), reader->fields()[0].place,
                       fmt::format("no column {}, which is in {}.{} Name the columns as there.",
                                   Quoted(Shown(name)), train_path,
                                   closest.empty() ? "" : fmt::format(" Is it {}?", Quoted(Shown(closest)))));
      }
      columns.inputs.push_back(found - columns.names.begin());
    }
    return columns;
  }
  if (columns.count != train.count) {
    throw CsvError(reader->path(), reader->fields()[0].place,
                   fmt::format("{} columns; must be {}, as {} has. Name files of one kind.", columns.count,
                               train.count, train_path));
  }
  columns.inputs = InputsBesideLabel(columns, train);
  return columns;
}

void CheckNextFile(const CsvColumns& first, const std::string& first_path, CsvReader* reader) {
  if (!reader->Next()) {
    throw CsvError(
        reader->path(), {1, 1},
        fmt::format("no rows; it must have the columns of {}. Fetch it anew, or leave it out.", first_path));
  }
  const std::vector<CsvField>& fields = reader->fields();
  if (static_cast<int64_t>(fields.size()) != first.count) {
    throw CsvError(
        reader->path(), fields[0].place,
        fmt::format("{}; must be {}, as {} has. Name files of one kind.",
                    Plural(static_cast<int64_t>(fields.size()), "column"), first.count, first_path));
  }
  for (size_t i = 0; i < first.names.size(); ++i) {
    if (fields[i].text == first.names[i]) continue;
    throw CsvError(
        reader->path(), fields[i].place,
        fmt::format("the column is {} and must be {}, as in {}: the files of a list are one table. "
                    "Give each file the same header.",
                    Quoted(Shown(std::string(fields[i].text))), Quoted(Shown(first.names[i])), first_path));
  }
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

CsvLabels::CsvLabels(const LabelRules& rules, std::string path, std::string title)
    : rules_(rules), path_(std::move(path)), title_(std::move(title)) {
  if (!rules_.classes.has_value()) kind_ = Kind::kTargets;
}

CsvLabels::CsvLabels(const LabelRules& rules, std::string path, std::string title,
                     const std::vector<std::string>& train_names)
    : rules_(rules),
      path_(std::move(path)),
      title_(std::move(title)),
      is_test_(true),
      kind_(!rules.classes.has_value() ? Kind::kTargets
            : train_names.empty()      ? Kind::kNumbers
                                       : Kind::kNames),
      names_(train_names) {
  for (size_t i = 0; i < names_.size(); ++i) number_[names_[i]] = static_cast<int32_t>(i);
}

void CsvLabels::Reserve(size_t rows) {
  kind_ == Kind::kTargets ? targets_.reserve(rows) : classes_.reserve(rows);
}

void CsvLabels::Add(const CsvField& field) {
  const auto renamed = rules_.renamed.find(field.text);
  if (renamed == rules_.renamed.end()) return AddRenamed(field);
  CsvField other = field;
  other.text = renamed->second;
  AddRenamed(other);
}

void CsvLabels::AddRenamed(const CsvField& field) {
  if (kind_ == Kind::kTargets) return AddTarget(field);
  if (IsMissing(field.text)) {
    const std::string rename =
        field.text.empty()
            ? ""
            : fmt::format(" If it is a class, name it otherwise: data.rename_labels: [\"{} -> none\"].",
                          field.text);
    Refuse(field, "must be a class. Correct it, remove the row, or set data.bad_rows to skip." + rename);
  }
  if (kind_ == Kind::kUnknown) {
    first_ = field.text;
    kind_ = IsName(field) ? Kind::kNames : Kind::kNumbers;
  }
  kind_ == Kind::kNames ? AddName(field) : AddNumber(field);
}

// Classes are digits, whatever separates decimals.
bool CsvLabels::IsName(const CsvField& field) const {
  float number = 0;
  return rules_.names || ParseNumber(field.text, &number) == NumberText::kNotANumber;
}

void CsvLabels::AddTarget(const CsvField& field) {
  float number = 0;
  const NumberText state = ParseNumber(field.text, rules_.decimal, &number);
  if (state != NumberText::kGood) {
    Refuse(field, fmt::format("{} ({}). Correct it, or remove the row.", NumberRule(state), rules_.source));
  }
  targets_.push_back(number);
}

// Two classes may be -1 and +1, in all rows.
void CsvLabels::AddNumber(const CsvField& field) {
  const bool minus = *rules_.classes == 2 && field.text.size() > 1 && field.text.front() == '-' &&
                     ClassNumber(field.text.substr(1), 2) == 1;
  const std::optional<int32_t> number = minus ? 0 : ClassNumber(field.text, *rules_.classes);
  if (number == 0 && first_class_is_minus_.value_or(minus) != minus) {
    Refuse(field,
           "must be as in the rows before: two classes are 0 and 1, or -1 and 1. Correct it, or remove the "
           "row.");
  }
  if (number == 0) first_class_is_minus_ = minus;
  if (!number.has_value())
    Refuse(field, IsName(field) ? KindRule("a number") : LabelRangeRule(rules_, field.text));
  classes_.push_back(*number);
}

void CsvLabels::AddName(const CsvField& field) {
  const auto found = number_.find(field.text);
  if (found != number_.end()) {
    classes_.push_back(found->second);
    return;
  }
  if (!IsName(field)) Refuse(field, KindRule("a name"));
  CheckName(path_, field);
  if (is_test_ || static_cast<int64_t>(names_.size()) == *rules_.classes) RefuseNewName(field);
  classes_.push_back(static_cast<int32_t>(names_.size()));
  number_.emplace(field.text, classes_.back());
  names_.emplace_back(field.text);
}

// Returns the rule for a name among numbers, or a number among names.
std::string CsvLabels::KindRule(const char* kind) const {
  const std::string others =
      is_test_ ? "the labels of data.train are" : fmt::format("the first label, {}, is", Shown(first_));
  return fmt::format(
      "must be {}, as {}: classes are numbers in all rows, or names in all. Set data.label_type to names if "
      "numbers are names, too; otherwise correct it, or remove the row.",
      kind, others);
}

void CsvLabels::Refuse(const CsvField& field, const std::string& rule) const {
  throw FieldError(path_, title_, field, rule);
}

void CsvLabels::RefuseNewName(const CsvField& field) const {
  const std::string closest = ClosestName(std::string(field.text), names_);
  const std::string meant = closest.empty() ? "" : fmt::format(" Did you mean {}?", Shown(closest));
  if (is_test_) {
    Refuse(field, fmt::format("must be a class of data.train: {}.{}", ListNames(names_, "or"), meant));
  }
  Refuse(field, fmt::format("must be one of {} classes ({}); before it came {}.{} Correct it, {}, or "
                            "remove the row.",
                            *rules_.classes, rules_.source, ListNames(names_, "and"), meant, rules_.remedy));
}

void CsvLabels::Truncate(size_t rows) {
  if (classes_.size() > rows) classes_.resize(rows);
  if (targets_.size() > rows) targets_.resize(rows);
}

void CsvLabels::Finish() {
  if (is_test_ || names_.empty()) return;
  std::sort(names_.begin(), names_.end());
  std::vector<int32_t> sorted(names_.size());  // new number by old number
  for (size_t i = 0; i < names_.size(); ++i) {
    sorted[static_cast<size_t>(number_[names_[i]])] = static_cast<int32_t>(i);
  }
  for (int32_t& label : classes_) label = sorted[static_cast<size_t>(label)];
}

}  // namespace dtrain
