#include "trainer/rows/csv_rows.h"

#include <strings.h>

#include <algorithm>
#include <map>

#include "base/names.h"
#include "trainer/config/config.h"
#include "trainer/config/suggest.h"
#include "trainer/config/user_text.h"
#include "trainer/data/csv_number.h"
#include "trainer/data/csv_text.h"
#include "trainer/rows/feature_name.h"
#include "trainer/rows/scaled.h"

namespace dtrain {
namespace {

bool IsNumber(const CsvField& field) {
  float number = 0;
  const NumberText state = ParseNumber(field.text, &number);
  return state != NumberText::kNoNumber && state != NumberText::kEmpty;
}

}  // namespace

CsvRows::CsvRows(std::unique_ptr<InputBytes> file, const RowSpec& spec)
    : spec_(spec), reader_(std::move(file)) {
  if (!reader_.Next()) return;  // no rows
  FindColumns();
  if (!spec_.labels) return;
  if (columns_.label < 0) {
    throw CsvError(
        reader_.path(), reader_.fields()[0].place,
        fmt::format("no column {}; rows are evaluated by their labels. Add it, or use dtrain predict.",
                    spec_.label.empty() ? "of labels" : Quoted(Shown(spec_.label))));
  }
  labels_.emplace(*spec_.labels, reader_.path(), ColumnTitle(columns_, columns_.label), spec_.form.classes);
}

void CsvRows::FindColumns() {
  columns_.count = static_cast<int64_t>(reader_.fields().size());
  const bool header = spec_.header.value_or(LooksLikeHeader());
  if (header) columns_.names = HeaderNames(reader_);
  first_is_row_ = !header;
  columns_.label = LabelColumn();
  const bool by_name = header && !spec_.form.features.empty() && !HasFeaturesInOrder(columns_.label);
  by_name ? FindByName() : FindByPosition();
}

// Whether the record but its column `label`, -1: all of it, is the names of the features in the model's
// order. Two of one name are told apart by it.
bool CsvRows::HasFeaturesInOrder(int64_t label) const {
  const std::vector<CsvField>& fields = reader_.fields();
  const std::vector<std::string>& names = spec_.form.features;
  if (names.empty() || fields.size() != names.size() + (label >= 0 ? 1 : 0)) return false;
  for (size_t i = 0; i < names.size(); ++i) {
    if (fields[i + (label >= 0 && i >= static_cast<size_t>(label) ? 1 : 0)].text != names[i]) return false;
  }
  return true;
}

// A row that is taken for a header is lost, hence a header has the label's name, or those of all features, or
// nothing that is a number. Names that are numbers are told from a row only by their order.
bool CsvRows::LooksLikeHeader() const {
  const std::vector<CsvField>& fields = reader_.fields();
  const std::vector<std::string>& names = spec_.form.features;
  const auto is_there = [&](const std::string& name) {
    return std::any_of(fields.begin(), fields.end(), [&](const CsvField& f) { return f.text == name; });
  };
  const auto is_number = [](const std::string& name) { return IsNumber({name, CsvPlace(), false}); };
  const std::optional<int64_t> label = ColumnNumber(spec_.label);
  const auto is_label = [&](const CsvField& f) { return IsLabelName(std::string(f.text)); };
  if (!label && std::any_of(fields.begin(), fields.end(), is_label)) return true;
  if (std::none_of(fields.begin(), fields.end(), IsNumber)) return true;
  if (std::all_of(names.begin(), names.end(), is_number)) {
    return HasFeaturesInOrder(-1) || (label && HasFeaturesInOrder(*label));
  }
  return std::all_of(names.begin(), names.end(), is_there);
}

// Images have no column of labels. In a CSV file of such it is called so.
bool CsvRows::IsLabelName(const std::string& name) const {
  return spec_.label.empty() ? strcasecmp(name.c_str(), "label") == 0 : name == spec_.label;
}

// -1: none.
int64_t CsvRows::LabelColumn() const {
  if (const std::optional<int64_t> number = ColumnNumber(spec_.label)) {
    return columns_.count > spec_.inputs && *number < columns_.count ? *number : -1;
  }
  const auto found = std::find_if(columns_.names.begin(), columns_.names.end(),
                                  [&](const std::string& name) { return IsLabelName(name); });
  return found == columns_.names.end() ? -1 : found - columns_.names.begin();
}

void CsvRows::FindByName() {
  std::map<std::string, int64_t> places;
  for (int64_t i = 0; i < columns_.count; ++i) {
    const auto [at, is_new] = places.emplace(columns_.names[static_cast<size_t>(i)], i);
    if (is_new || !std::count(spec_.form.features.begin(), spec_.form.features.end(), at->first)) continue;
    throw CsvError(reader_.path(), reader_.fields()[static_cast<size_t>(i)].place,
                   fmt::format("more than one column {}; a feature must have one. Remove the others.",
                               Quoted(Shown(at->first))));
  }
  for (const std::string& name : spec_.form.features) {
    const auto found = places.find(name);
    if (found == places.end()) {
      const std::string closest = ClosestName(name, columns_.names);
      throw CsvError(reader_.path(), reader_.fields()[0].place,
                     fmt::format("no column {}; the model has this feature.{} {}", Quoted(Shown(name)),
                                 closest.empty() ? "" : fmt::format(" Is it {}?", Quoted(Shown(closest))),
                                 ColumnsRemedy(reader_, "Name the columns as the training data has them.")));
    }
    positions_.push_back(found->second);
  }
  if (spec_.labels && std::count(positions_.begin(), positions_.end(), columns_.label) > 0) {
    throw CsvError(
        reader_.path(), reader_.fields()[static_cast<size_t>(columns_.label)].place,
        fmt::format("column {} is the label ({}), and a feature of the model by its name. Order the "
                    "columns as the training data has them.",
                    Quoted(Shown(columns_.names[static_cast<size_t>(columns_.label)])), Shown(spec_.label)));
  }
}

// Of a row that has one column more than the model has features, and no name for it. To take a wrong one
// would be to answer with wrong numbers and no word.
int64_t CsvRows::LabelPosition() const {
  const int64_t trained = spec_.form.label_column;
  if (trained >= 0 && trained < columns_.count) return trained;
  const std::vector<CsvField>& fields = reader_.fields();
  const std::vector<std::string>& classes = spec_.form.classes;
  const auto is_label = [&](const CsvField& field) {
    if (spec_.label.empty()) return !IsNumber(field);
    return std::find(classes.begin(), classes.end(), field.text) != classes.end();
  };
  const auto found = std::find_if(fields.begin(), fields.end(), is_label);
  if (first_is_row_ && found != fields.end()) return found - fields.begin();
  const bool named = !spec_.label.empty();
  throw CsvError(
      reader_.path(), fields[0].place,
      fmt::format("{}, and the model has {}: the checkpoint does not say where the label{} stands. {}, or "
                  "leave out the label.",
                  Plural(columns_.count, "column"), Plural(spec_.inputs, "feature"),
                  named ? " " + Quoted(Shown(spec_.label)) : "",
                  named ? "Give a first line with the columns' names" : "Call it label in a first line"));
}

// A column that is not the label's, as a row's number before all others, would shift the features.
void CsvRows::CheckLabel() const {
  const CsvField& field = reader_.fields()[static_cast<size_t>(columns_.label)];
  const std::vector<std::string>& classes = spec_.form.classes;
  if (classes.empty() || field.text.empty()) return;
  if (std::find(classes.begin(), classes.end(), field.text) != classes.end()) return;
  throw CsvError(
      reader_.path(), field.place,
      fmt::format("{} stands where the label does in the training data, and is no class of the model, "
                  "as {} is. Give a first line with the columns' names, or leave out the label.",
                  Quoted(Shown(std::string(field.text))), Quoted(Shown(classes.front()))));
}

void CsvRows::FindByPosition() {
  if (columns_.label < 0 && columns_.count == spec_.inputs + 1) columns_.label = LabelPosition();
  if (columns_.label >= 0 && columns_.count == spec_.inputs + 1 && first_is_row_ && !spec_.labels)
    CheckLabel();
  const int64_t features = columns_.count - (columns_.label >= 0 ? 1 : 0);
  if (features != spec_.inputs) {
    throw CsvError(
        reader_.path(), reader_.fields()[0].place,
        fmt::format("{}{}; the model has {}, and a row may have a label besides. {}",
                    Plural(columns_.count, "column"), columns_.label >= 0 ? ", the label among them" : "",
                    Plural(spec_.inputs, "feature"), ColumnsRemedy(reader_, "Is it the right file?")));
  }
  for (int64_t i = 0; i < columns_.count; ++i) {
    if (i != columns_.label) positions_.push_back(i);
  }
}

void CsvRows::CheckWhole() const {
  const auto fields = static_cast<int64_t>(reader_.fields().size());
  if (fields == columns_.count) return;
  const CsvPlace place = fields < columns_.count
                             ? reader_.record_end()
                             : reader_.fields()[static_cast<size_t>(columns_.count)].place;
  throw CsvError(reader_.path(), place,
                 fmt::format("{}; must be {}, as in the first line. Correct the row, or remove it.",
                             Plural(fields, "field"), columns_.count));
}

float CsvRows::Feature(int64_t feature) const {
  const int64_t column = positions_[static_cast<size_t>(feature)];
  const CsvField& field = reader_.fields()[static_cast<size_t>(column)];
  float number = 0;
  const NumberText state = ParseNumber(field.text, &number);
  const bool pixel = !spec_.pixels || state != NumberText::kGood || IsPixel(number);
  if (state == NumberText::kGood && pixel) return Scaled(spec_, feature, number);
  const std::string name = FeatureName(spec_, feature);
  throw FieldError(reader_.path(), name.empty() ? ColumnTitle(columns_, column) : name, field,
                   fmt::format("{}. Correct it, or remove the row.", pixel ? NumberRule(state) : kPixelRule));
}

void CsvRows::AddLabel(RowBlock* block) {
  labels_->Add(reader_.fields()[static_cast<size_t>(columns_.label)]);
  for (const int32_t label : labels_->classes()) block->labels.push_back(label);
  for (const float target : labels_->targets()) block->targets.push_back(target);
  labels_->classes().clear();
  labels_->targets().clear();
}

bool CsvRows::Next(RowBlock* block) {
  if (!first_is_row_ && !reader_.Next()) return false;
  first_is_row_ = false;
  CheckWhole();
  for (int64_t i = 0; i < spec_.inputs; ++i) block->floats.push_back(Feature(i));
  if (labels_) AddLabel(block);
  block->ids.emplace_back();
  ++block->rows;
  return true;
}

}  // namespace dtrain
