// OpenCsvRows (row_formats.h).
#include <strings.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/names.h"
#include "trainer/config/config.h"
#include "trainer/config/user_text.h"
#include "trainer/rows/csv_table.h"
#include "trainer/rows/row_formats.h"

namespace dtrain {
namespace {

bool IsNumber(const CsvField& field, Decimal decimal) {
  float number = 0;
  const NumberText state = ParseNumber(field.text, decimal, &number);
  return state != NumberText::kNotANumber && state != NumberText::kEmpty;
}

// ColumnFinder: finds the columns of the model's features and of the label, from the file's first record.
class ColumnFinder {
 public:
  ColumnFinder(const RowSpec& spec, const CsvReader& reader)
      : spec_(spec),
        reader_(reader),
        names_(ColumnNames(spec.form)),
        inputs_(ColumnCount(spec.form, spec.inputs)) {}

  CsvLayout Find();

 private:
  bool LooksLikeHeader() const;
  bool IsNumber(const CsvField& field) const { return dtrain::IsNumber(field, reader_.decimal()); }
  bool IsClass(std::string_view text) const;
  void FindWeight();
  bool HasFeaturesInOrder(int64_t label) const;
  bool IsLabelName(const std::string& name) const;
  void FindByName();
  void CheckLabel() const;
  void FindByPosition();
  void NameColumns();
  int64_t LabelColumn() const;
  int64_t LabelPosition() const;

