#include "trainer/data/data_shape.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/config/user_text.h"
#include "trainer/data/data_set.h"
#include "trainer/data/digits.h"
#include "trainer/data/files/csv_fit.h"
#include "trainer/data/files/held_out.h"
#include "trainer/data/files/idx.h"
#include "trainer/data/files/input_bytes.h"
#include "trainer/data/files/label_rules.h"
#include "trainer/data/files/sources.h"
#include "trainer/data/order.h"

namespace dtrain {
namespace {

// Whether the config has to give the number of features, because one of `paths` is not on this machine.
bool GivenByConfig(const Config& config, const std::vector<std::string>& paths, const char* key) {
  const std::string path = FirstMissing(paths);
  if (path.empty()) return false;
  if (config.model.inputs.has_value()) return true;
  throw UserError(
      "{}: cannot be opened: {}. Is {} right? A task that reads no data (a ps; with data.split: feed a "
      "worker above 0) needs model.inputs in its place.",
      path, ErrnoText(ENOENT), key);
}

DataShape PeekIdx(const Config& config) {
  const std::vector<std::string>& paths = config.data.train.images;
  DataShape shape;
  shape.classes = ClassesOf(config.model);
  if (GivenByConfig(config, paths, "data.train.images")) {
    shape.inputs = *config.model.inputs;
    return shape;
  }
  const IdxShape images = PeekIdxSet(SourceFiles(paths, "data.train.images"), "data.train.images");
  shape.inputs = images.row_bytes;
  shape.rows = images.count;
  return shape;
}

// The same for CSV. A pipe is read once, by a worker, and not to find out its columns.
bool IsWidthGiven(const Config& config) {
  const DataSourceConfig& train = config.data.train;
  if (!ReadsPipe(train)) return GivenByConfig(config, train.path, "data.train.path");
  if (config.model.inputs.has_value()) return true;
  throw UserError(
      "data.train.path = {}: is read once, by a worker, and all tasks must know how many features a row has. "
      "Set model.inputs.",
      Shown(train.path[0]));
}

// Leaves the number of rows unset: counting them means reading the whole file.
DataShape PeekCsvShape(const Config& config) {
  const DataSourceConfig& train = config.data.train;
  DataShape shape;
  const bool given = IsWidthGiven(config);
  const bool counts = HasOutputPerClass(config.model) && !config.model.outputs;
  if (given && counts) {
    throw UserError(
        "{}: is not here to count the classes in. A task that reads no data (a ps; with data.split: feed a "
        "worker above 0), and all tasks where data.train comes through a pipe, need model.outputs in its "
        "place: "
        "give it to all tasks.",
        PathText(train));
  }
  if (HasClasses(config.model)) shape.classes = counts ? CountClasses(config.data) : ClassesOf(config.model);
  if (given) {
    shape.inputs = *config.model.inputs;
    return shape;
  }
  SourceInputs inputs(train.path, "data.train.path");
  shape.inputs = FitColumns(config.data, &inputs).inputs;
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
  size_t idx_files = 0;  // of images
};

SetSize IdxSize(const DataSourceConfig& source, const std::string& section) {
  if (!FirstMissing(source.images).empty()) return {};
  const std::vector<std::string> files = SourceFiles(source.images, section + ".images");
  const IdxShape shape = PeekIdxSet(files, section + ".images");
  return {shape.count, static_cast<double>(shape.count) * static_cast<double>(shape.row_bytes + 1),
          files.size()};
}

// Estimates the rows from the lines of the first MiB of the first file, because a number takes from two to
// more than twenty bytes.
SetSize CsvSize(const DataSourceConfig& source, const std::string& section, int64_t inputs) {
  if (ReadsPipe(source)) return {std::nullopt, 0};
  if (!FirstMissing(source.path).empty()) return {};
  const SourceInputs files(source.path, section + ".path");
  InputBytes file(files.files()[0], files.key());
  std::vector<char> sample(1 << 20);
  sample.resize(static_cast<size_t>(file.Read(sample.data(), static_cast<int64_t>(sample.size()))));
  const auto lines = std::max<int64_t>(1, std::count(sample.begin(), sample.end(), '\n'));
  const double line_bytes = static_cast<double>(sample.size()) / static_cast<double>(lines);
  const double content = static_cast<double>(file.ExpectedContent()) / static_cast<double>(file.file_size()) *
                         static_cast<double>(files.FileBytesFrom(0));
  const auto rows = static_cast<int64_t>(content / line_bytes);
  return {rows, 4 * static_cast<double>(rows) * static_cast<double>(inputs + 1)};
}

SetSize SyntheticSize(const DataSourceConfig& source, int64_t digit_rows) {
  if (source.name == SyntheticName::kLinear) return {source.rows, 0};
  const int64_t rows = source.rows.value_or(digit_rows);
  return {rows, static_cast<double>(rows) * static_cast<double>(kDigitInputs + 1)};
}

SetSize SizeOf(const DataSourceConfig& source, const std::string& section, int64_t inputs,
               int64_t digit_rows) {
  switch (source.format) {
    case DataFormat::kIdx:
      return IdxSize(source, section);
    case DataFormat::kCsv:
      return CsvSize(source, section, inputs);
    case DataFormat::kSynthetic:
      return SyntheticSize(source, digit_rows);
    default:
      return {};
  }
}

}  // namespace

DataShape PeekShape(const Config& config) {
  const DataConfig& data = config.data;
  DataShape shape = data.train.format == DataFormat::kIdx   ? PeekIdx(config)
                    : data.train.format == DataFormat::kCsv ? PeekCsvShape(config)
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
}

DataSize EstimateDataSize(const Config& config) {
  const DataSourceConfig& source = config.data.train;
  const SetSize train = SizeOf(source, "data.train", *config.model.inputs, kDigitTrainRows);
  const SetSize test = SizeOf(config.data.test, "data.test", *config.model.inputs, kDigitTestRows);
  DataSize size;
  // Rows that are read from files take two windows of memory. The pages of a cache do not count, since the
  // system can drop them.
  const double windows =
      2 * 4 * static_cast<double>(WindowRows(config)) * static_cast<double>(*config.model.inputs + 1);
  const bool cached = config.data.cache == DataCache::kFile;
  const double of_train = cached ? 0 : windows > 0 ? std::min(windows, train.bytes) : train.bytes;
  size.bytes = of_train + test.bytes;
  size.train_rows = train.rows;
  size.test_rows = test.rows.value_or(0);
  const bool mapped = config.data.cache == DataCache::kNone;  // bytes only if they lie together
  size.as_bytes = TakesPixels(config) && !(mapped && train.idx_files > 1);
  return size;
}

}  // namespace dtrain
