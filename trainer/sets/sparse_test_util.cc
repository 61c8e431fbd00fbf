#include "trainer/sets/sparse_test_util.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>

#include "base/check.h"
#include "trainer/input/data_test_util.h"
#include "trainer/survey/data_shape.h"

namespace dtrain {

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

LoadedData LoadAsRun(Config config, const InputForm* fitted, const std::vector<std::string>& environment) {
  if (HasSparseRows(config.data) && !config.model.inputs) config.model.inputs = PeekShape(config).inputs;
  return LoadData(config, fitted, environment);
}

std::string NewCacheDirectory() {
  std::string path = std::string(getenv("TEST_TMPDIR")) + "/cache-XXXXXX";
  DT_CHECK(mkdtemp(path.data()) != nullptr, path);
  return path;
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
