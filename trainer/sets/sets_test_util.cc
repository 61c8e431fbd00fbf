#include "trainer/sets/sets_test_util.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/random.h"
#include "trainer/config/config.h"
#include "trainer/survey/data_shape.h"

namespace dtrain {

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string NewCacheDirectory() {
  std::string path = std::string(getenv("TEST_TMPDIR")) + "/cache-XXXXXX";
  DT_CHECK(mkdtemp(path.data()) != nullptr, path);
  return path;
}

void SetCache(DataCache cache, Config* config) {
  config->data.cache = cache;
  config->data.cache_dir = NewCacheDirectory();
}

std::string Table(int64_t rows) {
  const CounterRandom random(5);
  std::string text = "id,city,income,kind\n";
  for (int64_t row = 0; row < rows; ++row) {
    const auto draw = [&](uint64_t what) { return random.Below(static_cast<uint64_t>(row) * 3 + what, 100); };
    const std::string city = draw(0) < 20 ? "" : draw(0) < 60 ? "Rome" : "\"Alba,\nLonga\"";
    const std::string income = draw(1) < 10 ? "NA" : fmt::format("{}", draw(1));
    text += fmt::format("{},{},{},{}\n", row, city, income, draw(2) < 50 ? "yes" : "no");
  }
  return text;
}

Config TableConfig(const std::string& content, DataCache cache) {
  Config config = CsvConfig(ModelKind::kSoftmax, content, "kind");
  config.model.outputs = 2;
  config.data.categories = {"city"};
  config.data.missing = MissingValues::kIndicator;
  SetCache(cache, &config);
  config.data.shuffle_rows = 300;
  config.train.batch_size = 10;
  config.train.epochs = 2;
  return config;
}

Config SparseConfig(DataFormat format, ModelKind kind, const std::string& content) {
  Config config;
  config.model.kind = kind;
  config.data.train.format = format;
  config.data.train.path = {WritePlain("train.txt", content)};
  config.data.shuffle = false;
  config.train.batch_size = 10;
  config.train.epochs = 1;
  return config;
}

void TestOn(const std::string& content, Config* config) {
  config->data.test.format = config->data.train.format;
  config->data.test.path = {WritePlain("test.txt", content)};
}

Config IdxConfig(const std::string& images, const std::string& labels) {
  Config config;
  config.model.kind = ModelKind::kSoftmax;
  config.data.train.format = DataFormat::kIdx;
  config.data.train.images = {images};
  config.data.train.labels = {labels};
  return config;
}

LoadedData LoadAsRun(Config config, const InputForm* fitted, const std::vector<std::string>& environment) {
  if (HasSparseRows(config.data) && !config.model.inputs) config.model.inputs = PeekShape(config).inputs;
  return LoadData(config, fitted, environment);
}

std::string LoadError(const Config& config) {
  return UserErrorOf([&] { LoadAsRun(config); });
}

std::vector<int64_t> AllRows(const DataSet& set) {
  std::vector<int64_t> rows(static_cast<size_t>(*set.rows()));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

Rows RowsOf(const DataSet& set, const std::vector<int64_t>& rows) {
  const auto count = static_cast<int64_t>(rows.size());
  Rows read;
  read.features.resize(static_cast<size_t>(count * set.inputs()));
  set.classes() ? read.labels.resize(rows.size()) : read.targets.resize(rows.size());
  if (set.weighted()) read.weights.resize(rows.size());
  std::vector<int64_t> file_rows;
  set.Read(set.FileRows(rows, &file_rows), {read.features.data(), set.sparse() ? &read.sparse : nullptr,
                                            read.labels.data(), read.targets.data(), read.weights.data()});
  return read;
}

std::vector<float> FirstFeatures(BatchSource& source, int64_t last_epoch) {
  std::vector<float> features;
  for (Batch batch; source.Next(&batch) && source.epoch() <= last_epoch;) {
    for (int64_t row = 0; row < batch.rows; ++row) {
      features.push_back(batch.inputs != nullptr             ? batch.inputs[row * batch.columns]
                         : batch.bytes.table.data != nullptr ? batch.bytes.table.row(batch.bytes.rows[row])[0]
                                                             : batch.table.row(batch.table_rows[row])[0]);
    }
  }
  return features;
}

std::vector<std::string> EpochOf(const Config& config, int worker, int workers) {
  const LoadedData data = LoadAsRun(config);
  const auto source = MakeBatchSource(config, data.train, worker, workers);
  std::vector<std::string> rows;
  Batch batch;
  while (source->Next(&batch)) {
    const SparseRows& sparse = batch.sparse;
    DT_CHECK(sparse.offsets != nullptr && sparse.offsets[0] == 0, batch.rows);
    for (int64_t row = 0; row < batch.rows; ++row) {
      std::string text = batch.labels != nullptr ? fmt::format("{}:", batch.labels[row])
                                                 : fmt::format("{}:", batch.targets[row]);
      for (int64_t i = sparse.offsets[row]; i < sparse.offsets[row + 1]; ++i) {
        text += fmt::format(" {}={}", sparse.ids[i], sparse.values == nullptr ? 1 : sparse.values[i]);
      }
      if (batch.weights != nullptr) text += fmt::format(" *{}", batch.weights[row]);
      rows.push_back(text);
    }
    rows.emplace_back("");
  }
  return rows;
}

std::vector<std::string> SortedRows(std::vector<std::string> epoch) {
  std::sort(epoch.begin(), epoch.end());
  epoch.erase(epoch.begin(), std::upper_bound(epoch.begin(), epoch.end(), ""));
  return epoch;
}

}  // namespace dtrain
