#include "trainer/data/rounded_features.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "base/names.h"
#include "trainer/config/user_text.h"
#include "trainer/data/csv_columns.h"
#include "trainer/data/form_text.h"

namespace dtrain {
namespace {

constexpr double kFewSteps = 1000;
constexpr size_t kMostRows = 1000;         // that are read again
constexpr size_t kMostValues = 1'000'000;  // of them; of two rows all
constexpr double kNoiseOfDouble = 1e-12;   // against the value: what a sum in double may leave behind

// From `value` to the next number of float32.
double StepAt(double value) {
  const float magnitude = std::fabs(static_cast<float>(value));
  return std::nextafter(magnitude, std::numeric_limits<float>::infinity()) - magnitude;
}

bool IsNarrow(double width, double largest) { return largest != 0 && width < kFewSteps * StepAt(largest); }

std::vector<int64_t> NarrowByScale(const FittedScale& scale) {
  std::vector<int64_t> narrow;
  for (size_t c = 0; c < scale.shift.size(); ++c) {
    const double width = scale.factor[c] == 0 ? 0 : 1 / scale.factor[c];
    if (IsNarrow(width, scale.shift[c])) narrow.push_back(static_cast<int64_t>(c));
  }
  return narrow;
}

std::vector<int64_t> NarrowByRange(gpu::MatrixView<const float> rows) {
  if (rows.rows == 0) return {};
  std::vector<float> least(rows.row(0), rows.row(1)), greatest = least;
  for (int64_t r = 1; r < rows.rows; ++r) {
    const float* const row = rows.row(r);
    for (size_t c = 0; c < least.size(); ++c) {
      least[c] = std::min(least[c], row[c]);
      greatest[c] = std::max(greatest[c], row[c]);
    }
  }
  std::vector<int64_t> narrow;
  for (size_t c = 0; c < least.size(); ++c) {
    const double width = static_cast<double>(greatest[c]) - least[c];
    if (IsNarrow(width, std::max(std::fabs(least[c]), std::fabs(greatest[c])))) {
      narrow.push_back(static_cast<int64_t>(c));
    }
  }
  return narrow;
}

// Of a text that LoadData() has taken for a number.
double ExactNumber(std::string_view text) {
  double number = 0;
  const size_t plus = text.substr(0, 1) == "+" ? 1 : 0;
  std::from_chars(text.data() + plus, text.data() + text.size(), number);
  return number;
}

// Of each of `features` the values in the file's first rows, as long as these have the fields that were
// loaded: somebody may write to the file meanwhile.
std::vector<std::vector<double>> FirstValues(const DataSourceConfig& source, int64_t fields,
                                             const std::vector<int64_t>& features) {
  CsvReader reader(source.path, "data.train.path");
  const int64_t label = ReadColumns(source, "data.train", &reader).label;
  const auto is_whole = [&] { return static_cast<int64_t>(reader.fields().size()) == fields; };
  const size_t rows = std::clamp(kMostValues / features.size(), size_t{2}, kMostRows);
  std::vector<std::vector<double>> values(features.size());
  for (bool more = !source.header || reader.Next(); more && is_whole() && values[0].size() < rows;
       more = reader.Next()) {
    for (size_t i = 0; i < features.size(); ++i) {
      const int64_t column = features[i] + (features[i] >= label ? 1 : 0);
      values[i].push_back(ExactNumber(reader.fields()[static_cast<size_t>(column)].text));
    }
  }
  return values;
}

struct Distinct {
  int64_t exact = 0;
  int64_t rounded = 0;
};

Distinct CountDistinct(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  Distinct distinct{1, 1};
  double before = values.front();  // the last that counted
  for (const double value : values) {
    if (value - before <= kNoiseOfDouble * std::fabs(value)) continue;
    ++distinct.exact;
    if (static_cast<float>(value) != static_cast<float>(before)) ++distinct.rounded;
    before = value;
  }
  return distinct;
}

// Of the first feature the numbers, of the others the names.
std::string Text(const InputForm& form, const std::string& path, const std::vector<double>& values,
                 const std::vector<int64_t>& told) {
  const Distinct distinct = CountDistinct(values);
  std::vector<std::string> others;
  for (size_t i = 1; i < told.size(); ++i) others.push_back(FeatureTitle(form, told[i]));
  return fmt::format(
      "feature {}: the {} that differ in the first {} of {} are {} in float32, whose steps are {:g} there. "
      "Subtract a constant from the column, here and wherever it is predicted from: data.scale comes too "
      "late "
      "for that.{}",
      Shown(FeatureTitle(form, told[0])), Plural(distinct.exact, "value"),
      Plural(static_cast<int64_t>(values.size()), "row"), path, distinct.rounded, StepAt(values[0]),
      others.empty() ? "" : fmt::format(" The same holds for {}.", ListNames(others, "and")));
}

}  // namespace

std::string RoundedFeaturesText(const DataConfig& data, const LoadedData& loaded) {
  if (data.train.format != DataFormat::kCsv) return "";
  const bool scaled = !loaded.form.scale.shift.empty();
  const std::vector<int64_t> narrow =
      scaled ? NarrowByScale(loaded.form.scale) : NarrowByRange(loaded.train->floats());
  if (narrow.empty()) return "";
  const std::vector<std::vector<double>> values = FirstValues(data.train, loaded.train->inputs() + 1, narrow);
  std::vector<int64_t> told;
  size_t first = 0;  // of `narrow`, that is told
  for (size_t i = 0; i < narrow.size(); ++i) {
    const Distinct distinct = CountDistinct(values[i]);
    if (distinct.exact == distinct.rounded) continue;
    if (told.empty()) first = i;
    told.push_back(narrow[i]);
  }
  return told.empty() ? "" : Text(loaded.form, data.train.path, values[first], told);
}

}  // namespace dtrain
