#include "trainer/survey/data_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <string_view>
#include <tuple>

#include "base/names.h"
#include "trainer/batch/class_names.h"
#include "trainer/config/config.h"
#include "trainer/config/user_text.h"
#include "trainer/input/iso_date.h"
#include "trainer/input/sources.h"
#include "trainer/input/text_reader.h"
#include "trainer/order/held_out.h"
#include "trainer/rows/csv_columns.h"
#include "trainer/rows/pass.h"
#include "trainer/rows/vw_line.h"

namespace dtrain {
namespace {

// Rows that are not in memory were counted by nobody.
bool HasLabels(const DataSet* set) {
  return set != nullptr && set->classes() && set->rows() &&
         (set->blocks() == nullptr || set->class_rows() != nullptr);
}

using Counts = std::vector<int64_t>;

int64_t CountOf(const Counts& counts, size_t label) { return label < counts.size() ? counts[label] : 0; }

int64_t Sum(const Counts& counts) { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }

int64_t ClassesIn(const Counts& counts) {
  return std::count_if(counts.begin(), counts.end(), [](int64_t count) { return count > 0; });
}

std::string ClassText(const InputForm& form, size_t label) {
  return label < form.classes.size() ? form.classes[label] : fmt::format("{}", label);
}

std::string ShuffleRemedy(const DataSourceConfig& train) {
  switch (train.format) {
    case DataFormat::kCsv:
      return fmt::format("Shuffle the rows of {} (shuf{})", PathText(train),
                         train.header ? ", without its header" : "");
    case DataFormat::kLibsvm:
    case DataFormat::kVw:
    case DataFormat::kCriteo:
      return fmt::format("Shuffle the rows of {} (shuf)", PathText(train));
    case DataFormat::kTfrecord:
      return fmt::format("Shuffle the records of {}", PathText(train));
    case DataFormat::kIdx:
      return "Shuffle the images and their labels together";
    default:
      return "Raise data.train.rows";
  }
}

// Returns "20 of the 20 held-out rows (data.validation)", leaving out parts that have none.
std::string WhereText(int64_t held_out, int64_t test, const LabelCounts& counts) {
  std::vector<std::string> places;
  if (held_out > 0) {
    places.push_back(
        fmt::format("{} of the {} held-out rows (data.validation)", held_out, Sum(counts.held_out)));
  }
  if (test > 0) places.push_back(fmt::format("{} of the {} rows of data.test", test, Sum(counts.test)));
  return ListText(places, "and");
}

// Returns the warning about classes that are in no row that is trained on.
std::string UnseenText(const DataConfig& data, const InputForm& form, const LabelCounts& counts) {
  std::vector<std::string> unseen;
  int64_t held_out = 0, test = 0;
  for (size_t label = 0; label < std::max(counts.held_out.size(), counts.test.size()); ++label) {
    if (CountOf(counts.trained, label) > 0) continue;
    const int64_t here = CountOf(counts.held_out, label), there = CountOf(counts.test, label);
    if (here + there > 0) unseen.push_back(ClassText(form, label));
    held_out += here;
    test += there;
  }
  if (unseen.empty()) return "";
  const bool one = unseen.size() == 1;
  return fmt::format("{} {} {} in {} and in no row that is trained on: never learned. {}",
                     one ? "class" : "classes", ListNames(unseen, "and"), one ? "is" : "are",
                     WhereText(held_out, test, counts),
                     held_out > 0 ? ShuffleRemedy(data.train) + ", or set a smaller data.validation."
                                  : "Are data.train and data.test parts of the same rows, shuffled?");
}

constexpr double kFewSteps = 1000;
constexpr size_t kMaxRows = 1000;         // that are read again
constexpr size_t kMaxValues = 1'000'000;  // of these rows; at least two rows are read
constexpr int64_t kTarget = -1;           // in place of a feature
constexpr double kNoiseOfDouble = 1e-12;  // relative to the value: possible rounding noise of a sum in double

// Returns the distance from `value` to the next float32.
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
  FittedScale range = FitScale(FeatureScale::kUnit, rows);
  for (size_t c = 0; c < range.shift.size(); ++c) {
    const double width = range.factor[c] == 0 ? 0 : 1 / range.factor[c];
    range.shift[c] = std::max(std::fabs(range.shift[c]), std::fabs(range.shift[c] + width));
  }
  return NarrowByScale(range);
}

// Returns the columns that features are read from, -1 for those that are no numbers of the file: one for each
// category, or for gaps.
std::vector<int64_t> ColumnsOfFeatures(const CsvColumns& columns, const InputForm& form) {
  if (form.columns.empty()) return columns.inputs;
  std::vector<int64_t> of_features;
  for (const InputColumn& column : form.columns) {
    of_features.push_back(column.is_category ? -1 : column.column);
    of_features.resize(of_features.size() + static_cast<size_t>(column.features()) - 1, -1);
  }
  return of_features;
}

// ReadValue: a number, or the days of a date, as a double, and in full where that may have fewer digits.
struct ReadValue {
  double number = 0;
  std::string digits;

