// FindModelColumns() (row_files.h).
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/names.h"
#include "trainer/batch/class_names.h"
#include "trainer/config/user_text.h"
#include "trainer/rows/csv_header.h"
#include "trainer/rows/row_files.h"

namespace dtrain {
namespace {

constexpr char kWeight[] = "data.weight";

// ColumnFinder: finds the columns of the model's features and of the label, from the file's first record.
class ColumnFinder {
 public:
  ColumnFinder(const RowSpec& spec, CsvReader* reader)
      : spec_(spec),
        reader_(*reader),
        names_(ColumnNames(spec.form)),
        inputs_(ColumnCount(spec.form, spec.inputs)) {
    AddLabelKeys(spec.data, &rules_);
  }

  CsvLayout Find() {
    layout_.pixels = spec_.pixels;
    layout_.how = spec_.form.columns;
    layout_.refuses_unseen = spec_.data.unseen == UnseenCategory::kError;
    layout_.drops_gaps = spec_.data.missing == MissingValues::kDrop;
    const bool has_names = spec_.header ? *spec_.header || HasNames(reader_, names_)
                                        : IsHeaderOf(reader_, spec_.form, spec_.label);
    const bool header = has_names || reader_.names_columns() || CanBeNoRow();
    if (header) FitHeader(&reader_);
    columns_.count = static_cast<int64_t>(reader_.fields().size());
    if (header) columns_.names = HeaderNames(reader_);
    layout_.first_is_row = !header;
    columns_.label = LabelColumn();
    const bool by_name = header && !names_.empty() && !HasNamesInOrder(reader_, names_, columns_.label);
    by_name ? FindByName() : FindByPosition();
    if (!spec_.data.offset.empty())
      columns_.offset =
          FindNumber("data.offset", spec_.data.offset, "what is added to the output of each row");
    if (!spec_.labels) return std::move(layout_);
    // The rows are evaluated as they were trained on.
    if (!spec_.data.weight.empty())
      columns_.weight = FindNumber(kWeight, spec_.data.weight, "how much each row counts");
    if (columns_.label >= 0) return std::move(layout_);
    throw reader_.FaultAtRecord(
        fmt::format("no column {}; rows are evaluated by their labels. Add it, or use dtrain predict.",
                    spec_.label.empty() ? "of labels" : Quoted(Shown(ColumnNameIn(spec_.label)))));
  }

 private:
  // Whether the first record cannot be a row of a model without names: all its fields are texts, and the
  // model has numbers, as they are written in plain files.
  bool CanBeNoRow() const {
    const DataConfig& data = spec_.data;
    const std::vector<InputColumn>& columns = spec_.form.columns;
    const bool is_plain = data.number_format.empty() && data.missing_values.empty();
    if (!names_.empty() || !is_plain || HashesColumns(data)) return false;
    const auto is_number = [](const InputColumn& c) { return !c.is_category && !c.is_date; };
    const auto is_text = [&](const CsvField& field) {
      return !IsMissing(field.text) && !ExactNumber(field.text, reader_.decimal());
    };
    return (columns.empty() || std::any_of(columns.begin(), columns.end(), is_number)) &&
           std::all_of(reader_.fields().begin(), reader_.fields().end(), is_text);
  }

  // Whether a label says a class of the model, perhaps in another spelling.
  bool IsClass(std::string_view text) const {
    return FindClass(spec_.form.classes, RenamedLabel(rules_, text)).has_value();
  }

  // Returns the column of `key`, `text` in the config, which is no input.
  int64_t FindNumber(const char* key, const std::string& text, const char* what) const {
    const bool by_name = !columns_.names.empty() && !layout_.first_is_row;
    const std::string name = ColumnNameIn(text);
    const auto found = std::find(columns_.names.begin(), columns_.names.end(), name);
    const std::optional<int64_t> number = ColumnNumber(text);
    if (by_name && found != columns_.names.end()) return found - columns_.names.begin();
    if (number && *number < columns_.count && columns_.count == spec_.form.table_columns) return *number;
    throw reader_.FaultAtRecord(
        fmt::format("no column {}, which says {} ({}). Add it", Quoted(Shown(name)), what, key) +
        (key == kWeight ? ", or set data.weight to null." : "."));
  }

