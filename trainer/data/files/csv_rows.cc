#include "trainer/data/files/csv_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/names.h"

namespace dtrain {

std::vector<int64_t> FeatureColumns(const CsvColumns& columns) {
  std::vector<int64_t> features;
  for (int64_t column = 0; column < columns.count; ++column) {
    if (column != columns.label) features.push_back(column);
  }
  return features;
}

CsvRows::CsvRows(CsvReader* reader, CsvLayout layout, std::string first_row_remedy)
    : reader_(*reader),
      layout_(std::move(layout)),
      first_row_remedy_(std::move(first_row_remedy)),
      before_label_(layout_.features.size()),
      next_is_read_(layout_.first_is_row) {
  if (layout_.columns.label < 0 || !std::is_sorted(layout_.features.begin(), layout_.features.end())) return;
  before_label_ = static_cast<size_t>(
      std::lower_bound(layout_.features.begin(), layout_.features.end(), layout_.columns.label) -
      layout_.features.begin());
}

bool CsvRows::Next() {
  if (!next_is_read_ && !reader_.Next()) return false;
  next_is_read_ = false;
  ++row_;
  CheckWhole();
  return true;
}

// Refuses a record with too few or too many fields, at the first that is missing or too much.
void CsvRows::CheckWhole() const {
  const int64_t fields = static_cast<int64_t>(reader_.fields().size()), count = layout_.columns.count;
  if (fields == count) return;
  const CsvPlace place =
      fields < count ? reader_.record_end() : reader_.fields()[static_cast<size_t>(count)].place;
  throw CsvError(reader_.path(), place,
                 fmt::format("{}; must be {}, as in the first line. Correct the row, or remove it.",
                             Plural(fields, "field"), count));
}

void CsvRows::Read(std::vector<float>* features, CsvLabels* labels) const {
  ReadFeatures(0, before_label_, features);
  if (labels != nullptr) labels->Add(reader_.fields()[static_cast<size_t>(layout_.columns.label)]);
  ReadFeatures(before_label_, layout_.features.size(), features);
}

void CsvRows::ReadFeatures(size_t begin, size_t end, std::vector<float>* out) const {
  for (size_t feature = begin; feature < end; ++feature) {
    float number = 0;
    const NumberText state = ParseNumber(FieldOf(feature).text, &number);
    if (state != NumberText::kGood || (layout_.pixels && !IsPixel(number))) Refuse(feature, state);
    out->push_back(number);
  }
}

void CsvRows::Refuse(size_t feature, NumberText state) const {
  const bool first = row_ == 0 && state == NumberText::kNoNumber;
  throw FieldError(reader_.path(), ColumnTitle(layout_.columns, layout_.features[feature]), FieldOf(feature),
                   fmt::format("{}. {}", state == NumberText::kGood ? kPixelRule : NumberRule(state),
                               first ? first_row_remedy_ : "Correct it, or remove the row."));
}

}  // namespace dtrain