  bool operator<(const ReadValue& other) const {
    return std::tie(number, digits) < std::tie(other.number, other.digits);
  }
};

ReadValue ValueOf(std::string_view text, Decimal decimal) {
  constexpr size_t kExactDigits = 15;
  const bool is_long = text.size() > kExactDigits && text.find_first_not_of("0123456789+-") == text.npos;
  const std::optional<double> number = ExactNumber(text, decimal);
  return {number ? *number : DaysOfDate(text).value_or(0), is_long ? std::string(text) : ""};
}

// Returns the values of each of `features`, or of the target, in the first rows of data.train; none for those
// that are no numbers of the file.
std::vector<std::vector<ReadValue>> FirstValues(const DataConfig& data, const InputForm& form,
                                                const std::vector<int64_t>& features) {
  RowContext context;
  context.records = IsTable(data.train.format);
  SourceInputs inputs(data.train.path, "data.train.path");
  Pass pass(data, context, &inputs);
  const std::vector<int64_t> all = ColumnsOfFeatures(pass.columns(), form);
  const auto text_of = [&](int64_t feature) {
    if (feature == kTarget) return pass.rows().label().text;
    const int64_t column = all[static_cast<size_t>(feature)];
    return column < 0 ? std::string_view() : pass.rows().Field(column);
  };
  const auto rows = static_cast<int64_t>(std::clamp(kMaxValues / features.size(), size_t{2}, kMaxRows));
  std::vector<std::vector<ReadValue>> values(features.size());
  for (ParsedRows row; pass.count() < rows && pass.Next(&row, nullptr); row.Clear()) {
    for (size_t i = 0; i < features.size(); ++i) {
      const std::string_view text = text_of(features[i]);
      if (!IsMissing(text)) values[i].push_back(ValueOf(text, data.decimal));
    }
  }
  return values;
}

struct Distinct {
  int64_t exact = 0;
  int64_t rounded = 0;
};

Distinct CountDistinct(std::vector<ReadValue> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  Distinct distinct{1, 1};
  const ReadValue* before = &values.front();  // the last value that was counted
  for (const ReadValue& value : values) {
    const double number = value.number;
    const bool is_noise = number - before->number <= kNoiseOfDouble * std::fabs(number);
    if (value.digits.empty() || before->digits.empty() ? is_noise : value.digits == before->digits) continue;
    ++distinct.exact;
    if (static_cast<float>(number) != static_cast<float>(before->number)) ++distinct.rounded;
    before = &value;
  }
  return distinct;
}

constexpr char kSubtract[] = "Subtract a constant from the column";

// Whether a feature is the days of dates.
bool IsOfDates(const InputForm& form, int64_t feature) {
  for (const InputColumn& column : form.columns) {
    if (feature < column.features()) return column.is_date;
    feature -= column.features();
  }
  return false;
}

// Returns the warning about `title`, a feature or the target; empty: float32 tells its values apart.
std::string RoundedText(const std::string& title, const std::string& path,
                        const std::vector<ReadValue>& values, const std::string& remedy) {
  const Distinct distinct = CountDistinct(values);
  if (distinct.exact == distinct.rounded) return "";
  return fmt::format(
      "{}: the {} that differ in the first {} of {} are {} in float32, whose steps are {:g} there. {}", title,
      Plural(distinct.exact, "value"), Plural(static_cast<int64_t>(values.size()), "row"), path,
      distinct.rounded, StepAt(values[0].number), remedy);
}

// Returns "3 unseen texts in data.categories, each taken as other or as none of the features: plan in 3 rows,
// most often "A" (2)".
std::string UnseenTextsText(const SkippedRows& skipped) {
  std::vector<std::string> columns;
  for (const auto& [column, of_column] : skipped.unseen_in) {
    const auto& [text, rows] = of_column.MostFrequent();
    columns.push_back(fmt::format("{} in {}, most often {} ({})", column, Plural(of_column.rows, "row"),
                                  text.empty() ? "no text" : Quoted(Shown(text)), rows));
  }
  return fmt::format("{} in data.categories, each taken as other or as none of the features{}{}",
                     Plural(skipped.unseen, "unseen text"), columns.empty() ? "" : ": ",
                     ListNames(columns, "and"));
}

}  // namespace

