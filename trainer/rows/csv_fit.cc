#include "trainer/rows/csv_fit.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "trainer/batch/class_names.h"
#include "trainer/config/item_text.h"
#include "trainer/config/user_text.h"
#include "trainer/input/csv_reader.h"
#include "trainer/order/held_out.h"
#include "trainer/rows/csv_columns.h"
#include "trainer/rows/csv_table.h"
#include "trainer/rows/pass.h"
#include "trainer/rows/row_labels.h"

namespace dtrain {
namespace {

// A column with more different texts is no category, and counting them would take memory without end.
constexpr size_t kMaxTexts = 100'000;

// ColumnFit: what the rows so far say about one column.
struct ColumnFit {
  InputColumn column;
  std::string title;                                  // for messages
  bool counts = false;                                // whether the rows matter to it
  std::map<std::string, int64_t, std::less<>> texts;  // of a category: how often each is there
  double sum = 0;                                     // of a number, this and the fields below
  int64_t count = 0;
  int64_t gaps = 0;
};

std::string_view CategoryIn(const CsvField& field) {
  return IsMissing(field.text) ? std::string_view() : field.text;
}

void CountText(const CsvReader& reader, const CsvField& field, ColumnFit* fit) {
  const std::string_view text = CategoryIn(field);
  const auto found = fit->texts.find(text);
  if (found != fit->texts.end()) {
    ++found->second;
    return;
  }
  CheckName(reader.path(), field);
  fit->texts.emplace(text, 1);
  if (fit->texts.size() <= kMaxTexts) return;
  throw FaultAt(
      reader.path(), field.place,
      fmt::format("{} has more than {} different texts; it cannot be in data.categories. Is it an id? "
                  "Name it in data.ignore.",
                  fit->title, kMaxTexts));
}

NumberText NumberOf(const CsvReader& reader, const InputColumn& column, const CsvField& field,
                    float* number) {
  return column.is_date ? ParseDate(field.text, number) : ParseNumber(field, reader.decimal(), number);
}

// The number in a field; not a number: there is none. Without a gap that is refused, or its row skipped, when
// it is read.
float NumberIn(const CsvReader& reader, const CsvField& field, const InputColumn& column) {
  float number = 0;
  const bool is_good = NumberOf(reader, column, field, &number) == NumberText::kGood;
  return is_good ? number : std::numeric_limits<float>::quiet_NaN();
}

void CountNumber(float number, ColumnFit* fit) {
  if (std::isnan(number)) {
    ++fit->gaps;
  } else {
    fit->sum += number;
    ++fit->count;
  }
}

void CountRow(const CsvReader& reader, std::vector<ColumnFit>* fits) {
  for (ColumnFit& fit : *fits) {
    if (!fit.counts) continue;
    const CsvField& field = reader.fields()[static_cast<size_t>(fit.column.column)];
    fit.column.is_category ? CountText(reader, field, &fit)
                           : CountNumber(NumberIn(reader, field, fit.column), &fit);
  }
}

// Keeps the most frequent texts; of equally frequent ones the first in the order of their bytes.
void ChooseCategories(const ColumnFit& fit, int64_t max, InputColumn* column) {
  std::vector<std::pair<int64_t, std::string>> texts;
  for (const auto& [text, count] : fit.texts) texts.emplace_back(-count, text);
  std::sort(texts.begin(), texts.end());
  column->has_other = static_cast<int64_t>(texts.size()) > max;
  if (column->has_other) texts.resize(static_cast<size_t>(max));
  for (auto& [count, text] : texts) column->categories.push_back(std::move(text));
  std::sort(column->categories.begin(), column->categories.end());
}

bool Fills(const DataConfig& data) {
  return data.missing != MissingValues::kError && data.missing != MissingValues::kDrop;
}

// Whether a column that was fitted before is this one, and is read as the config says.
bool IsFitOf(const InputColumn& saved, const InputColumn& column, const DataConfig& data) {
  if (saved.name != column.name || (column.name.empty() && saved.column != column.column)) return false;
  if (saved.is_category != column.is_category || saved.is_date != column.is_date) return false;
  const bool indicates = data.missing == MissingValues::kIndicator;
  return column.is_category || (saved.fill.has_value() == Fills(data) && (indicates || !saved.has_indicator));
}

bool AreFitOf(const InputForm& saved, const std::vector<ColumnFit>& fits, const DataConfig& data) {
  return !HasHashedColumns(saved) &&
         std::equal(saved.columns.begin(), saved.columns.end(), fits.begin(), fits.end(),
                    [&](const InputColumn& column, const ColumnFit& fit) {
                      return IsFitOf(column, fit.column, data);
                    });
}

InputColumn Conclude(const ColumnFit& fit, const DataConfig& data) {
  InputColumn column = fit.column;
  if (column.is_category) {
    ChooseCategories(fit, data.max_categories, &column);
    return column;
  }
  if (!Fills(data)) return column;
  const bool zero = data.missing == MissingValues::kZero || fit.count == 0;
  column.fill = zero ? 0 : static_cast<double>(static_cast<float>(fit.sum / static_cast<double>(fit.count)));
  column.has_indicator = data.missing == MissingValues::kIndicator && fit.gaps > 0;
  return column;
}

std::vector<ColumnFit> StartFit(const DataConfig& data, const CsvColumns& columns, const CsvReader& reader) {
  const std::vector<int64_t> categories = FindInputs(columns, data.categories, "data.categories", reader);
  const std::vector<int64_t> dates = FindInputs(columns, DateColumns(data), "data.dates", reader);
  const bool has_means = data.missing == MissingValues::kMean || data.missing == MissingValues::kIndicator;
  std::vector<ColumnFit> fits;
  for (const int64_t input : columns.inputs) {
    ColumnFit fit;
    fit.column.column = input;
    if (!columns.names.empty()) fit.column.name = columns.names[static_cast<size_t>(input)];
    fit.column.is_category = std::count(categories.begin(), categories.end(), input) > 0;
    fit.column.is_date = std::count(dates.begin(), dates.end(), input) > 0;
    fit.title = ColumnTitle(columns, input);
    fit.counts = fit.column.is_category || has_means;
    if (fit.column.is_category && fit.column.is_date) {
      throw FaultAt(
          reader.path(), reader.fields()[0].place,
          fmt::format("{} is in data.categories and data.dates; it is one of them. Take it out.", fit.title));
    }
    fits.push_back(std::move(fit));
  }
  return fits;
}

// The columns that may have any text: those that are hashed, and the weights of bags.
std::set<int64_t> HashedInputs(const DataConfig& data, const CsvColumns& columns, const CsvReader& reader) {
  std::vector<std::string> listed = data.hash;
  for (const std::string& item : data.bags) {
    const BagItem bag = ParseBag(item);
    listed.push_back(bag.column);
    if (!bag.weights.empty()) listed.push_back(bag.weights);
  }
  const std::vector<int64_t> found = FindInputs(columns, listed, "data.hash", reader);
  return {found.begin(), found.end()};
}

// RowJudge: whether a whole record becomes a row of the table, as far as the run goes on at all. Rows are
// held out and counted in the table, so records that are left out there do not count here.
class RowJudge {
 public:
  RowJudge(const DataConfig& data, const CsvColumns& columns, const std::vector<InputColumn>& inputs)
      : data_(data), columns_(columns), inputs_(inputs) {
    AddLabelKeys(data, &labels_);
  }