  // Where the label and the columns of the model stand as in the training data, others may have their names.
  void FindByName() {
    const std::vector<InputColumn>& trained = spec_.form.columns;
    const auto is_there = [&](const InputColumn& column) {
      return columns_.names[static_cast<size_t>(column.column)] == column.name;
    };
    const bool in_place = !trained.empty() && columns_.count == spec_.form.table_columns &&
                          columns_.label == spec_.form.label_column &&
                          std::all_of(trained.begin(), trained.end(), is_there);
    std::set<std::string> seen;
    for (size_t i = 0; i < columns_.names.size(); ++i) {
      const auto [name, is_new] = seen.insert(columns_.names[i]);
      if (in_place || is_new || !std::count(names_.begin(), names_.end(), *name)) continue;
      throw reader_.FaultAtRecord(
          fmt::format("more than one column {}; a feature must have one. Remove the others.",
                      Quoted(Shown(*name))),
          static_cast<int64_t>(i));
    }
    columns_.inputs = FindNames(columns_, names_, reader_, "; the model has this feature",
                                "Name the columns as the training data has them.");
    for (size_t i = 0; in_place && i < trained.size(); ++i) columns_.inputs[i] = trained[i].column;
    if (spec_.labels && std::count(columns_.inputs.begin(), columns_.inputs.end(), columns_.label) > 0) {
      throw reader_.FaultAtRecord(
          fmt::format("column {} is the label ({}), and a feature of the model by its name. Order the "
                      "columns as the training data has them.",
                      Quoted(Shown(columns_.names[static_cast<size_t>(columns_.label)])), Shown(spec_.label)),
          columns_.label);
    }
  }

  // Throws if the extra column is not the label's: a row number in front, for example, would shift the
  // features.
  void CheckLabel() const {
    const CsvField& field = reader_.fields()[static_cast<size_t>(columns_.label)];
    const std::vector<std::string>& classes = spec_.form.classes;
    if (classes.empty() || field.text.empty() || IsClass(field.text)) return;
    throw reader_.FaultAtRecord(
        fmt::format("{} stands where the label does in the training data, and is no class of the model, as "
                    "{} is. Give a first line with the columns' names, or leave out the label.",
                    Quoted(Shown(std::string(field.text))), Quoted(Shown(classes.front()))),
        columns_.label);
  }

  // An offset beside features in order could as well be the label.
  void CheckOffset() const {
    const int64_t all = spec_.form.table_columns;
    if (spec_.data.offset.empty() || !layout_.first_is_row || all == 0 || columns_.count == all) return;
    throw reader_.FaultAtRecord(fmt::format(
        "{}; without names a row must have the {} of the training data, that of data.offset among them. Put "
        "anything in the place of the label{}.",
        Plural(columns_.count, "column"), all,
        names_.empty() ? "" : ", or give a first line with the columns' names"));
  }

  // A file with all columns of the training data: those of the model stand where they did there, if the label
  // does. Otherwise its columns are those of the model, in order, and perhaps the label.
  void FindByPosition() {
    const bool label_there = columns_.label < 0 || columns_.label == spec_.form.label_column;
    if (!spec_.form.columns.empty() && columns_.count == spec_.form.table_columns && label_there) {
      columns_.label = spec_.form.label_column;
      for (const InputColumn& column : spec_.form.columns) columns_.inputs.push_back(column.column);
    } else {
      CheckOffset();
      if (columns_.label < 0 && columns_.count == inputs_ + 1) columns_.label = LabelPosition();
      if (columns_.label >= 0 && columns_.count == inputs_ + 1 && layout_.first_is_row && !spec_.labels)
        CheckLabel();
      const int64_t features = columns_.count - (columns_.label >= 0 ? 1 : 0);
      if (features != inputs_) {
        throw reader_.FaultAtRecord(
            fmt::format("{}{}; the model has {}, and a row may have a label besides. Is it the right file?",
                        Plural(columns_.count, "column"), columns_.label >= 0 ? ", the label among them" : "",
                        Plural(inputs_, "feature")));
      }
      for (int64_t column = 0; column < columns_.count; ++column) {
        if (column != columns_.label) columns_.inputs.push_back(column);
      }
    }
    if (layout_.first_is_row && !names_.empty()) NameColumns();
  }

