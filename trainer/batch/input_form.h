// InputForm: the columns and classes of a model: their names, how columns become features, and how features
// are scaled. Checkpoints hold it, so that rows can be read for a model without its training data. Thread:
// any; plain values and free functions.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/view.h"
#include "trainer/batch/batch.h"
#include "trainer/config/choices.h"

namespace dtrain {

// Fits a scale. unit: (x - min) / (max - min). standard: (x - mean) / standard deviation, with the rows as
// the whole population. `kind` must not be kNone.
FittedScale FitScale(FeatureScale kind, gpu::MatrixView<const float> rows);
// The same for rows of so many columns. `visit` is called several times, and each time calls its argument
// with every row, in the same order.
using VisitFloats = std::function<void(const std::function<void(const float* row)>&)>;
FittedScale FitScale(FeatureScale kind, int64_t columns, const VisitFloats& visit);

// InputColumn: how a column of a table becomes features. A number is one feature, and so is a date, in days
// since 1970; a category is one feature for each text of the list: the row's is 1, and the others are 0.
// Fitted on training rows (csv_fit.h).
struct InputColumn {
  int64_t column = 0;  // in the training data, from 0
  std::string name;    // empty: the data has no header
  bool is_category = false;
  std::vector<std::string> categories;  // sorted; the empty text stands for a missing value
  bool has_other = false;               // one more feature, for all texts that are not in the list
  std::optional<double> fill;           // of a number: what a missing value becomes; unset: it is an error
  bool has_indicator = false;           // of a number: one more feature, 1 where it was missing
  bool is_date = false;                 // of a number: it is written as an ISO date

  int64_t features() const {
    if (!is_category) return has_indicator ? 2 : 1;
    return static_cast<int64_t>(categories.size()) + (has_other ? 1 : 0);
  }
  template <typename Archive>
  void State(Archive& archive) {
    archive(column, name, is_category, categories, has_other, fill, has_indicator, is_date);
  }
  bool operator==(const InputColumn& other) const;
};

struct InputForm {
  // Names in the model's order: "age", "plan=pro", "plan=other", "age=missing"; empty: there are none.
  std::vector<std::string> features;
  std::vector<std::string> classes;  // names, by number; empty: classes have no names
  FittedScale scale;                 // empty: features are not scaled
  int64_t label_column = -1;         // in the training data, from 0; -1: unknown
  // Empty: each feature is a column of numbers without gaps. Of a table with hashed columns (data.hash) it
  // has the place and the name of each, and `features` is empty.
  std::vector<InputColumn> columns{};
  int64_t table_columns = 0;  // of the training data, ignored ones and the label included; 0: unknown

  template <typename Archive>
  void State(Archive& archive) {
    archive(features, classes, scale.shift, scale.factor, label_column, columns, table_columns);
  }
};

// The names of the classes 0 and 1 where the labels are -1 and 1.
const std::vector<std::string>& SignedClasses();

// Whether the columns are those of a table with hashed ones. Their order means nothing to the model.
inline bool HasHashedColumns(const InputForm& form) { return !form.columns.empty() && form.features.empty(); }

// Returns the names of the features of a column: of column 3 without a name "column 3", "column 3=pro".
std::vector<std::string> FeatureNamesOf(const InputColumn& column);
// Returns the names of the columns that rows must have: of `columns`, else the features; empty: there are
// none.
std::vector<std::string> ColumnNames(const InputForm& form);
// Returns how many values a row must have: `inputs` without `columns`.
inline int64_t ColumnCount(const InputForm& form, int64_t inputs) {
  return form.columns.empty() ? inputs : static_cast<int64_t>(form.columns.size());
}

// Appends the features of a category. False: the text is none of the list, and nothing stands for others.
bool AppendCategory(const InputColumn& column, std::string_view text, std::vector<float>* features);
// Appends the features of a number; unset: it is missing, and `column.fill` is set.
void AppendNumber(const InputColumn& column, std::optional<float> number, std::vector<float>* features);

// Returns what is invalid in a form from a file or a peer, or nothing. Readers of rows rely on this check.
std::optional<std::string> FormProblem(const InputForm& form);

// Returns names for a message: "alba, grandis or media"; of more than 20 names only the first ones and the
// number of the others.
std::string ListNames(const std::vector<std::string>& names, const std::string& last_word);
// Returns "3 classes: 0 = alba, 1 = grandis and 2 = media".
std::string ClassNamesText(const std::vector<std::string>& names);
// Returns the name of a feature's column, or its place in a row, counted from 1: "column 4".
std::string FeatureTitle(const InputForm& form, int64_t feature);
// Returns "2 features: height and width". The features must have names.
std::string FeatureNamesText(const InputForm& form);

}  // namespace dtrain
