#include "trainer/sets/load_data.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/names.h"
#include "trainer/config/config.h"
#include "trainer/order/held_out.h"
#include "trainer/rows/csv_fit.h"
#include "trainer/rows/idx.h"
#include "trainer/rows/read_table.h"
#include "trainer/rows/row_files.h"
#include "trainer/sets/cache_file.h"
#include "trainer/sets/class_weights.h"
#include "trainer/sets/file_sets.h"
#include "trainer/sets/generators.h"
#include "trainer/sets/mapped_images.h"
#include "trainer/sets/memory_rows.h"
#include "trainer/sets/running_scale.h"

namespace dtrain {
namespace {

// Returns images or made rows. `part` is "train" or "test".
DataSet LoadOther(const Config& config, const DataSourceConfig& source, const std::string& part) {
  const DataCache cache = config.data.cache;
  const bool in_memory = part != "train" || (cache != DataCache::kNone && cache != DataCache::kFile);
  if (source.format == DataFormat::kIdx) {
    const IdxFiles files = FindIdxFiles(source.images, source.labels, "data." + part);
    if (!in_memory) return MapImages(config.data, files, LabelRulesOf(config.model));
    IdxSet set = ReadIdxSet(files, "data." + part, LabelRulesOf(config.model));
    return BytesInMemory(std::move(set.images.bytes), std::move(set.labels), set.images.shape.row_bytes,
                         ClassesOf(config.model));
  }
  const uint64_t seed = config.data.seed;
  if (source.name == SyntheticName::kLinear) {
    return LinearRows(seed, part, config.model.inputs.value_or(kLinearInputs), source.rows);
  }
  const int64_t rows = source.rows.value_or(part == "train" ? kDigitTrainRows : kDigitTestRows);
  if (!in_memory) return DigitsAsRead(seed, part, rows);
  if (rows > kMaxDigitRows) {
    throw UserError("data.{}.rows = {}; must be <= {} for digits, which are kept in memory. Try {}{}.", part,
                    rows, kMaxDigitRows, kDigitTrainRows, part == "train" ? ", or data.cache: none" : "");
  }
  return DrawDigits(seed, part, rows);
}

bool IsInMemory(DataCache cache) { return cache != DataCache::kNone && cache != DataCache::kFile; }

// Names the columns of a form, or their number.
std::string ColumnsText(const InputForm& form) {
  const std::vector<std::string> names = ColumnNames(form);
  return names.empty() ? Plural(ColumnCount(form, static_cast<int64_t>(form.features.size())), "column")
                       : ListNames(names, "and");
}

// The form of the columns: the fitted one, or as the rows say. Scale and classes come later.
InputForm FormOf(const DataConfig& data, const InputForm* fitted, SourceInputs* inputs) {
  const bool is_fitted = fitted != nullptr && !fitted->columns.empty();
  InputForm form = FitColumns(data, inputs, false, is_fitted ? fitted : nullptr).form;
  form.scale = FittedScale();
  if (!is_fitted || form.columns == fitted->columns) return form;
  throw UserError(
      "{}: its columns are {}, and the model was trained with {}. Give the table with those columns, in that "
      "order.",
      PathText(data.train), ColumnsText(form), ColumnsText(*fitted));
}

// The model was made before anything was read of a pipe.
void CheckPipeWidth(const Config& config, int64_t inputs) {
  const std::optional<int64_t>& given = config.model.inputs;
  if (!ReadsPipe(config.data.train) || !given || *given == inputs) return;
  throw UserError("model.inputs = {}; must be {}, as data.train has. Set it so.", *given, inputs);
}

// Classes have the numbers that they have in the run, also where the rows would give others.
LabelRules RulesFor(const Config& config, const InputForm* fitted) {
  LabelRules rules = LabelRulesOf(config);
  if (rules.classes && fitted != nullptr && !fitted->classes.empty()) rules.given = fitted->classes;
  return rules;
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

// TextLoader: loads data.train and data.test from texts. Owner: LoadData(). Thread: one.
class TextLoader {
 public:
  TextLoader(const Config& config, const InputForm* fitted, const std::vector<std::string>& environment,
             bool checks)
      : config_(config),
        fitted_(fitted),
        checks_(checks),
        sparse_(HasSparseRows(config.data)),
        width_(sparse_ ? config.model.inputs.value() : 0),
        labels_(RulesFor(config, fitted)),
        inputs_(config.data.train.path, "data.train.path", environment) {}

  // Returns data.train. `form` gets the names of classes and what is known of columns.
  DataSet LoadTrain(InputForm* form) {
    const DataConfig& data = config_.data;
    const bool in_memory = IsInMemory(data.cache);
    // Without forms of columns the header has all, and a table in memory is read with it.
    if (!sparse_ && (!in_memory || HasColumnForms(data))) *form = FormOf(data, fitted_, &inputs_);
    DataSet set = in_memory ? ReadAll(form) : OpenFiles(form);
    if (form->classes.empty()) form->classes = set.facts()->class_names;
    CheckPipeWidth(config_, set.inputs());
    if (sparse_ && IsTable(data.train.format)) TakeColumns(columns(), form);
    return set;
  }

  // Returns data.test in memory, whose columns and classes are those of data.train.
  DataSet LoadTest(const InputForm& form) {
    const DataConfig& data = config_.data;
    SourceInputs inputs(data.test.path, "data.test.path");
    if (sparse_) {
      const CsvColumns train = columns();
      return SparseInMemory(ReadSparseTable(data, labels_, width_, &inputs, &train, &form.classes),
                            labels_.classes);
    }
    RowLabels classes(labels_, PathText(data.train), "", form.classes);
    const CsvTable train{columns(), how_, {}, std::move(classes), 0, {}};
    return TableInMemory(ReadTestTable(data, labels_, train, &inputs), labels_.classes);
  }

 private:
  DataSet ReadAll(InputForm* form) {
    const DataConfig& data = config_.data;
    how_ = form->columns;
    if (sparse_) {
      SparseTable table = ReadSparseTable(data, labels_, width_, &inputs_);
      columns_ = table.columns;
      return SparseInMemory(std::move(table), labels_.classes);
    }
    CsvTable table = ReadTrainTable(data, labels_, form->columns, &inputs_);
    columns_ = table.columns;
    if (form->columns.empty()) form->features = InputNames(table.columns);
    form->label_column = table.columns.label;
    form->table_columns = table.columns.count;
    return TableInMemory(std::move(table), labels_.classes);
  }

  DataSet OpenFiles(InputForm* form) {
    const DataConfig& data = config_.data;
    how_ = form->columns;
    if (inputs_.is_pipe()) {
      if (fitted_ != nullptr) form->scale = fitted_->scale;
      PipedSet piped = OpenPipe(config_, labels_, &inputs_, form);
      columns_ = std::move(piped.columns);
      return std::move(piped.set);
    }
    return data.cache == DataCache::kFile ? CachedSet(data, labels_, form->columns, width_)
                                          : StreamedSet(data, labels_, form->columns, width_, checks_);
  }

  // The columns of data.train, which are read again where its rows were not.
  const CsvColumns& columns() {
    if (!columns_) columns_ = RowFiles(config_.data, how_, width_).columns();
    return *columns_;
  }

  const Config& config_;
  const InputForm* const fitted_;
  const bool checks_;
  const bool sparse_;
  const int64_t width_;  // of sparse rows
  const LabelRules labels_;
  SourceInputs inputs_;
  std::vector<InputColumn> how_;  // columns become features of data.train
  std::optional<CsvColumns> columns_;
};

// Draws the rows that data.validation_by holds out of a set with an end, and gives them the first numbers.
void DrawHeldOut(const DataConfig& data, DataSet* set) {
  if (data.validation_by == HeldOutBy::kFirst || !set->rows()) return;
  if (data.validation_by == HeldOutBy::kSeed && set->fingerprint() && set->fingerprint()->labels == 0) {
    const std::vector<int32_t> same(static_cast<size_t>(*set->rows()));  // classes do not count
    set->HoldOut(std::make_shared<const HeldOutView>(HeldOutMarks(data, same)), {}, 0);
    return;
  }
  std::vector<int32_t> labels;  // or targets, by their bits
  VisitRows(*set, 0, *set->rows(), false, [&](const RowChunk& chunk) {
    const void* const bits = chunk.labels;
    labels.resize(labels.size() + static_cast<size_t>(chunk.count));
    std::memcpy(labels.data() + labels.size() - chunk.count, bits != nullptr ? bits : chunk.targets,
                static_cast<size_t>(chunk.count) * sizeof(int32_t));
  });
  auto view = std::make_shared<const HeldOutView>(HeldOutMarks(data, labels));
  std::vector<int64_t> class_rows;
  uint32_t crc = 0;
  int64_t seen = 0;
  view->ForEachRow(0, [&](int64_t row) {
    const int32_t label = labels[static_cast<size_t>(row)];
    crc = ColumnCrc(crc, &label, 1);
    if (seen++ < view->held_out() && set->classes()) CountClass(label, &class_rows);
  });
  set->HoldOut(std::move(view), std::move(class_rows), crc);
}

// Fits the scale of a set's rows, or of the numbers of sparse ones: of rows that are not in memory to the
// first ones.
FittedScale FitTo(const Config& config, const InputForm& form, const DataSet& set) {
  const DataConfig& data = config.data;
  const int64_t rows = *set.rows();
  const int64_t held_out = HeldOutRows(data, rows);
  const int64_t first = held_out < rows ? held_out : 0;  // else refused when batches are made
  if (const gpu::MatrixView<const float> all = set.floats(); set.blocks() == nullptr && all.data != nullptr) {
    const auto fitted = [&](const auto& visit) {
      if (set.view() != nullptr)
        return set.view()->ForEachRow(first, [&](int64_t row) { visit(all.row(row)); });
      for (int64_t row = first; row < rows; ++row) visit(all.row(row));
    };
    return WithoutFlags(FitScale(data.scale, all.cols, fitted), form.columns);
  }
  const int64_t count = set.blocks() == nullptr ? rows - first : std::min(data.fit_rows, rows - first);
  if (set.sparse()) return FitScaleOfRows(data.scale, set, first, count, NumbersOf(config.model));
  return WithoutFlags(FitScaleOfRows(data.scale, set, first, count), form.columns);
}

// Scales both sets as `fitted` says, or as fitted to data.train. Numbers of sparse rows are scaled where
// batches are numbered by rows of a table, and those of a pipe as they come.
void Scale(const Config& config, const InputForm* fitted, InputForm* form, DataSet* train, DataSet* test) {
  if (config.data.scale == FeatureScale::kNone) return;
  if (train->rows()) {
    form->scale = fitted != nullptr && !fitted->scale.empty() ? fitted->scale : FitTo(config, *form, *train);
    if (!train->sparse()) train->UseScale(form->scale);
  }
  if (test != nullptr && !test->sparse()) test->UseScale(form->scale);
}

}  // namespace

LoadedData LoadData(const Config& config, const InputForm* fitted,
                    const std::vector<std::string>& environment, bool checks) {
  const DataConfig& data = config.data;
  LoadedData loaded;
  loaded.classes_are_fitted = fitted != nullptr && !fitted->classes.empty();
  std::optional<TextLoader> text;
  if (IsText(data.train.format)) text.emplace(config, fitted, environment, checks);
  DataSet train = text ? text->LoadTrain(&loaded.form) : LoadOther(config, data.train, "train");
  DrawHeldOut(data, &train);
  std::optional<DataSet> test;
  if (data.test.format != DataFormat::kNone) {
    test.emplace(text ? text->LoadTest(loaded.form) : LoadOther(config, data.test, "test"));
    if (test->inputs() != train.inputs()) {
      throw UserError("data.test has {} and data.train has {}; they must be equal. Name files of one kind.",
                      Plural(test->inputs(), "input"), train.inputs());
    }
  }
  if (text) Scale(config, fitted, &loaded.form, &train, test ? &*test : nullptr);
  if (train.classes() && train.rows()) {  // rows of a pipe are weighed as they come
    const int64_t held_out = HeldOutRows(data, train.rows());
    train.UseClassWeights(
        ClassWeightsOf(data, loaded.form, *train.classes(), [&] { return WeighClasses(train, held_out); }));
  }
  if (!UsesTable(config)) train.MakeDense();
  if (train.facts() != nullptr) loaded.skipped = train.facts()->skipped;
  loaded.train = std::make_shared<DataSet>(std::move(train));
  if (!test) return loaded;
  if (!UsesTable(config)) test->MakeDense();
  if (test->facts() != nullptr) loaded.skipped_of_test = test->facts()->skipped;
  loaded.test = std::make_shared<DataSet>(std::move(*test));
  return loaded;
}

std::shared_ptr<const LoadedData> SharedData::Load(const Config& config, const InputForm& fitted,
                                                   const std::vector<std::string>& environment) {
  const auto load = [&] {
    return std::make_shared<const LoadedData>(LoadData(config, &fitted, environment));
  };
  if (!IsInMemory(config.data.cache) || ReadsPipe(config.data.train)) return load();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (fault_ != nullptr) std::rethrow_exception(fault_);
  std::shared_ptr<const LoadedData> loaded = loaded_.lock();
  const bool same = fitted.columns == fitted_.columns && fitted.scale == fitted_.scale;
  if (loaded != nullptr && same && fitted.classes == fitted_.classes) return loaded;
  try {
    loaded = load();
  } catch (...) {
    fault_ = std::current_exception();
    throw;
  }
  fitted_ = fitted;
  loaded_ = loaded;
  fingerprint_.reset();
  return loaded;
}

DataFingerprint SharedData::Fingerprint(const std::shared_ptr<const LoadedData>& loaded) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (loaded_.lock() != loaded) {
    lock.unlock();
    return FingerprintOf(*loaded->train);
  }
  if (!fingerprint_) fingerprint_ = FingerprintOf(*loaded->train);
  return *fingerprint_;
}

}  // namespace dtrain
