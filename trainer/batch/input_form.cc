#include "trainer/batch/input_form.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/names.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

// Of the values of each column.
struct Range {
  std::vector<double> min, max, mean;
};

Range RangeOf(size_t columns, const VisitFloats& visit) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Range range{std::vector<double>(columns, kInfinity), std::vector<double>(columns, -kInfinity),
              std::vector<double>(columns)};
  int64_t rows = 0;
  visit([&](const float* row) {
    ++rows;
    for (size_t c = 0; c < columns; ++c) {
      const double value = row[c];
      range.min[c] = std::min(range.min[c], value);
      range.max[c] = std::max(range.max[c], value);
      range.mean[c] += value;
    }
  });
  for (double& sum : range.mean) sum /= static_cast<double>(rows);
  return range;
}

// Uses a second pass with deviations from `mean`: the difference of two large sums would lose all digits.
std::vector<double> DeviationOf(const VisitFloats& visit, const std::vector<double>& mean) {
  std::vector<double> deviation(mean.size());
  int64_t rows = 0;
  visit([&](const float* row) {
    ++rows;
    for (size_t c = 0; c < mean.size(); ++c) {
      const double distance = row[c] - mean[c];
      deviation[c] += distance * distance;
    }
  });
  for (double& sum : deviation) sum = std::sqrt(sum / static_cast<double>(rows));
  return deviation;
}

constexpr size_t kMaxListed = 20;

int64_t CountOf(const std::vector<std::string>& names) { return static_cast<int64_t>(names.size()); }

}  // namespace

FittedScale FitScale(FeatureScale kind, gpu::MatrixView<const float> rows) {
  return FitScale(kind, rows.cols, [&](const auto& visit) {
    for (int64_t row = 0; row < rows.rows; ++row) visit(rows.row(row));
  });
}

FittedScale FitScale(FeatureScale kind, int64_t columns, const VisitFloats& visit) {
  DT_CHECK(kind != FeatureScale::kNone);
  const auto width = static_cast<size_t>(columns);
  const Range range = RangeOf(width, visit);
  const bool unit = kind == FeatureScale::kUnit;
  FittedScale scale;
  scale.shift = unit ? range.min : range.mean;
  if (!unit) scale.factor = DeviationOf(visit, scale.shift);
  scale.factor.resize(scale.shift.size());
  for (size_t c = 0; c < scale.factor.size(); ++c) {
    const double width = unit ? range.max[c] - range.min[c] : scale.factor[c];
    // Decided by the range: the rounded mean of equal values may leave a deviation that is not 0.
    scale.factor[c] = range.max[c] > range.min[c] ? 1 / width : 0;
  }
  return scale;
}

bool InputColumn::operator==(const InputColumn& other) const {
  return column == other.column && name == other.name && is_category == other.is_category &&
         is_date == other.is_date && categories == other.categories && has_other == other.has_other &&
         fill == other.fill && has_indicator == other.has_indicator;
}

std::vector<std::string> FeatureNamesOf(const InputColumn& column) {
  const std::string name = column.name.empty() ? fmt::format("column {}", column.column + 1) : column.name;
  std::vector<std::string> names;
  if (!column.is_category) {
    names.push_back(name);
    if (column.has_indicator) names.push_back(name + "=missing");
    return names;
  }
  for (const std::string& category : column.categories) {
    names.push_back(name + "=" + (category.empty() ? "missing" : category));
  }
  if (column.has_other) names.push_back(name + "=other");
  return names;
}

std::vector<std::string> ColumnNames(const InputForm& form) {
  if (form.columns.empty()) return form.features;
  std::vector<std::string> names;
  for (const InputColumn& column : form.columns) names.push_back(column.name);
  const bool named = std::any_of(names.begin(), names.end(), [](const auto& name) { return !name.empty(); });
  return named ? names : std::vector<std::string>();
}

bool AppendCategory(const InputColumn& column, std::string_view text, std::vector<float>* features) {
  const std::vector<std::string>& all = column.categories;
  const auto found = std::lower_bound(all.begin(), all.end(), text);
  const bool known = found != all.end() && *found == text;
  const size_t begin = features->size();
  features->resize(begin + static_cast<size_t>(column.features()));
  if (known) {
    (*features)[begin + static_cast<size_t>(found - all.begin())] = 1;
  } else if (column.has_other) {
    features->back() = 1;
  }
  return known || column.has_other;
}