std::string SkippedText(const std::string& section, const SkippedRows& skipped) {
  std::vector<std::string> parts;
  if (skipped.bad > 0) {
    constexpr size_t kShown = 3;
    const size_t shown = std::min(kShown, skipped.faults.size());
    parts.push_back(fmt::format(
        "{} could not be read (data.bad_rows: skip), {}: {}", Plural(skipped.bad, "row"),
        skipped.bad > static_cast<int64_t>(shown) ? "the first" : "these",
        fmt::join(skipped.faults.begin(), skipped.faults.begin() + static_cast<std::ptrdiff_t>(shown), " ")));
  }
  if (skipped.with_gaps > 0) {
    parts.push_back(
        fmt::format("{} with a missing value (data.missing: drop)", Plural(skipped.with_gaps, "row")));
  }
  if (!skipped.headers.empty()) parts.push_back(fmt::format("{}", fmt::join(skipped.headers, ", ")));
  if (skipped.unlabelled > 0) {
    parts.push_back(fmt::format("{} without a label", Plural(skipped.unlabelled, "row")));
  }
  if (skipped.beyond > 0) {
    parts.push_back(fmt::format("{} that the model has not", Plural(skipped.beyond, "feature")));
  }
  if (!parts.empty()) parts = {fmt::format("left out: {}", fmt::join(parts, "; "))};
  if (skipped.unseen > 0) parts.push_back(UnseenTextsText(skipped));
  if (!skipped.unused.empty()) {
    std::vector<std::string> names;
    for (const std::string& name : skipped.unused) names.push_back(Quoted(Shown(name)));
    parts.push_back("columns that are not used, since the model has none of these names: " +
                    ListNames(names, "and"));
  }
  parts.insert(parts.end(), skipped.notes.begin(), skipped.notes.end());
  return parts.empty() ? "" : fmt::format("{}: {}", section, fmt::join(parts, "; "));
}

LabelCounts CountLabels(const LoadedData& data, int64_t validation) {
  constexpr int64_t kMaxRead = 1'000'000;  // of rows that are not in memory
  LabelCounts counts;
  if (HasLabels(data.train.get()) && data.train->class_rows() != nullptr && validation > kMaxRead) {
    counts.trained = *data.train->class_rows();
  } else if (HasLabels(data.train.get())) {
    static_cast<ClassCounts&>(counts) = CountClasses(*data.train, validation);
  }
  if (HasLabels(data.test.get())) counts.test = CountClasses(*data.test, 0, *data.test->rows());
  return counts;
}

std::string UnusedOutputsText(const ModelConfig& model, const InputForm& form, const LabelCounts& counts) {
  const auto used =
      static_cast<int64_t>(std::max({counts.held_out.size(), counts.trained.size(), counts.test.size()}));
  if (HeadOf(model) == ModelHead::kLogistic && used == 1) {
    return "all labels of the data are of class 0, and a logistic model tells two: are these the right "
           "labels?";
  }
  if (!HasOutputPerClass(model)) return "";
  const int64_t outputs = *model.outputs;
  if (used == 0 || used >= outputs) return "";
  const auto names = static_cast<int64_t>(form.classes.size());
  if (names == outputs) {  // they were given
    return fmt::format("no row is of class {}. Correct data.classes: it names the classes of the rows.",
                       ListNames({form.classes.begin() + used, form.classes.end()}, "or"));
  }
  const std::string unused = used + 1 == outputs ? fmt::format("output {} is", used)
                                                 : fmt::format("outputs {} to {} are", used, outputs - 1);
  const std::string there = names == 0 ? fmt::format("the largest label of the data is {}", used - 1)
                                       : fmt::format("the data has {} names of classes", names);
  return fmt::format(
      "model.outputs = {}, and {}: {} never right. {}", outputs, there, unused,
      used < 2 ? "Are these the right labels?" : fmt::format("Set model.outputs to {}.", used));
}

