#include "trainer/data/load_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/names.h"
#include "trainer/data/data_set.h"
#include "trainer/data/digits.h"
#include "trainer/data/files/csv_table.h"
#include "trainer/data/files/idx.h"

namespace dtrain {
namespace {

// `part` is "train" or "test".
std::shared_ptr<const DataSet> Load(const Config& config, const DataSourceConfig& source,
                                    const std::string& part) {
  if (source.format == DataFormat::kNone) return nullptr;
  if (source.format == DataFormat::kIdx) {
    IdxSet set = ReadIdxSet(source.images, source.labels, "data." + part, LabelRulesOf(config.model));
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

std::shared_ptr<const DataSet> ToSet(CsvTable table, std::optional<int64_t> classes) {
  return std::make_shared<FloatSet>(std::move(table.features), table.columns.features(), classes,
                                    std::move(table.labels.classes()), std::move(table.labels.targets()));
}

// Returns the training rows without those held out, on which the scale is fitted.
gpu::MatrixView<const float> FittedRows(CsvTable* train, int64_t validation) {
  const gpu::MatrixView<float> all = train->Rows();
  const int64_t held_out =
      std::min(validation, all.rows);  // holding out all rows is refused when batches are made
  return gpu::MatrixView<float>(all.row(held_out), all.rows - held_out, all.cols);
}

// Loads data.train and data.test, those that exist, from CSV, and applies data.scale; `scale` as for
// LoadData().
LoadedData LoadCsv(const Config& config, const LabelRules& labels, const FittedScale* scale) {
  const DataConfig& data = config.data;
  CsvTable train = ReadCsvTable(data.train, "data.train", labels, nullptr, "");
  std::optional<CsvTable> test;
  if (data.test.format == DataFormat::kCsv) {
    test.emplace(ReadCsvTable(data.test, "data.test", labels, &train, data.train.path));
  }
  LoadedData loaded;
  loaded.form.features = FeatureNames(train.columns);
  loaded.form.classes = train.labels.names();
  loaded.form.label_column = train.columns.label;
  if (data.scale != FeatureScale::kNone) {
    loaded.form.scale = scale != nullptr ? *scale : FitScale(data.scale, FittedRows(&train, data.validation));
    ApplyScale(loaded.form.scale, train.Rows());
    if (test.has_value()) ApplyScale(loaded.form.scale, test->Rows());
  }
  loaded.train = ToSet(std::move(train), labels.classes);
  if (test.has_value()) loaded.test = ToSet(std::move(*test), labels.classes);
  return loaded;
}

}  // namespace

LoadedData LoadData(const Config& config, const FittedScale* scale) {
  if (config.data.train.format == DataFormat::kCsv) {
    return LoadCsv(
        config, config.model.kind == ModelKind::kLinear ? LabelRules() : LabelRulesOf(config.model), scale);
  }
  LoadedData data;
  data.train = Load(config, config.data.train, "train");
  data.test = Load(config, config.data.test, "test");
  if (data.test != nullptr && data.test->inputs() != data.train->inputs()) {
    throw UserError("data.test has {} and data.train has {}; they must be equal. Name files of one kind.",
                    Plural(data.test->inputs(), "input"), data.train->inputs());
  }
  return data;
}

}  // namespace dtrain
