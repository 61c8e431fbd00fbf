#include "trainer/sets/load_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/names.h"
#include "trainer/order/held_out.h"
#include "trainer/rows/csv_fit.h"
#include "trainer/rows/csv_table.h"
#include "trainer/rows/idx.h"
#include "trainer/rows/row_files.h"
#include "trainer/sets/class_weights.h"
#include "trainer/sets/csr_set.h"
#include "trainer/sets/data_set.h"
#include "trainer/sets/digits.h"
#include "trainer/sets/mapped_images.h"
#include "trainer/sets/piped_set.h"
#include "trainer/sets/row_cache.h"
#include "trainer/sets/running_scale.h"
#include "trainer/sets/streamed_set.h"

namespace dtrain {
namespace {

// `part` is "train" or "test".
std::shared_ptr<const DataSet> Load(const Config& config, const DataSourceConfig& source,
                                    const std::string& part) {
  if (source.format == DataFormat::kNone) return nullptr;
  if (source.format == DataFormat::kIdx) {
    const IdxFiles files = FindIdxFiles(source.images, source.labels, "data." + part);
    if (part == "train" && config.data.cache == DataCache::kNone)
      return std::make_shared<MappedImages>(files, LabelRulesOf(config.model));
    IdxSet set = ReadIdxSet(files, "data." + part, LabelRulesOf(config.model));
    return std::make_shared<ByteSet>(std::move(set.images.bytes), std::move(set.labels),
                                     set.images.shape.row_bytes, ClassesOf(config.model));
  }
  const uint64_t seed = config.data.seed;
  if (source.name == SyntheticName::kLinear) {
    return std::make_shared<SyntheticLinear>(seed, part, config.model.inputs.value_or(kLinearInputs),
                                             source.rows);
  }
  const int64_t rows = source.rows.value_or(part == "train" ? kDigitTrainRows : kDigitTestRows);
  if (rows > kMaxDigitRows) {
    throw UserError("data.{}.rows = {}; must be <= {} for digits, which are kept in memory. Try {}.", part,
                    rows, kMaxDigitRows, kDigitTrainRows);
  }
  return std::make_shared<ByteSet>(DrawDigits(seed, part, rows));
}

std::shared_ptr<const DataSet> Weighted(std::shared_ptr<const DataSet> set, std::vector<float> weights) {
  if (weights.empty()) return set;
  return std::make_shared<WeightedSet>(std::move(set), std::move(weights), std::vector<float>());
}

std::shared_ptr<const DataSet> ToSet(CsvTable table, std::optional<int64_t> classes) {
  return Weighted(
      std::make_shared<FloatSet>(std::move(table.parsed.features), table.inputs, classes,
                                 std::move(table.labels.classes()), std::move(table.labels.targets())),
      std::move(table.parsed.weights));
}

std::shared_ptr<const DataSet> ToSet(SparseTable table, std::optional<int64_t> classes) {
  return Weighted(std::make_shared<CsrSet>(std::move(table.rows), classes, std::move(table.labels.classes()),
                                           std::move(table.labels.targets())),
                  std::move(table.weights));
}

// Moves the marked items to the front; both parts keep their order. An item is `width` values.
template <typename T>
void MoveToFront(const std::vector<bool>& marks, size_t width, std::vector<T>* values) {
  if (values->empty()) return;
  std::vector<T> front;
  for (size_t item = 0; item < marks.size(); ++item) {
    const auto begin = values->begin() + static_cast<int64_t>(item * width);
    if (marks[item]) front.insert(front.end(), begin, begin + static_cast<int64_t>(width));
  }
  auto end = values->end();  // of the items that are not in their place yet
  for (size_t item = marks.size(); item-- > 0;) {
    const auto begin = values->begin() + static_cast<int64_t>(item * width);
    if (!marks[item]) end = std::copy_backward(begin, begin + static_cast<int64_t>(width), end);
  }
  std::copy(front.begin(), front.end(), values->begin());
}

// Held-out rows are the first ones of a set. Returns which of `rows` they are; empty: the first as they come.
std::vector<bool> MarksOf(const DataConfig& data, int64_t rows, const RowLabels& labels) {
  if (data.validation_by == HeldOutBy::kFirst) return {};
  std::vector<int32_t> classes = labels.classes();
  classes.resize(static_cast<size_t>(rows));
  return HeldOutMarks(data, classes);
}

void MoveLabels(const std::vector<bool>& marks, RowLabels* labels) {
  MoveToFront(marks, 1, &labels->classes());
  MoveToFront(marks, 1, &labels->targets());
}

void MoveHeldOut(const DataConfig& data, CsvTable* train) {
  const std::vector<bool> marks = MarksOf(data, train->Rows().rows, train->labels);
  if (marks.empty()) return;
  MoveToFront(marks, static_cast<size_t>(train->inputs), &train->parsed.features);
  MoveToFront(marks, 1, &train->parsed.weights);
  MoveLabels(marks, &train->labels);
}

void MoveHeldOut(const DataConfig& data, SparseTable* train) {
  const std::vector<bool> marks = MarksOf(data, train->rows.count(), train->labels);
  if (marks.empty()) return;
  CsrRows moved(train->rows.inputs());
  moved.Reserve(static_cast<size_t>(train->rows.features()));
  SparseBuffer row;
  for (const bool held_out : {true, false}) {
    for (int64_t i = 0; i < train->rows.count(); ++i) {
      if (marks[static_cast<size_t>(i)] != held_out) continue;
      row.Clear();
      train->rows.CopyRow(i, &row);
      moved.Append(row);
    }
  }
  train->rows = std::move(moved);
  MoveToFront(marks, 1, &train->weights);
  MoveLabels(marks, &train->labels);
}

// Returns the training rows without those held out, on which the scale is fitted.
gpu::MatrixView<const float> FittedRows(const DataConfig& data, CsvTable* train) {
  const gpu::MatrixView<float> all = train->Rows();
  // Holding out all rows is refused when batches are made.
  const int64_t held_out = std::min(HeldOutRows(data, all.rows), all.rows);
  return gpu::MatrixView<float>(all.row(held_out), all.rows - held_out, all.cols);
}

// The form of the columns: the fitted one, or as the rows say. Scale and classes come later.
InputForm FormOf(const DataConfig& data, const InputForm* fitted, SourceInputs* inputs) {
  if (fitted == nullptr || fitted->columns.empty()) return FitColumns(data, inputs).form;
  InputForm form = *fitted;
  form.scale = FittedScale();
  form.classes.clear();
  return form;
}

// Fits the scale of a set's rows, or of the numbers of sparse ones, unless there is one: of rows that are not
// in memory to the first ones.
void FitScaleTo(const Config& config, const InputForm* fitted, const DataSet& set, InputForm* form) {
  const DataConfig& data = config.data;
  if (data.scale == FeatureScale::kNone) return;
  if (fitted != nullptr && !fitted->scale.empty()) {
    form->scale = fitted->scale;
    return;
  }
  const int64_t rows = *set.rows();
  const int64_t held_out = HeldOutRows(data, rows);
  const int64_t first = held_out < rows ? held_out : 0;  // else refused when batches are made
  const int64_t count =
      data.cache == DataCache::kMemory ? rows - first : std::min(data.fit_rows, rows - first);
  if (set.sparse()) {
    form->scale = FitScaleOfRows(data.scale, set, first, count, NumbersOf(config.model));
  } else {
    form->scale = WithoutFlags(FitScaleOfRows(data.scale, set, first, count), form->columns);
  }
}

// Scales a set that is not in memory. Numbers of sparse rows are scaled where batches are numbered by rows of
// a table.
template <typename Set>
void ScaleSet(const Config& config, const InputForm* fitted, Set* set, InputForm* form) {
  FitScaleTo(config, fitted, *set, form);
  if (!set->sparse()) set->UseScale(form->scale);
}

// The model was made before anything was read of a pipe.
void CheckPipeWidth(const Config& config, int64_t inputs) {
  const std::optional<int64_t>& given = config.model.inputs;
  if (!ReadsPipe(config.data.train) || !given || *given == inputs) return;
  throw UserError("model.inputs = {}; must be {}, as data.train has. Set it so.", *given, inputs);
}

// What rows need to be read for a model of a table with hashed columns.
void TakeColumns(const CsvColumns& columns, InputForm* form) {
  form->label_column = columns.label;
  form->table_columns = columns.count;
  for (const int64_t input : columns.inputs) {
    form->columns.emplace_back();
    form->columns.back().column = input;
    if (!columns.names.empty()) form->columns.back().name = columns.names[static_cast<size_t>(input)];
  }
}

// Loads data.test of sparse rows into memory; `columns`: of data.train, if that is a table.
void LoadSparseTest(const Config& config, const LabelRules& labels, const CsvColumns& columns,
                    LoadedData* loaded) {
  const DataConfig& data = config.data;
  if (data.test.format == DataFormat::kNone) return;
  SourceInputs inputs(data.test.path, "data.test.path");
  SparseTable test =
      ReadSparseTable(data, labels, *config.model.inputs, &inputs, &columns, &loaded->form.classes);
  loaded->skipped_of_test = test.skipped;
  loaded->test = ToSet(std::move(test), labels.classes);
}

// The same of a table whose rows are not sparse.
void LoadCsvTest(const Config& config, const LabelRules& labels, const CsvColumns& columns,
                 LoadedData* loaded) {
  const DataConfig& data = config.data;
  if (data.test.format == DataFormat::kNone) return;
  RowLabels classes(labels, PathText(data.train), "", loaded->form.classes);
  const CsvTable train{columns, loaded->form.columns, {}, std::move(classes), 0, {}};
  SourceInputs inputs(data.test.path, "data.test.path");
  CsvTable test = ReadTestTable(data, labels, train, &inputs);
  loaded->skipped_of_test = test.skipped;
  if (!loaded->form.scale.shift.empty()) ApplyScale(loaded->form.scale, test.Rows());
  loaded->test = ToSet(std::move(test), labels.classes);
}

// Loads data.train from files in each epoch, from a cache or from a pipe; data.test is kept in memory. Of
// sparse rows model.inputs is set.
LoadedData LoadFromFiles(const Config& config, const LabelRules& labels, const InputForm* fitted,
                         const std::vector<std::string>& environment) {
  const DataConfig& data = config.data;
  const bool sparse = HasSparseRows(data);
  const int64_t width = sparse ? *config.model.inputs : 0;
  LoadedData loaded;
  SourceInputs inputs(data.train.path, "data.train.path", environment);
  if (!sparse) loaded.form = FormOf(data, fitted, &inputs);
  CsvColumns columns;
  const auto take = [&](const auto& set) {
    ScaleSet(config, fitted, set.get(), &loaded.form);
    loaded.form.classes = set->class_names();
    loaded.skipped = set->skipped();
    loaded.train = set;
  };
  if (inputs.is_pipe()) {
    if (fitted != nullptr) loaded.form.scale = fitted->scale;
    const auto set = std::make_shared<PipedSet>(config, labels, &inputs, &loaded.form);
    CheckPipeWidth(config, set->inputs());
    columns = set->columns();
    loaded.skipped = set->skipped();
    loaded.train = set;
  } else if (data.cache == DataCache::kFile) {
    take(CachedSet::Of(data, labels, loaded.form.columns, width));
  } else {
    take(std::make_shared<StreamedSet>(data, labels, loaded.form.columns, width));
  }
  const bool hashed = sparse && data.train.format == DataFormat::kCsv;
  if (data.test.format == DataFormat::kNone && !hashed) return loaded;
  if (!inputs.is_pipe()) columns = RowFiles(data, loaded.form.columns, width).columns();
  if (hashed) TakeColumns(columns, &loaded.form);
  if (data.test.format == DataFormat::kNone) return loaded;
  sparse ? LoadSparseTest(config, labels, columns, &loaded) : LoadCsvTest(config, labels, columns, &loaded);
  return loaded;
}

// Loads data.train and data.test, those that exist, from texts of sparse rows. model.inputs is set.
LoadedData LoadSparse(const Config& config, const LabelRules& labels, const InputForm* fitted,
                      const std::vector<std::string>& environment) {
  LoadedData loaded;
  SourceInputs inputs(config.data.train.path, "data.train.path", environment);
  SparseTable train = ReadSparseTable(config.data, labels, *config.model.inputs, &inputs);
  MoveHeldOut(config.data, &train);
  loaded.form.classes = train.labels.names();
  loaded.skipped = train.skipped;
  const CsvColumns columns = train.columns;
  if (config.data.train.format == DataFormat::kCsv) TakeColumns(columns, &loaded.form);
  loaded.train = ToSet(std::move(train), labels.classes);
  FitScaleTo(config, fitted, *loaded.train, &loaded.form);
  LoadSparseTest(config, labels, columns, &loaded);
  return loaded;
}

// Loads data.train and data.test, those that exist, from CSV; `fitted` as for LoadData().
LoadedData LoadCsv(const Config& config, const LabelRules& labels, const InputForm* fitted,
                   const std::vector<std::string>& environment) {
  const DataConfig& data = config.data;
  LoadedData loaded;
  SourceInputs train_inputs(data.train.path, "data.train.path", environment);
  // Without forms of columns the header has all, and it is read with the rows.
  if (HasColumnForms(data)) loaded.form = FormOf(data, fitted, &train_inputs);
  CsvTable train = ReadTrainTable(data, labels, loaded.form.columns, &train_inputs);
  CheckPipeWidth(config, train.inputs);
  MoveHeldOut(data, &train);
  if (loaded.form.columns.empty()) loaded.form.features = InputNames(train.columns);
  loaded.form.label_column = train.columns.label;
  loaded.form.table_columns = train.columns.count;
  std::optional<CsvTable> test;
  if (data.test.format == DataFormat::kCsv) {
    SourceInputs test_inputs(data.test.path, "data.test.path");
    test.emplace(ReadTestTable(data, labels, train, &test_inputs));
  }
  loaded.form.classes = train.labels.names();
  loaded.skipped = train.skipped;
  if (test.has_value()) loaded.skipped_of_test = test->skipped;
  if (data.scale != FeatureScale::kNone) {
    const bool known = fitted != nullptr && !fitted->scale.shift.empty();
    loaded.form.scale =
        known ? fitted->scale
              : WithoutFlags(FitScale(data.scale, FittedRows(data, &train)), loaded.form.columns);
    ApplyScale(loaded.form.scale, train.Rows());
    if (test.has_value()) ApplyScale(loaded.form.scale, test->Rows());
  }
  loaded.train = ToSet(std::move(train), labels.classes);
  if (test.has_value()) loaded.test = ToSet(std::move(*test), labels.classes);
  return loaded;
}

}  // namespace

namespace {

LoadedData LoadOther(const Config& config) {
  LoadedData data;
  data.train = Load(config, config.data.train, "train");
  data.test = Load(config, config.data.test, "test");
  if (data.test != nullptr && data.test->inputs() != data.train->inputs()) {
    throw UserError("data.test has {} and data.train has {}; they must be equal. Name files of one kind.",
                    Plural(data.test->inputs(), "input"), data.train->inputs());
  }
  return data;
}

LoadedData LoadText(const Config& config, const InputForm* fitted,
                    const std::vector<std::string>& environment) {
  const bool sparse = HasSparseRows(config.data);
  DT_CHECK(!sparse || config.model.inputs.has_value());
  const LabelRules labels = LabelRulesOf(config);
  if (config.data.cache == DataCache::kNone || config.data.cache == DataCache::kFile)
    return LoadFromFiles(config, labels, fitted, environment);
  return sparse ? LoadSparse(config, labels, fitted, environment)
                : LoadCsv(config, labels, fitted, environment);
}

}  // namespace

LoadedData LoadData(const Config& config, const InputForm* fitted,
                    const std::vector<std::string>& environment) {
  LoadedData data =
      IsText(config.data.train.format) ? LoadText(config, fitted, environment) : LoadOther(config);
  if (data.train->sparse() && !UsesTable(config)) {
    data.train = std::make_shared<DenseSet>(std::move(data.train));
    if (data.test != nullptr) data.test = std::make_shared<DenseSet>(std::move(data.test));
  }
  if (!data.train->classes() || !data.train->rows()) return data;  // rows of a pipe are weighed as they come
  const int64_t held_out = HeldOutRows(config.data, data.train->rows());
  std::vector<float> class_weights = ClassWeightsOf(config.data, data.form, *data.train->classes(), [&] {
    return CountClasses(*data.train, held_out).trained;
  });
  if (!class_weights.empty()) {
    data.train =
        std::make_shared<WeightedSet>(std::move(data.train), std::vector<float>(), std::move(class_weights));
  }
  return data;
}

}  // namespace dtrain