std::string UnseenClassesText(const DataConfig& data, const InputForm& form, const LabelCounts& counts) {
  if (counts.trained.empty()) return "";
  const std::string unseen = UnseenText(data, form, counts);
  if (!unseen.empty()) return unseen;
  const int64_t others = ClassesIn(counts.trained);
  if (ClassesIn(counts.held_out) != 1 || others == 1) return "";
  return fmt::format(
      "data.validation = {}, and the rows held out are all of class {}, the others of {} classes: a measure "
      "of one class alone. {}",
      HeldOutText(data), ListNames({ClassText(form, counts.held_out.size() - 1)}, "and"), others,
      data.validation_by == HeldOutBy::kStratified
          ? "The others have too few rows for a share: set a larger data.validation."
          : ShuffleRemedy(data.train) + ", or set a larger data.validation.");
}

std::string RoundedFeaturesText(const DataConfig& data, const LoadedData& loaded) {
  if (!IsTable(data.train.format) || data.bad_rows == BadRows::kSkip) return "";
  if (HasSparseRows(data)) return "";    // they have no columns of floats
  if (ReadsPipe(data.train)) return "";  // it cannot be read again
  const InputForm& form = loaded.form;
  const std::vector<int64_t> narrow =
      form.scale.shift.empty() ? NarrowByRange(loaded.train->floats()) : NarrowByScale(form.scale);
  if (narrow.empty()) return "";
  const std::vector<std::vector<ReadValue>> values = FirstValues(data, form, narrow);
  std::string told;  // of the first, with its numbers
  std::vector<std::string> others;
  for (size_t i = 0; i < narrow.size(); ++i) {
    const std::string title = FeatureTitle(form, narrow[i]);
    const bool date = IsOfDates(form, narrow[i]);
    std::string text = RoundedText(
        "feature " + Shown(title), PathText(data.train), values[i],
        fmt::format(
            "{}, here and wherever it is predicted from: data.scale comes too late for that.",
            date ? "Write the time since a day near them in place of dates, as a number" : kSubtract));
    if (!text.empty() && !told.empty()) others.push_back(title);
    if (told.empty()) told = std::move(text);
  }
  return others.empty() ? told : fmt::format("{} The same holds for {}.", told, ListNames(others, "and"));
}

std::string LargeFeatureText(const DataConfig& data, const LoadedData& loaded) {
  // The default learning rate of 0.01 is too large for squares of such features.
  constexpr float kLarge = 10;
  const bool raw = IsTable(data.train.format) && data.scale == FeatureScale::kNone;
  if (!raw || loaded.train == nullptr) return "";
  const gpu::MatrixView<const float> rows = loaded.train->floats();
  int64_t largest = 0;
  for (int64_t i = 1; i < rows.size(); ++i) {
    if (std::fabs(rows.data[i]) > std::fabs(rows.data[largest])) largest = i;
  }
  if (rows.size() == 0 || std::fabs(rows.data[largest]) <= kLarge) return "";
  return fmt::format("Feature {} is as large as {:.6g}, and data.scale is none",
                     Shown(FeatureTitle(loaded.form, largest % rows.cols)), rows.data[largest]);
}