  bool IsRow(const CsvReader& reader) const {
    const std::vector<CsvField>& fields = reader.fields();
    const std::string_view label = fields[static_cast<size_t>(columns_.label)].text;
    const bool renamed = labels_.renamed.find(label) != labels_.renamed.end();
    if (IsMissing(label) && (!renamed || data_.missing == MissingValues::kDrop)) return false;
    return std::all_of(inputs_.begin(), inputs_.end(), [&](const InputColumn& input) {
      return IsGood(reader, fields[static_cast<size_t>(input.column)], input);
    });
  }

 private:
  bool IsGood(const CsvReader& reader, const CsvField& field, const InputColumn& column) const {
    if (IsMissing(field.text)) {
      const bool left_out = data_.missing == MissingValues::kDrop;
      return !left_out && (column.is_category || data_.missing != MissingValues::kError);
    }
    float number = 0;
    return column.is_category || NumberOf(reader, column, field, &number) == NumberText::kGood;
  }

  const DataConfig& data_;
  const CsvColumns& columns_;
  const std::vector<InputColumn>& inputs_;
  LabelRules labels_;
};

// Returns a number for the class of a label: spellings of one number are one class.
int32_t ClassOf(std::string_view label, const LabelRules& rules, std::map<std::string, int32_t>* classes) {
  const auto number = static_cast<int32_t>(classes->size());
  return classes->emplace(ClassKey(RenamedLabel(rules, label)), number).first->second;
}

// KeptRows: what the fit needs of rows, as long as it is not known which of them are held out. Owner: Look().
// Thread: one.
class KeptRows {
 public:
  explicit KeptRows(size_t columns) : columns_(columns) {}