void AppendNumber(const InputColumn& column, std::optional<float> number, std::vector<float>* features) {
  features->push_back(number ? *number : static_cast<float>(*column.fill));
  if (column.has_indicator) features->push_back(number ? 0 : 1);
}

namespace {

// A table with hashed columns has the place and the name of each column, and nothing else about it.
std::optional<std::string> HashedProblem(const InputForm& form) {
  constexpr int64_t kMaxColumns = 1 << 24;
  if (form.table_columns > kMaxColumns) return fmt::format("its table has {} columns", form.table_columns);
  for (const InputColumn& column : form.columns) {
    if (column.column >= form.table_columns) return fmt::format("a column has the number {}", column.column);
    if (column.features() != 1 || column.fill || column.is_category) return "a hashed column has a form";
  }
  if (form.scale.shift.size() <= form.columns.size()) return std::nullopt;
  return fmt::format("{} columns and {} scales", form.columns.size(), form.scale.shift.size());
}

std::optional<std::string> ColumnsProblem(const InputForm& form) {
  size_t features = 0;
  for (const InputColumn& column : form.columns) {
    if (column.column < 0) return fmt::format("a column has the number {}", column.column);
    if (column.has_indicator && !column.fill) return "a column tells its gaps and has nothing for them";
    if (column.fill && !std::isfinite(*column.fill)) return "what fills a column is not finite";
    if (!std::is_sorted(column.categories.begin(), column.categories.end())) {
      return "the categories of a column are not sorted";
    }
    features += static_cast<size_t>(column.features());
  }
  if (HasHashedColumns(form)) return HashedProblem(form);
  if (form.columns.empty() || features == form.features.size()) return std::nullopt;
  return fmt::format("{} features have names, and its columns make {}", form.features.size(), features);
}

}  // namespace

std::optional<std::string> FormProblem(const InputForm& form) {
  const FittedScale& scale = form.scale;
  const size_t scaled = scale.shift.size();
  if (scale.factor.size() != scaled) {
    return fmt::format("{} shifts and {} factors", scaled, scale.factor.size());
  }
  if (scaled > 0 && !form.features.empty() && form.features.size() != scaled) {
    return fmt::format("{} features have names and {} a scale", form.features.size(), scaled);
  }
  if (form.label_column < -1) return fmt::format("its label is column {}", form.label_column);
  const auto finite = [](double value) { return std::isfinite(value); };
  for (const std::vector<double>* values : {&scale.shift, &scale.factor}) {
    if (!std::all_of(values->begin(), values->end(), finite)) return "a scale is not finite";
  }
  return ColumnsProblem(form);
}

const std::vector<std::string>& SignedClasses() {
  static const std::vector<std::string> names = {"-1", "1"};
  return names;
}

std::string ListNames(const std::vector<std::string>& names, const std::string& last_word) {
  std::vector<std::string> shown;
  for (size_t i = 0; i < names.size() && i < kMaxListed; ++i) shown.push_back(Shown(names[i]));
  if (names.size() > kMaxListed) shown.push_back(fmt::format("{} more", names.size() - kMaxListed));
  return ListText(shown, last_word);
}

std::string ClassNamesText(const std::vector<std::string>& names) {
  std::vector<std::string> numbered;
  for (size_t i = 0; i < names.size(); ++i) numbered.push_back(fmt::format("{} = {}", i, names[i]));
  return fmt::format("{}: {}", Plural(CountOf(names), "class", "classes"), ListNames(numbered, "and"));
}

std::string FeatureTitle(const InputForm& form, int64_t feature) {
  const bool named = !form.features.empty() && !form.features[static_cast<size_t>(feature)].empty();
  if (named) return form.features[static_cast<size_t>(feature)];
  const bool behind_label = form.columns.empty() && form.label_column >= 0 && feature >= form.label_column;
  return fmt::format("column {}", feature + (behind_label ? 2 : 1));
}

std::string FeatureNamesText(const InputForm& form) {
  std::vector<std::string> titles;
  for (int64_t i = 0; i < CountOf(form.features); ++i) titles.push_back(FeatureTitle(form, i));
  return fmt::format("{}: {}", Plural(CountOf(titles), "feature"), ListNames(titles, "and"));
}

}  // namespace dtrain