namespace {

// Tables that are written without names often have the numbers of the columns there, and a row of such
// numbers looks the same.
std::string CountingHeaderText(const DataConfig& data, const InputForm& form) {
  const DataSourceConfig& train = data.train;
  const std::vector<std::string> names = ColumnNames(form);
  const bool count = std::all_of(names.begin(), names.end(),
                                 [](const std::string& name) { return ColumnNumber(name).has_value(); });
  const bool by_number = ColumnNumber(train.label).has_value();
  if (train.format != DataFormat::kCsv || !train.header || !by_number || names.empty() || !count) return "";
  return fmt::format(
      "{}: its first line is taken for the names of columns, {}. If it is a row, set data.train.header to "
      "false.",
      PathText(train), ListNames(names, "and"));
}

// Labels that are numbers from 1, or with gaps between them, leave outputs without a row.
std::string NeverComeText(const Config& config, const InputForm& form, const LabelCounts& counts) {
  if (!HasOutputPerClass(config.model) || !IsText(config.data.train.format) || !form.classes.empty())
    return "";
  const int64_t outputs = *config.model.outputs;
  std::vector<std::string> missing;
  int64_t rows = 0;  // of the last class
  for (int64_t class_number = 0; class_number < outputs; ++class_number) {
    const auto k = static_cast<size_t>(class_number);
    rows = CountOf(counts.held_out, k) + CountOf(counts.trained, k) + CountOf(counts.test, k);
    if (rows == 0) missing.push_back(fmt::format("{}", k));
  }
  if (missing.empty() || rows == 0) return "";  // UnusedOutputsText() tells of the last ones
  return fmt::format(
      "labels are the numbers of classes, from 0 to {}, and no row is of class {}: {} never right. Set "
      "data.label_type to names: then the classes are the labels that come.",
      outputs - 1, ListNames(missing, "or"), missing.size() == 1 ? "that output is" : "those outputs are");
}

// Numbers that do not count from 0, nor are -1 and 1, are read as names unless the config says what they are.
std::string NamedNumbersText(const Config& config, const LoadedData& loaded) {
  const DataConfig& data = config.data;
  const InputForm& form = loaded.form;
  const bool counted = loaded.classes_are_fitted || data.label_type == LabelType::kAuto;
  const bool said = !counted || !data.classes.empty();
  const auto is_number = [](const std::string& name) { return LabelNumber(name).has_value(); };
  const bool numbers = std::all_of(form.classes.begin(), form.classes.end(), is_number);
  if (said || form.classes.empty() || form.classes == SignedClasses() || !numbers) return "";
  return fmt::format(
      "labels are numbers that do not count from 0, and are read as names of {}. Set data.label_type to "
      "names to say so{}.",
      ClassNamesText(form.classes),
      HasOutputPerClass(config.model) ? ", or model.outputs for outputs that are numbered from 0" : "");
}

// Targets that float32 cannot tell apart, as features are. Reads the first rows again.
std::string RoundedTargetsText(const Config& config, const InputForm& form) {
  const DataConfig& data = config.data;
  if (HasClasses(config.model) || !IsText(data.train.format) || ReadsPipe(data.train)) return "";
  const std::vector<ReadValue> values = FirstValues(data, form, {kTarget})[0];
  if (values.empty()) return "";
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  const double largest = std::max(std::fabs(min->number), std::fabs(max->number));
  if (!IsNarrow(max->number - min->number, largest)) return "";
  return RoundedText("the target", PathText(data.train), values,
                     fmt::format("{}, and add it to what is predicted.", kSubtract));
}

// Reads until each letter of data.crosses was found, or as much as the limit. A pipe cannot be read again.
std::string UnknownNamespacesText(const DataConfig& data) {
  constexpr int64_t kMaxBytes = int64_t{64} << 20;
  std::set<char> letters = CrossedLetters(data);
  if (letters.empty() || data.train.format != DataFormat::kVw || ReadsPipe(data.train)) return "";
  const SourceInputs inputs(data.train.path, "data.train.path");
  int64_t bytes = 0, rows = 0;
  for (const std::string& file : inputs.files()) {
    LineReader reader(OpenInput(file, inputs.key()));
    while (!letters.empty() && bytes < kMaxBytes && reader.Next()) {
      EraseLettersOf(reader.line(), &letters);
      bytes += static_cast<int64_t>(reader.line().size()) + 1;
      ++rows;
    }
  }
  if (letters.empty()) return "";
  std::vector<std::string> names;
  for (const char letter : letters) names.emplace_back(1, letter);
  return fmt::format(
      "data.crosses: no namespace in {}{} begins with {}: such pairs are no features. Correct the letters, "
      "or leave the pairs out.",
      bytes < kMaxBytes ? "" : fmt::format("the first {} of ", Plural(rows, "row")), PathText(data.train),
      ListNames(names, "or"));
}

}  // namespace

std::vector<std::string> DataWarnings(const Config& config, const LoadedData& data) {
  const LabelCounts counts =
      CountLabels(data, data.train == nullptr ? 0 : HeldOutRows(config.data, data.train->rows()));
  std::vector<std::string> warnings;
  for (const std::string& text :
       {UnusedOutputsText(config.model, data.form, counts), NeverComeText(config, data.form, counts),
        UnseenClassesText(config.data, data.form, counts), RoundedFeaturesText(config.data, data),
        NamedNumbersText(config, data), RoundedTargetsText(config, data.form),
        CountingHeaderText(config.data, data.form), EmptyColumnsText(data),
        WeightlessText(config.data, data, counts), FeatureSizeText(data), UnknownNamespacesText(config.data),
        SkippedText("data.train", data.skipped), SkippedText("data.test", data.skipped_of_test)}) {
    if (!text.empty()) warnings.push_back(text);
  }
  return warnings;
}

}  // namespace dtrain