  // Keeps a row, unless that takes too much memory, or the fit may refuse one of its texts.
  void Add(const CsvReader& reader, const std::vector<ColumnFit>& fits) {
    is_whole_ = is_whole_ && values_.size() < kMaxValues;
    for (size_t i = 0; i < fits.size() && is_whole_; ++i) {
      if (!fits[i].counts) continue;
      const CsvField& field = reader.fields()[static_cast<size_t>(fits[i].column.column)];
      values_.push_back(fits[i].column.is_category ? NumberOfText(CategoryIn(field), &columns_[i])
                                                   : NumberIn(reader, field, fits[i].column));
    }
  }
  // Whether all rows are kept.
  bool is_whole() const { return is_whole_; }

  // Counts the first `max` rows that are not held out.
  void Count(const std::vector<bool>& held_out, int64_t max, std::vector<ColumnFit>* fits) const {
    auto value = values_.begin();
    for (size_t row = 0; row < held_out.size() && max > 0; ++row) {
      if (!held_out[row]) --max;
      for (size_t i = 0; i < fits->size(); ++i) {
        ColumnFit& fit = (*fits)[i];
        if (!fit.counts) continue;
        const float number = *value++;
        if (held_out[row]) continue;
        fit.column.is_category ? void(++fit.texts[*columns_[i].texts[static_cast<size_t>(number)]])
                               : CountNumber(number, &fit);
      }
    }
  }

 private:
  // The texts of a category so far.
  struct Texts {
    std::map<std::string, float, std::less<>> numbers;
    std::vector<const std::string*> texts;  // by number
  };
  static constexpr size_t kMaxValues = SourceInputs::kMaxHeadBytes / sizeof(float);

  float NumberOfText(std::string_view text, Texts* texts) {
    if (const auto found = texts->numbers.find(text); found != texts->numbers.end()) return found->second;
    const size_t number = texts->texts.size();
    is_whole_ = is_whole_ && number < kMaxTexts && IsUtf8(text);
    const auto added = texts->numbers.emplace(text, static_cast<float>(number)).first;
    texts->texts.push_back(&added->first);
    return added->second;
  }

