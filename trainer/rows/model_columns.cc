#include "trainer/rows/model_columns.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/names.h"
#include "trainer/config/user_text.h"
#include "trainer/rows/csv_header.h"

namespace dtrain {
namespace {

// ColumnFinder: finds the columns of the model's features and of the label, from the file's first record.
class ColumnFinder {
 public:
  ColumnFinder(const RowSpec& spec, const CsvReader& reader)
      : spec_(spec),
        reader_(reader),
        names_(ColumnNames(spec.form)),
        inputs_(ColumnCount(spec.form, spec.inputs)) {
    AddLabelKeys(spec.data, &rules_);
  }

  CsvLayout Find() {
    layout_.pixels = spec_.pixels;
    layout_.how = spec_.form.columns;
    layout_.refuses_unseen = spec_.data.unseen == UnseenCategory::kError;
    layout_.drops_gaps = spec_.data.missing == MissingValues::kDrop;
    layout_.columns.count = static_cast<int64_t>(reader_.fields().size());
    const bool header = spec_.header.value_or(IsHeaderOf(reader_, names_, spec_.label));
    if (header) layout_.columns.names = HeaderNames(reader_);
    layout_.first_is_row = !header;
    layout_.columns.label = LabelColumn();
    const bool by_name =
        header && !names_.empty() && !HasNamesInOrder(reader_, names_, layout_.columns.label);
    by_name ? FindByName() : FindByPosition();
    if (!spec_.labels) return std::move(layout_);
    if (!spec_.data.weight.empty()) FindWeight();
    if (layout_.columns.label >= 0) return std::move(layout_);
    throw reader_.FaultAtRecord(
        fmt::format("no column {}; rows are evaluated by their labels. Add it, or use dtrain predict.",
                    spec_.label.empty() ? "of labels" : Quoted(Shown(ColumnNameIn(spec_.label)))));
  }

 private:
  // Whether a label says a class of the model, perhaps in another spelling.
  bool IsClass(std::string_view text) const {
    const std::vector<std::string>& classes = spec_.form.classes;
    const std::string_view name = RenamedLabel(rules_, text);
    if (classes == SignedClasses() && SignedClass(name)) return true;
    return std::find(classes.begin(), classes.end(), name) != classes.end();
  }

  // The rows are evaluated as they were trained on.
  void FindWeight() {
    CsvColumns& columns = layout_.columns;
    const bool by_name = !columns.names.empty() && !layout_.first_is_row;
    const std::string name = ColumnNameIn(spec_.data.weight);
    const auto found = std::find(columns.names.begin(), columns.names.end(), name);
    const std::optional<int64_t> number = ColumnNumber(spec_.data.weight);
    if (by_name && found != columns.names.end()) {
      columns.weight = found - columns.names.begin();
    } else if (number && *number < columns.count && columns.count == spec_.form.table_columns) {
      columns.weight = *number;
    } else {
      throw reader_.FaultAtRecord(
          fmt::format("no column {}, which says how much each row counts (data.weight). Add it, or set "
                      "data.weight to null.",
                      Quoted(Shown(name))));
    }
  }

  void FindByName() {
    std::set<std::string> seen;
    for (size_t i = 0; i < layout_.columns.names.size(); ++i) {
      const auto [name, is_new] = seen.insert(layout_.columns.names[i]);
      if (is_new || !std::count(names_.begin(), names_.end(), *name)) continue;
      throw FaultAt(reader_.path(), reader_.fields()[i].place,
                    fmt::format("more than one column {}; a feature must have one. Remove the others.",
                                Quoted(Shown(*name))));
    }
    layout_.columns.inputs = FindNames(layout_.columns, names_, reader_, "; the model has this feature",
                                       "Name the columns as the training data has them.");
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

  // Throws if the extra column is not the label's: a row number in front, for example, would shift the
  // features.
  void CheckLabel() const {
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
  void FindByPosition() {
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
        throw reader_.FaultAtRecord(
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
  void NameColumns() {
    layout_.columns.names.resize(static_cast<size_t>(layout_.columns.count));
    for (size_t i = 0; i < layout_.columns.inputs.size(); ++i) {
      layout_.columns.names[static_cast<size_t>(layout_.columns.inputs[i])] = names_[i];
    }
  }

  // Returns -1 if there is none.
  int64_t LabelColumn() const {
    if (const std::optional<int64_t> number = ColumnNumber(spec_.label)) {
      return layout_.columns.count > inputs_ && *number < layout_.columns.count ? *number : -1;
    }
    const auto found = std::find_if(layout_.columns.names.begin(), layout_.columns.names.end(),
                                    [&](const std::string& name) { return IsLabelName(name, spec_.label); });
    return found == layout_.columns.names.end() ? -1 : found - layout_.columns.names.begin();
  }

  // Returns the label's column in a row with one column more than the model has features and without a name
  // for it. A wrong choice would give wrong answers silently.
  int64_t LabelPosition() const {
    const int64_t trained = spec_.form.label_column;
    if (trained >= 0 && trained < layout_.columns.count) return trained;
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
                    Plural(layout_.columns.count, "column"), Plural(inputs_, "feature"),
                    named ? " " + Quoted(Shown(spec_.label)) : "",
                    named ? "Give a first line with the columns' names" : "Call it label in a first line"));
  }

  const RowSpec& spec_;
  const CsvReader& reader_;
  const std::vector<std::string> names_;  // of the model's columns; empty: there are none
  const int64_t inputs_;                  // their number
  LabelRules rules_;                      // how labels are spelled
  CsvLayout layout_;
};

}  // namespace

CsvLayout FindModelColumns(const RowSpec& spec, CsvReader* reader) {
  if (reader->Next()) return ColumnFinder(spec, *reader).Find();
  CsvLayout none;
  none.columns.label = -1;
  return none;
}

}  // namespace dtrain