  const RowSpec& spec_;
  const CsvReader& reader_;
  const std::vector<std::string> names_;  // of the model's columns; empty: there are none
  const int64_t inputs_;                  // their number
  CsvLayout layout_;
};

CsvLayout ColumnFinder::Find() {
  layout_.pixels = spec_.pixels;
  layout_.how = spec_.form.columns;
  layout_.refuses_unseen = spec_.refuses_unseen;
  layout_.drops_gaps = spec_.data.missing == MissingValues::kDrop;
  layout_.columns.count = static_cast<int64_t>(reader_.fields().size());
  const bool header = spec_.header.value_or(LooksLikeHeader());
  if (header) layout_.columns.names = HeaderNames(reader_);
  layout_.first_is_row = !header;
  layout_.columns.label = LabelColumn();
  const bool by_name = header && !names_.empty() && !HasFeaturesInOrder(layout_.columns.label);
  by_name ? FindByName() : FindByPosition();
  if (spec_.labels && !spec_.weight.empty()) FindWeight();
  return std::move(layout_);
}

// Whether the record without column `label` (-1: the whole record) is the names of the features in the
// model's order. Features of one name are then told apart by their order.
bool ColumnFinder::HasFeaturesInOrder(int64_t label) const {
  const std::vector<CsvField>& fields = reader_.fields();
  const std::vector<std::string>& names = names_;
  if (names.empty() || fields.size() != names.size() + (label >= 0 ? 1 : 0)) return false;
  for (size_t i = 0; i < names.size(); ++i) {
    if (fields[i + (label >= 0 && i >= static_cast<size_t>(label) ? 1 : 0)].text != names[i]) return false;
  }
  return true;
}

// A row that is treated as a header is lost. So a header must have the label's name, or the names of all
// features, or no number. Names that are numbers differ from a row only by their order.
bool ColumnFinder::LooksLikeHeader() const {
  const std::vector<CsvField>& fields = reader_.fields();
  const std::vector<std::string>& names = names_;
  const auto is_there = [&](const std::string& name) {
    return std::any_of(fields.begin(), fields.end(), [&](const CsvField& f) { return f.text == name; });
  };
  const auto is_number = [&](const std::string& name) { return IsNumber({name, TextPlace(), false}); };
  const std::optional<int64_t> label = ColumnNumber(spec_.label);
  const auto is_label = [&](const CsvField& f) { return IsLabelName(std::string(f.text)); };
  if (!label && std::any_of(fields.begin(), fields.end(), is_label)) return true;
  const auto is_number_field = [&](const CsvField& field) { return IsNumber(field); };
  if (std::none_of(fields.begin(), fields.end(), is_number_field)) return true;
  if (std::all_of(names.begin(), names.end(), is_number)) {
    return HasFeaturesInOrder(-1) || (label && HasFeaturesInOrder(*label));
  }
  return std::all_of(names.begin(), names.end(), is_there);
}

// Whether a label says a class of the model, perhaps in another spelling.
bool ColumnFinder::IsClass(std::string_view text) const {
  const std::vector<std::string>& classes = spec_.form.classes;
  const auto renamed = spec_.renamed.find(text);
  const std::string_view name = renamed == spec_.renamed.end() ? text : renamed->second;
  if (classes == SignedClasses() && SignedClass(name)) return true;
  return std::find(classes.begin(), classes.end(), name) != classes.end();
}

// The rows are evaluated as they were trained on.
void ColumnFinder::FindWeight() {
  CsvColumns& columns = layout_.columns;
  const bool by_name = !columns.names.empty() && !layout_.first_is_row;
  const std::string name = ColumnNameIn(spec_.weight);
  const auto found = std::find(columns.names.begin(), columns.names.end(), name);
  const std::optional<int64_t> number = ColumnNumber(spec_.weight);
  if (by_name && found != columns.names.end()) {
    columns.weight = found - columns.names.begin();
  } else if (number && *number < columns.count && columns.count == spec_.form.table_columns) {
    columns.weight = *number;
  } else {
    throw FaultAt(
        reader_.path(), reader_.fields()[0].place,
        fmt::format("no column {}, which says how much each row counts (data.weight). Add it, or set "
                    "data.weight to null.",
                    Quoted(Shown(name))));
  }
}

// Training data of images has no label column; in a CSV file of images it is called "label".
bool ColumnFinder::IsLabelName(const std::string& name) const {
  return spec_.label.empty() ? strcasecmp(name.c_str(), "label") == 0 : name == ColumnNameIn(spec_.label);
}

// Returns -1 if there is none.
int64_t ColumnFinder::LabelColumn() const {
  if (const std::optional<int64_t> number = ColumnNumber(spec_.label)) {
    return layout_.columns.count > inputs_ && *number < layout_.columns.count ? *number : -1;
  }
  const auto found = std::find_if(layout_.columns.names.begin(), layout_.columns.names.end(),
                                  [&](const std::string& name) { return IsLabelName(name); });
  return found == layout_.columns.names.end() ? -1 : found - layout_.columns.names.begin();
}

void ColumnFinder::FindByName() {
  std::map<std::string, int64_t> places;
  for (int64_t i = 0; i < layout_.columns.count; ++i) {
    const auto [at, is_new] = places.emplace(layout_.columns.names[static_cast<size_t>(i)], i);
    if (is_new || !std::count(names_.begin(), names_.end(), at->first)) continue;
    throw FaultAt(reader_.path(), reader_.fields()[static_cast<size_t>(i)].place,
                  fmt::format("more than one column {}; a feature must have one. Remove the others.",
                              Quoted(Shown(at->first))));
  }
  for (const std::string& name : names_) {
    const auto found = places.find(name);
    if (found == places.end()) {
      const std::string closest = ClosestName(name, layout_.columns.names);
      throw FaultAt(reader_.path(), reader_.fields()[0].place,
                    fmt::format("no column {}; the model has this feature.{} {}", Quoted(Shown(name)),
                                closest.empty() ? "" : fmt::format(" Is it {}?", Quoted(Shown(closest))),
                                "Name the columns as the training data has them."));
    }
    layout_.columns.inputs.push_back(found->second);
  }
  if (spec_.labels &&
      std::count(layout_.columns.inputs.begin(), layout_.columns.inputs.end(), layout_.columns.label) > 0) {
    throw FaultAt(
        reader_.path(), reader_.fields()[static_cast<size_t>(layout_.columns.label)].place,
        fmt::format("column {} is the label ({}), and a feature of the model by its name. Order the "
                    "columns as the training data has them.",
                    Quoted(Shown(layout_.columns.names[static_cast<size_t>(layout_.columns.label)])),
                    Shown(spec_.label)));
  }
}

// Returns the label's column in a row with one column more than the model has features and without a name for
// it. A wrong choice would give wrong answers silently.
int64_t ColumnFinder::LabelPosition() const {
  const int64_t trained = spec_.form.label_column;
  if (trained >= 0 && trained < layout_.columns.count) return trained;
  const std::vector<CsvField>& fields = reader_.fields();
  const auto is_label = [&](const CsvField& field) {
    if (spec_.label.empty()) return !IsNumber(field);
    return IsClass(field.text);
  };
  const auto found = std::find_if(fields.begin(), fields.end(), is_label);
  if (layout_.first_is_row && found != fields.end()) return found - fields.begin();
  const bool named = !spec_.label.empty();
  throw FaultAt(
      reader_.path(), fields[0].place,
      fmt::format("{}, and the model has {}: the checkpoint does not say where the label{} stands. {}, or "
                  "leave out the label.",
                  Plural(layout_.columns.count, "column"), Plural(inputs_, "feature"),
                  named ? " " + Quoted(Shown(spec_.label)) : "",
                  named ? "Give a first line with the columns' names" : "Call it label in a first line"));
}

// Throws if the extra column is not the label's: a row number in front, for example, would shift the
// features.
void ColumnFinder::CheckLabel() const {
  const CsvField& field = reader_.fields()[static_cast<size_t>(layout_.columns.label)];
  const std::vector<std::string>& classes = spec_.form.classes;
  if (classes.empty() || field.text.empty()) return;
  if (IsClass(field.text)) return;
  throw FaultAt(
      reader_.path(), field.place,
      fmt::format("{} stands where the label does in the training data, and is no class of the model, "
                  "as {} is. Give a first line with the columns' names, or leave out the label.",
                  Quoted(Shown(std::string(field.text))), Quoted(Shown(classes.front()))));
}

// A file with all columns of the training data: those of the model stand where they did there, if the label
// does. Otherwise its columns are those of the model, in order, and perhaps the label.
void ColumnFinder::FindByPosition() {
  CsvColumns& columns = layout_.columns;
  const bool label_there = columns.label < 0 || columns.label == spec_.form.label_column;
  if (!spec_.form.columns.empty() && columns.count == spec_.form.table_columns && label_there) {
    columns.label = spec_.form.label_column;
    for (const InputColumn& column : spec_.form.columns) columns.inputs.push_back(column.column);
  } else {
    if (columns.label < 0 && columns.count == inputs_ + 1) columns.label = LabelPosition();
    if (columns.label >= 0 && columns.count == inputs_ + 1 && layout_.first_is_row && !spec_.labels)
      CheckLabel();
    const int64_t features = columns.count - (columns.label >= 0 ? 1 : 0);
    if (features != inputs_) {
      throw FaultAt(
          reader_.path(), reader_.fields()[0].place,
          fmt::format("{}{}; the model has {}, and a row may have a label besides. Is it the right "
                      "file?",
                      Plural(columns.count, "column"), columns.label >= 0 ? ", the label among them" : "",
                      Plural(inputs_, "feature")));
    }
    for (int64_t column = 0; column < columns.count; ++column) {
      if (column != columns.label) columns.inputs.push_back(column);
    }
  }
  if (layout_.first_is_row && !names_.empty()) NameColumns();
}

// Messages name the columns of a file without a header as the model names its features.
void ColumnFinder::NameColumns() {
  layout_.columns.names.resize(static_cast<size_t>(layout_.columns.count));
  for (size_t i = 0; i < layout_.columns.inputs.size(); ++i) {
    layout_.columns.names[static_cast<size_t>(layout_.columns.inputs[i])] = names_[i];
  }
}

class CsvRowReader : public RowReader {
 public:
  CsvRowReader(std::unique_ptr<InputBytes> file, const RowSpec& spec);