  // Messages name the columns of a file without a header as the model names its features.
  void NameColumns() {
    columns_.names.resize(static_cast<size_t>(columns_.count));
    for (size_t i = 0; i < columns_.inputs.size(); ++i) {
      columns_.names[static_cast<size_t>(columns_.inputs[i])] = names_[i];
    }
  }

  // Returns -1 if there is none.
  int64_t LabelColumn() const {
    if (const std::optional<int64_t> number = ColumnNumber(spec_.label)) {
      return columns_.count > inputs_ && *number < columns_.count ? *number : -1;
    }
    const auto found = std::find_if(columns_.names.begin(), columns_.names.end(),
                                    [&](const std::string& name) { return IsLabelName(name, spec_.label); });
    return found == columns_.names.end() ? -1 : found - columns_.names.begin();
  }

  // Returns the label's column in a row with one column more than the model has features and without a name
  // for it. A wrong choice would give wrong answers silently.
  int64_t LabelPosition() const {
    const int64_t trained = spec_.form.label_column;
    if (trained >= 0 && trained < columns_.count) return trained;
    const std::vector<CsvField>& fields = reader_.fields();
    const auto is_label = [&](const CsvField& field) {
      if (spec_.label.empty()) return !ExactNumber(field.text, reader_.decimal());
      return IsClass(field.text);
    };
    const auto found = std::find_if(fields.begin(), fields.end(), is_label);
    if (layout_.first_is_row && found != fields.end()) return found - fields.begin();
    const bool named = !spec_.label.empty();
    throw reader_.FaultAtRecord(
        fmt::format("{}, and the model has {}: the checkpoint does not say where the label{} stands. {}, or "
                    "leave out the label.",
                    Plural(columns_.count, "column"), Plural(inputs_, "feature"),
                    named ? " " + Quoted(Shown(spec_.label)) : "",
                    named ? "Give a first line with the columns' names" : "Call it label in a first line"));
  }

  const RowSpec& spec_;
  CsvReader& reader_;
  const std::vector<std::string> names_;  // of the model's columns; empty: there are none
  const int64_t inputs_;                  // their number
  LabelRules rules_;                      // how labels are spelled
  CsvLayout layout_;
  CsvColumns& columns_ = layout_.columns;
};

// The columns of the training data, as far as a checkpoint and the names in this file tell them.
CsvColumns TrainColumns(const RowSpec& spec, const CsvColumns& here) {
  CsvColumns train;
  const auto name = [&](int64_t column, const std::string& as) {
    if (column < 0) return;
    if (static_cast<int64_t>(train.names.size()) <= column)
      train.names.resize(static_cast<size_t>(column) + 1);
    train.names[static_cast<size_t>(column)] = as;
  };
  for (const InputColumn& column : spec.form.columns) {
    train.inputs.push_back(column.column);
    name(column.column, column.name);
  }
  const bool named = here.label >= 0 && !here.names.empty() && ColumnNumber(spec.label);
  train.label = spec.form.label_column;
  name(train.label, named ? here.names[static_cast<size_t>(here.label)] : ColumnNameIn(spec.label));
  const auto add = [&](int64_t here_at, const std::string& text, int64_t* column) {
    if (here_at < 0) return;
    *column = ColumnNumber(text).value_or(static_cast<int64_t>(train.names.size()));
    name(*column, ColumnNameIn(text));
  };
  add(here.weight, spec.data.weight, &train.weight);
  add(here.offset, spec.data.offset, &train.offset);
  return train;
}

}  // namespace

CsvLayout FindModelColumns(const RowSpec& spec, CsvReader* reader) {
  if (reader->Next()) {
    CsvLayout layout = ColumnFinder(spec, reader).Find();
    ReadAsWritten(spec.data, TrainColumns(spec, layout.columns), layout.columns, reader);
    return layout;
  }
  CsvLayout none;
  none.columns.label = -1;
  return none;
}

}  // namespace dtrain
