#include "trainer/rows/csv_rows.h"

#include <algorithm>
#include <map>

#include "base/plural.h"
#include "trainer/config/config.h"
#include "trainer/config/suggest.h"
#include "trainer/config/user_text.h"
#include "trainer/data/csv_number.h"
#include "trainer/rows/scaled.h"

namespace dtrain {
namespace {

bool IsNumber(const CsvField& field) {
  float number = 0;
  return ParseNumber(field.text, &number) == NumberText::kGood;
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
  if (header) {
    for (const CsvField& field : reader_.fields()) columns_.names.emplace_back(field.text);
  }
  first_is_row_ = !header;
  columns_.label = LabelColumn();
  header && !spec_.form.features.empty() ? FindByName() : FindByPosition();
}

// Names of the model's columns, or anything that is no number; but in a row the label may be a name.
bool CsvRows::LooksLikeHeader() const {
  const std::vector<CsvField>& fields = reader_.fields();
  const std::vector<std::string>& names = spec_.form.features;
  const auto names_feature = [&](const CsvField& field) {
    return std::find(names.begin(), names.end(), field.text) != names.end();
  };
  const auto names_label = [&](const CsvField& field) {
    return !spec_.label.empty() && !ColumnNumber(spec_.label) && field.text == spec_.label;
  };
  if (std::any_of(fields.begin(), fields.end(), names_label)) return true;
  if (std::all_of(fields.begin(), fields.end(), names_feature)) return true;
  const auto others = std::count_if(fields.begin(), fields.end(), [](const auto& f) { return !IsNumber(f); });
  return others > 1 || (others == 1 && columns_.count != spec_.inputs + 1);
}

// -1: none.
int64_t CsvRows::LabelColumn() const {
  const auto found = std::find(columns_.names.begin(), columns_.names.end(), spec_.label);
  if (!spec_.label.empty() && found != columns_.names.end()) return found - columns_.names.begin();
  if (columns_.count == spec_.inputs) return -1;
  if (const std::optional<int64_t> number = ColumnNumber(spec_.label)) {
    return *number < columns_.count ? *number : -1;
  }
  return -1;
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
      throw CsvError(
          reader_.path(), reader_.fields()[0].place,
          fmt::format("no column {}; the model has this feature.{} Name the columns as the training "
                      "data has them.",
                      Quoted(Shown(name)),
                      closest.empty() ? "" : fmt::format(" Is it {}?", Quoted(Shown(closest)))));
    }
    positions_.push_back(found->second);
  }
}

void CsvRows::FindByPosition() {
  if (columns_.label < 0 && columns_.count == spec_.inputs + 1) {
    // Without a name to go by it is the column that is no number, else the last.
    const auto& fields = reader_.fields();
    const auto name = std::find_if(fields.begin(), fields.end(), [](const auto& f) { return !IsNumber(f); });
    const bool told = first_is_row_ && name != fields.end();
    columns_.label = told ? name - fields.begin() : columns_.count - 1;
  }
  const int64_t features = columns_.count - (columns_.label >= 0 ? 1 : 0);
  if (features != spec_.inputs) {
    throw CsvError(
        reader_.path(), reader_.fields()[0].place,
        fmt::format("{}; the model has {}, and a row may have a label besides. Is it the right file?",
                    Plural(columns_.count, "column"), Plural(spec_.inputs, "feature")));
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
  if (state == NumberText::kGood) return Scaled(spec_, feature, number);
  throw FieldError(reader_.path(), ColumnTitle(columns_, column), field,
                   fmt::format("{}. Correct it, or remove the row.", NumberRule(state)));
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