  RowFormat format() const override { return RowFormat::kCsv; }
  bool Next(RowBlock* block) override;
  void SkipFault() override { rows_->SkipFault(); }
  const SkippedRows& skipped() const override { return skipped_; }
  bool HasMore() const override { return rows_ && rows_->HasMore(); }
  std::vector<std::string> KeptNames() const override { return rows_ ? kept_names_ : spec_.keep; }

 private:
  void FindKept(bool has_names);
  void FindLabel(const CsvReader& reader);

  const RowSpec spec_;
  SkippedRows skipped_;
  std::optional<CsvFile> rows_;      // unset: the file has no rows
  std::optional<RowLabels> labels_;  // of the current row
  ParsedRows row_;
  std::vector<int64_t> kept_;  // columns
  std::vector<std::string> kept_names_;
};

CsvRowReader::CsvRowReader(std::unique_ptr<InputBytes> file, const RowSpec& spec) : spec_(spec) {
  auto reader = std::make_unique<CsvReader>(std::move(file), spec.dialect);
  if (!reader->Next()) return;
  CsvLayout layout = ColumnFinder(spec_, *reader).Find();
  const bool has_names = !layout.first_is_row;
  rows_.emplace(spec_.data, std::move(reader), std::move(layout), &skipped_);
  FindKept(has_names);
  if (spec_.labels) FindLabel(rows_->reader());
}

void CsvRowReader::FindKept(bool has_names) {
  for (const std::string& name : spec_.keep) {
    kept_.push_back(rows_->FindField(name));
    kept_names_.push_back(has_names ? rows_->columns().names[static_cast<size_t>(kept_.back())] : name);
  }
}

void CsvRowReader::FindLabel(const CsvReader& reader) {
  const CsvColumns& columns = rows_->columns();
  if (columns.label < 0) {
    throw FaultAt(
        reader.path(), reader.fields()[0].place,
        fmt::format("no column {}; rows are evaluated by their labels. Add it, or use dtrain predict.",
                    spec_.label.empty() ? "of labels" : Quoted(Shown(ColumnNameIn(spec_.label)))));
  }
  labels_.emplace(*spec_.labels, reader.path(), ColumnTitle(columns, columns.label), spec_.form.classes);
}

bool CsvRowReader::Next(RowBlock* block) {
  row_.Clear();
  if (!rows_ || !rows_->Next(&row_, labels_ ? &*labels_ : nullptr)) return false;
  for (size_t i = 0; i < row_.features.size(); ++i) {
    block->floats.push_back(Scaled(spec_, static_cast<int64_t>(i), row_.features[i]));
  }
  if (labels_) {
    for (const int32_t label : labels_->classes()) block->labels.push_back(label);
    for (const float target : labels_->targets()) block->targets.push_back(target);
    for (const float weight : row_.weights) block->weights.push_back(weight);
    labels_->Truncate(0);
  }
  for (const int64_t column : kept_) block->kept.push_back({std::string(rows_->Field(column))});
  block->ids.emplace_back();
  ++block->rows;
  return true;
}

}  // namespace

std::unique_ptr<RowReader> OpenCsvRows(std::unique_ptr<InputBytes> file, const RowSpec& spec) {
  return std::make_unique<CsvRowReader>(std::move(file), spec);
}

}  // namespace dtrain
