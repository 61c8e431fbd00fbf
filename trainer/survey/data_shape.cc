#include "trainer/survey/data_shape.h"

#include <fmt/core.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/names.h"
#include "base/tfrecord.h"
#include "trainer/batch/class_names.h"
#include "trainer/config/config.h"
#include "trainer/config/user_text.h"
#include "trainer/input/input_bytes.h"
#include "trainer/input/sources.h"
#include "trainer/order/held_out.h"
#include "trainer/order/order.h"
#include "trainer/rows/csv_fit.h"
#include "trainer/rows/idx.h"
#include "trainer/rows/label_rules.h"
#include "trainer/rows/pass.h"
#include "trainer/rows/row_files.h"
#include "trainer/rows/row_labels.h"
#include "trainer/sets/generators.h"
#include "trainer/sets/mapped_images.h"

namespace dtrain {
namespace {

// Whether the config has to give the number of features, because one of `paths` is not on this machine.
bool GivenByConfig(const Config& config, const std::vector<std::string>& paths, const char* key) {
  const std::string path = FirstMissing(paths);
  if (path.empty()) return false;
  if (config.model.inputs.has_value()) return true;
  // On one machine all tasks read the same files, unless worker 0 feeds the others.
  const std::vector<std::string>& ps = config.cluster.ps;
  const bool here = config.data.split != Split::kFeed && (ps.empty() || IsLoopbackHost(HostOf(ps[0])));
  throw UserError("{}{}", NotOpenedText(path, key, ENOENT),
                  here ? ""
                       : " A task that reads no data (a ps; with data.split: feed a worker above 0) needs "
                         "model.inputs in its place.");
}

DataShape PeekIdx(const Config& config) {
  const std::vector<std::string>& paths = config.data.train.images;
  DataShape shape;
  shape.classes = ClassesOf(config.model);
  if (GivenByConfig(config, paths, "data.train.images")) {
    shape.inputs = *config.model.inputs;
    return shape;
  }
  const std::vector<std::string> files = SourceFiles(paths, "data.train.images");
  const IdxShape images = PeekIdxSet(files, "data.train.images");
  if (config.data.cache == DataCache::kNone) {
    for (const std::string& file : files) CheckIsPlain(file);
  }
  shape.inputs = images.row_bytes;
  shape.rows = images.count;
  return shape;
}

// The same for texts. A pipe is read once, by a worker, and not to find out its columns.
bool IsWidthGiven(const Config& config) {
  const DataSourceConfig& train = config.data.train;
  if (!ReadsPipe(train)) return GivenByConfig(config, train.path, "data.train.path");
  if (config.model.inputs.has_value()) return true;
  throw UserError(
      "data.train.path = {}: is read once, by a worker, and all tasks must know how many features a row has. "
      "Set model.inputs.",
      Shown(train.path[0]));
}

// The number of classes must be given where data.train is not here to count them in.
void CheckCountable(const Config& config, bool is_here) {
  if (is_here || config.model.outputs || !HasOutputPerClass(config.model)) return;
  throw UserError(
      "{}: is not here to count the classes in. A task that reads no data (a ps; with data.split: feed a "
      "worker above 0), and all tasks where data.train comes through a pipe, need model.outputs in its "
      "place: give it to all tasks.",
      PathText(config.data.train));
}

// Whether features are keys of a hash table, any numbers.
bool TakesAnyKey(const DataConfig& data) { return data.whole_keys && !data.by_column; }

// What a pass over all rows of data.train finds, whose lines are sparse rows. A feature counts also where its
// value is 0.
struct SparseFacts {
  int64_t inputs = 1;   // the largest feature and one
  int64_t classes = 2;  // where they are counted (ClassCounter), and this
  std::vector<std::string> named_numbers;
};

// Rows that cannot be read are left out, where data.bad_rows says so.
SparseFacts ScanSparseRows(const DataConfig& data, bool counts_classes) {
  SourceInputs inputs(data.train.path, "data.train.path");
  RowContext context;
  if (TakesAnyKey(data)) context.inputs = kKeyInputs;
  Pass pass(data, context, &inputs);
  ClassCounter counter(data);
  SparseFacts facts;
  for (ParsedRows row; pass.Next(&row, nullptr); row.Clear()) {
    if (counts_classes) counter.Count(pass.rows().path(), pass.rows().label());
    for (const uint64_t id : row.sparse.ids) {
      facts.inputs = std::max(facts.inputs, static_cast<int64_t>(id) + 1);
    }
  }
  facts.classes = counter.classes();
  facts.named_numbers = counter.NamedNumbers();
  return facts;
}

// Throws if the features are to be found in files that are too large for it.
void CheckScan(const Config& config, Scan scan) {
  constexpr int64_t kMaxBytes = 256 << 20;
  const SourceInputs inputs(config.data.train.path, "data.train.path");
  const int64_t bytes = inputs.FileBytesFrom(0);
  if (bytes <= kMaxBytes) return;
  const std::string large = fmt::format(
      "{}: {} MiB, too large for each task to find its largest index, which is the number of features",
      PathText(config.data.train), bytes >> 20);
  if (scan == Scan::kShort) {
    throw UserError("{}. Set model.inputs to it: dtrain check reads the files and tells it.", large);
  }
  throw UserError("{}. Set model.inputs: {}.", large, ScanSparseRows(config.data, false).inputs);
}

// The features of sparse rows, as far as the config says them.
std::optional<int64_t> SaidInputs(const Config& config) {
  const DataConfig& data = config.data;
  if (TakesAnyKey(data)) return kKeyInputs;
  const std::optional<int64_t> bits = HashBits(data);
  if (!bits) return config.model.inputs;
  if (!data.by_column) return int64_t{1} << *bits;
  if (IsTable(data.train.format)) return config.model.inputs;  // its header says the numbers
  return (CategoryColumns(data) << *bits) + kCriteoNumbers;
}

// Leaves the number of rows of texts unset: counting them means reading the whole file.
DataShape PeekText(const Config& config, Scan scan, const InputForm* saved) {
  const DataSourceConfig& train = config.data.train;
  const bool sparse = HasSparseRows(config.data), csv = IsTable(train.format);
  const bool is_here = !ReadsPipe(train) && FirstMissing(train.path).empty();
  const bool in_header = csv && is_here && (!sparse || config.data.by_column);
  std::optional<int64_t> said;
  if (!in_header) said = sparse ? SaidInputs(config) : config.model.inputs;
  if (!is_here && !said) IsWidthGiven(config);  // throws
  CheckCountable(config, is_here);
  const bool counts = HasOutputPerClass(config.model) && !config.model.outputs;
  DataShape shape;
  SparseFacts facts;
  if (!csv) {
    if (!said) CheckScan(config, scan);
    if (!said || counts) facts = ScanSparseRows(config.data, counts);
    if (config.data.classes.empty()) shape.form.classes = facts.named_numbers;
  } else if (is_here && (!sparse || counts)) {
    SourceInputs inputs(train.path, "data.train.path");
    FittedColumns fitted = FitColumns(config.data, &inputs, counts, saved);
    facts.classes = fitted.classes;
    facts.inputs = fitted.inputs;
    if (sparse) shape.form.classes = std::move(fitted.form.classes);
    if (!sparse) shape.form = std::move(fitted.form);
    // The rows of now may begin with another class than those of the checkpoint.
    if (!sparse && saved && config.data.classes.empty() && !saved->classes.empty() &&
        !LabelNumber(saved->classes[0]))
      shape.form.classes = saved->classes;
  }
  if (csv && sparse && !said) facts.inputs = RowFiles(config.data, {}, 0).inputs();
  shape.inputs = said.value_or(facts.inputs);
  if (HasClasses(config.model)) shape.classes = counts ? facts.classes : ClassesOf(config.model);
  return shape;
}

DataShape PeekSynthetic(const Config& config) {
  const DataSourceConfig& train = config.data.train;
  DataShape shape;
  if (train.name == SyntheticName::kDigits) {
    shape.inputs = kDigitInputs;
    shape.classes = kDigitClasses;
    shape.rows = train.rows.value_or(kDigitTrainRows);
  } else {
    shape.inputs = config.model.inputs.value_or(kLinearInputs);
    shape.rows = train.rows;
  }
  return shape;
}

// Returns the number of outputs of such a model for this data.
int64_t OutputsFor(const DataShape& shape, const ModelConfig& model) {
  if (HasOutputPerClass(model)) return model.outputs.value_or(shape.classes.value_or(0));
  return 1;
}

void CheckKind(const DataShape& shape, const ModelConfig& model) {
  if (!HasClasses(model) && shape.classes.has_value()) {
    throw UserError("{}; needs real targets, and data.train has classes. Try softmax.", HeadText(model));
  }
  if (HasClasses(model) && !shape.classes.has_value()) {
    throw UserError("{}; needs classes, and data.train has real targets. Try linear.", HeadText(model));
  }
  if (HeadOf(model) == ModelHead::kLogistic && *shape.classes != 2) {
    throw UserError("{}; needs the labels 0 and 1, and data.train has {} classes. Try softmax.",
                    HeadText(model), *shape.classes);
  }
  if (HasOutputPerClass(model) && model.outputs.has_value() && *model.outputs < *shape.classes) {
    throw UserError("model.outputs = {}; must be at least {}, the classes of data.train. Leave it out.",
                    *model.outputs, *shape.classes);
  }
}

struct SetSize {
  std::optional<int64_t> rows = 0;
  double bytes = 0;
  size_t idx_files = 0;     // of images
  double row_features = 0;  // of a sparse row
};

SetSize IdxSize(const DataSourceConfig& source, const std::string& section) {
  if (!FirstMissing(source.images).empty()) return {};
  const std::vector<std::string> files = SourceFiles(source.images, section + ".images");
  const IdxShape shape = PeekIdxSet(files, section + ".images");
  return {shape.count, static_cast<double>(shape.count) * static_cast<double>(shape.row_bytes + 1),
          files.size()};
}

int64_t CountRows(std::string_view text, bool records) {
  if (!records) return std::count(text.begin(), text.end(), '\n');
  int64_t count = 0;
  for (Tfrecord record; (record = TfrecordAt(text, text.size(), false)).state == TfrecordState::kWhole;
       ++count)
    text.remove_prefix(record.size());
  return count;
}

// Estimates the rows from the lines, or records, of the first MiB of the first file, because a number takes
// from two to more than twenty bytes.
SetSize CsvSize(const DataSourceConfig& source, const std::string& section, int64_t inputs) {
  const SourceInputs files(source.path, section + ".path");
  InputBytes file(files.files()[0], files.key());
  const bool records = source.format == DataFormat::kTfrecord && file.BeginsRecords(true);
  std::string sample(1 << 20, '\0');
  sample.resize(static_cast<size_t>(file.Read(sample.data(), static_cast<int64_t>(sample.size()))));
  const auto lines = std::max<int64_t>(1, CountRows(sample, records));
  const double line_bytes = static_cast<double>(sample.size()) / static_cast<double>(lines);
  const double content = static_cast<double>(file.ExpectedContent()) / static_cast<double>(file.file_size()) *
                         static_cast<double>(files.FileBytesFrom(0));
  const auto rows = static_cast<int64_t>(content / line_bytes);
  return {rows, 4 * static_cast<double>(rows) * static_cast<double>(inputs + 1)};
}

// The same for sparse rows; of lines their features are estimated too, from those of that MiB.
SetSize SparseSize(const DataConfig& data, const DataSourceConfig& source, const std::string& section,
                   int64_t inputs) {
  constexpr int64_t kSampleBytes = 1 << 20;
  int64_t rows = 0;
  double features = 0;  // of each
  if (IsTable(source.format)) {
    rows = CsvSize(source, section, inputs).rows.value_or(0);
    features = static_cast<double>(RowFiles(data, {}, inputs).columns().inputs.size());
  } else {
    DataConfig lenient = data;  // what is wrong with a row is told when it is read
    lenient.bad_rows = BadRows::kSkip;
    lenient.bad_rows_limit = std::numeric_limits<int64_t>::max();
    SourceInputs files(source.path, section + ".path");
    Pass pass(lenient, RowContext(), &files);
    for (ParsedRows row; pass.read_bytes() < kSampleBytes && pass.Next(&row, nullptr); row.Clear()) {
      features += static_cast<double>(row.sparse.ids.size());
    }
    const auto count = static_cast<double>(pass.count());
    const auto read = static_cast<double>(std::max<int64_t>(1, pass.read_bytes()));
    rows = static_cast<int64_t>(static_cast<double>(pass.expected_bytes()) / read * count);
    features /= std::max(1.0, count);
  }
  const double id_bytes = HasWideNumbers(inputs) ? 8 : 4;
  // An offset, a label, and of each feature its number and its value.
  const double row_bytes = 12 + features * (id_bytes + 4);
  return {rows, static_cast<double>(rows) * row_bytes, 0, features};
}

SetSize SyntheticSize(const DataSourceConfig& source, int64_t digit_rows) {
  if (source.name == SyntheticName::kLinear) return {source.rows, 0};
  const int64_t rows = source.rows.value_or(digit_rows);
  return {rows, static_cast<double>(rows) * static_cast<double>(kDigitInputs + 1)};
}

SetSize SizeOf(const DataConfig& data, const DataSourceConfig& source, const std::string& section,
               int64_t inputs, int64_t digit_rows) {
  if (source.format == DataFormat::kIdx) return IdxSize(source, section);
  if (source.format == DataFormat::kSynthetic) return SyntheticSize(source, digit_rows);
  if (ReadsPipe(source)) return {std::nullopt, 0};
  if (!FirstMissing(source.path).empty() || !IsText(source.format)) return {};
  return HasSparseRows(data) ? SparseSize(data, source, section, inputs) : CsvSize(source, section, inputs);
}

}  // namespace

DataShape PeekShape(const Config& config, Scan scan, const InputForm* saved) {
  const DataConfig& data = config.data;
  DataShape shape = data.train.format == DataFormat::kIdx ? PeekIdx(config)
                    : IsText(data.train.format)           ? PeekText(config, scan, saved)
                                                          : PeekSynthetic(config);
  if (!shape.rows.has_value()) return shape;
  shape.held_out = HeldOutRows(data, shape.rows);
  if (shape.held_out >= *shape.rows) {
    throw UserError("data.validation = {}; must be below the number of training rows, {}. Hold out fewer.",
                    HeldOutText(data), *shape.rows);
  }
  *shape.rows -= shape.held_out;
  return shape;
}

void ResolveModelShape(const DataShape& shape, Config* config) {
  ModelConfig& model = config->model;
  CheckKind(shape, model);
  if (model.inputs.has_value() && *model.inputs != shape.inputs) {
    throw UserError("model.inputs = {}; must be {}, as data.train has. Set it so, or leave it out.",
                    *model.inputs, shape.inputs);
  }
  const int64_t outputs = OutputsFor(shape, model);
  if (model.outputs.has_value() && *model.outputs != outputs) {
    throw UserError("model.outputs = {}; must be {} for this kind of model. Leave it out.", *model.outputs,
                    outputs);
  }
  model.inputs = shape.inputs;
  model.outputs = outputs;
  // With outputs numbers would be read as those of outputs.
  if (!shape.form.classes.empty()) config->data.label_type = LabelType::kNames;
}

int64_t AutoDecaySteps(const Config& config, std::optional<int64_t> updates) {
  const std::vector<NamedOptimizer> optimizers = OptimizersOf(config.train);
  const auto found = std::find_if(optimizers.begin(), optimizers.end(), [](const NamedOptimizer& each) {
    const ScheduleConfig& its = each.values.schedule;
    return its.kind != ScheduleKind::kConstant && its.decay_steps == kAutoDecay;
  });
  if (found == optimizers.end()) return 0;
  if (!updates) {
    const TrainConfig& train = config.train;
    throw UserError(
        "{}.schedule.decay_steps = auto; how many updates the run has nobody knows{}. Set "
        "train.steps, or give a number.",
        found->key,
        train.mode == TrainMode::kSync && train.aggregate
            ? fmt::format(", since with train.aggregate = {} that depends on who is slow", *train.aggregate)
            : "");
  }
  return std::max<int64_t>(1, *updates - found->values.schedule.warmup_steps);
}

namespace {

// `key`: of the optimizer.
std::string WarningOf(const std::string& key, const ScheduleConfig& schedule,
                      std::optional<int64_t> updates) {
  constexpr double kLong = 1.25;
  if (schedule.kind != ScheduleKind::kCosine || !updates || *updates == 0) return "";
  const int64_t left = *updates - schedule.warmup_steps;
  const int64_t decay_steps =
      schedule.decay_steps == kAutoDecay ? std::max<int64_t>(1, left) : schedule.decay_steps;
  const int64_t end = schedule.warmup_steps + decay_steps;
  const double share = static_cast<double>(end) / static_cast<double>(*updates);  // of the run
  if (share <= kLong && share * kLong >= 1) return "";
  return fmt::format(
      "{}.schedule.decay_steps = {}: {}. {}", key, decay_steps,
      share < 1 ? fmt::format("the learning rate is at its end, {}, after {} of the run's {} updates",
                              schedule.end_learning_rate, end, *updates)
                : fmt::format("the run ends after {}, long before the learning rate comes to its end at {}",
                              Plural(*updates, "update"), end),
      left > 0 ? fmt::format("Set it to auto, or to {}.", left)
               : fmt::format("The warm-up alone has {}: set warmup_steps lower.", schedule.warmup_steps));
}

}  // namespace

std::string ScheduleWarning(const TrainConfig& train, std::optional<int64_t> updates) {
  std::string warning;
  for (const auto& [key, optimizer] : OptimizersOf(train)) {
    if (warning.empty()) warning = WarningOf(key, optimizer.schedule, updates);
  }
  return warning;
}

DataSize EstimateDataSize(const Config& config) {
  const DataSourceConfig& source = config.data.train;
  const SetSize train = SizeOf(config.data, source, "data.train", *config.model.inputs, kDigitTrainRows);
  const SetSize test =
      SizeOf(config.data, config.data.test, "data.test", *config.model.inputs, kDigitTestRows);
  DataSize size;
  // Rows that are read from files take two windows of memory. The pages of a cache do not count, since the
  // system can drop them.
  const bool is_known = train.rows.value_or(0) > 0;
  const double row_bytes = HasSparseRows(config.data) && is_known
                               ? train.bytes / static_cast<double>(*train.rows)
                               : 4 * static_cast<double>(*config.model.inputs + 1);
  const double windows = 2 * static_cast<double>(WindowRows(config)) * row_bytes;
  const bool cached = config.data.cache == DataCache::kFile;
  const double of_train = cached ? 0 : windows > 0 ? std::min(windows, train.bytes) : train.bytes;
  size.bytes = of_train + test.bytes;
  size.train_rows = train.rows;
  size.test_rows = test.rows.value_or(0);
  size.row_features = train.row_features;
  const bool mapped = cached || config.data.cache == DataCache::kNone;  // bytes only if they lie together
  size.as_bytes = TakesPixels(config) && !(mapped && train.idx_files != 1);
  return size;
}

std::optional<BatchKeys> MeasureBatchKeys(const Config& config) {
  constexpr int64_t kRows = 10'000;
  const DataSourceConfig& source = config.data.train;
  if (ReadsPipe(source) || !FirstMissing(source.path).empty()) return std::nullopt;
  RowContext context;
  context.inputs = *config.model.inputs;
  context.labels = false;
  SourceInputs inputs(source.path, "data.train.path");
  Pass pass(config.data, context, &inputs);
  BatchKeys found;
  int64_t batches = 0;
  ParsedRows batch;
  for (bool more = true; more && found.rows < kRows;) {
    batch.Clear();
    int64_t count = 0;
    const int64_t wanted = std::min(config.train.batch_size, kRows - found.rows);
    while (count < wanted && (more = pass.Next(&batch, nullptr))) ++count;
    found.rows += count;
    if (count == 0 || (batches > 0 && count < config.train.batch_size)) continue;
    std::vector<uint64_t>& ids = batch.sparse.ids;
    std::sort(ids.begin(), ids.end());
    const auto end = std::unique(ids.begin(), ids.end());
    const auto numbers = std::lower_bound(ids.begin(), end, NumbersOf(config.model).begin);
    found.keys += static_cast<double>(numbers - ids.begin()) + 1;
    ++batches;
  }
  if (batches == 0) return std::nullopt;
  found.keys /= static_cast<double>(batches);
  return found;
}

}  // namespace dtrain