  std::vector<Texts> columns_;
  std::deque<float> values_;  // row by row, those of the columns that count
  bool is_whole_ = true;
};

RowContext Records() {
  RowContext context;
  context.records = context.numbers = true;
  return context;
}

// Calls `on_record` for each record with the right number of fields, until it returns false, or until as much
// of a pipe was read as can be read again.
template <typename OnRecord>
void ForEachRecord(Pass* pass, OnRecord&& on_record) {
  for (ParsedRows none; pass->Next(&none, nullptr);) {
    const CsvReader& reader = static_cast<const CsvFile&>(pass->rows()).reader();
    if (reader.head_bytes() >= SourceInputs::kMaxHeadBytes || !on_record(reader)) return;
  }
}

// Counts the classes (null: not), and fits the columns (none: there is nothing to fit) to the first rows that
// are not held out. `inputs` are all that rows have; a row that is left out for one gives no class either.
// `held_out`: as HeldOutMarks() gives them; unset: of a share they are known when all rows
// were read. If that is too much to keep of them, they are read once more.
void Look(const DataConfig& data, const std::vector<InputColumn>& inputs,
          const std::optional<std::vector<bool>>& held_out, Pass* pass, ClassCounter* classes,
          std::vector<ColumnFit>* fits) {
  const RowJudge judge(data, pass->columns(), inputs);
  const bool leaves_out = data.bad_rows == BadRows::kSkip || data.missing == MissingValues::kDrop;
  const bool waits = !fits->empty() && data.validation_share > 0 && !held_out;
  const bool stratified = data.validation_by == HeldOutBy::kStratified;
  LabelRules rules;
  AddLabelKeys(data, &rules);
  std::map<std::string, int32_t> numbers;
  std::vector<int32_t> class_of_row;  // while it waits
  KeptRows kept(fits->size());
  int64_t row = 0, left = fits->empty() ? 0 : data.fit_rows;
  const auto is_held_out = [&](int64_t at) {
    if (!held_out) return at < data.validation;
    return at < static_cast<int64_t>(held_out->size()) && (*held_out)[static_cast<size_t>(at)];
  };
  ForEachRecord(pass, [&](const CsvReader& reader) {
    const bool counts = classes != nullptr;
    const bool is_row = left > 0 || (counts && leaves_out) ? judge.IsRow(reader) : true;
    if (counts && (is_row || !leaves_out)) classes->Count(reader.path(), pass->rows().label());
    if (left > 0 && is_row) {
      if (waits) {
        class_of_row.push_back(stratified ? ClassOf(pass->rows().label().text, rules, &numbers) : 0);
        kept.Add(reader, *fits);
      } else if (!is_held_out(row++)) {
        CountRow(reader, fits);
        --left;
      }
    }
    return left > 0 || classes != nullptr;
  });
  if (!waits) return;
  const std::vector<bool> marks = HeldOutMarks(data, class_of_row);
  if (kept.is_whole()) return kept.Count(marks, data.fit_rows, fits);
  SourceInputs sources(data.train.path, "data.train.path");  // a share of a pipe is refused
  Pass again(data, Records(), &sources);
  Look(data, inputs, marks, &again, nullptr, fits);
}

}  // namespace

bool HasColumnForms(const DataConfig& data) {
  return !data.ignore.empty() || !data.categories.empty() || !data.dates.empty() || !data.weight.empty() ||
         !data.offset.empty() || !data.missing_values.empty() || !data.number_format.empty() ||
         data.missing != MissingValues::kError;
}

FittedColumns FitColumns(const DataConfig& data, SourceInputs* inputs, bool counts_classes,
                         const InputForm* saved) {
  Pass pass(data, Records(), inputs);
  const CsvColumns& columns = pass.columns();
  std::vector<ColumnFit> fits = StartFit(data, columns, static_cast<const CsvFile&>(pass.rows()).reader());
  std::vector<InputColumn> read;
  const std::set<int64_t> texts =
      HashedInputs(data, columns, static_cast<const CsvFile&>(pass.rows()).reader());
  for (const ColumnFit& fit : fits) {
    read.push_back(fit.column);
    read.back().is_category = fit.column.is_category || texts.count(fit.column.column) > 0;
  }
  if (!HasColumnForms(data)) fits.clear();
  ClassCounter classes(data);
  std::vector<ColumnFit> none;
  const bool is_known = saved != nullptr && AreFitOf(*saved, fits, data);
  const bool counts =
      !is_known && std::any_of(fits.begin(), fits.end(), [](const ColumnFit& fit) { return fit.counts; });
  if (counts || counts_classes) {
    Look(data, read, std::nullopt, &pass, counts_classes ? &classes : nullptr, counts ? &fits : &none);
  }
  inputs->GiveBack(static_cast<CsvFile&>(pass.rows()).Release());

  FittedColumns fitted;
  fitted.classes = classes.classes();
  if (counts_classes && data.classes.empty()) fitted.form.classes = classes.NamedNumbers();
  fitted.form.label_column = columns.label;
  fitted.form.table_columns = columns.count;
  if (fits.empty()) fitted.form.features = InputNames(columns);
  for (size_t i = 0; i < fits.size(); ++i) {
    fitted.form.columns.push_back(is_known ? saved->columns[i] : Conclude(fits[i], data));
    for (std::string& name : FeatureNamesOf(fitted.form.columns.back())) {
      fitted.form.features.push_back(std::move(name));
    }
  }
  fitted.inputs = fits.empty() ? static_cast<int64_t>(columns.inputs.size())
                               : static_cast<int64_t>(fitted.form.features.size());
  const bool has_names = saved != nullptr && saved->features == fitted.form.features;
  const bool has_places =
      !fitted.form.features.empty() || (has_names && saved->label_column == columns.label);
  if (is_known && has_names && has_places && data.scale != FeatureScale::kNone &&
      saved->scale.shift.size() == static_cast<size_t>(fitted.inputs)) {
    fitted.form.scale = saved->scale;
  }
  return fitted;
}

}  // namespace dtrain
