// A table of numbered rows for tests of sets that are not in memory.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/random.h"
#include "trainer/input/data_test_util.h"
#include "trainer/sets/data_set.h"

namespace dtrain {

// A fresh directory for caches.
inline std::string CacheDirectory() {
  static int count = 0;
  const std::string directory =
      std::filesystem::path(WritePlain("marker", "")).parent_path() / fmt::format("cache{}", count++);
  std::filesystem::remove_all(directory);
  return directory;
}

// The number of the row is its first feature.
inline std::string Table(int64_t rows) {
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

inline Config TableConfig(const std::string& content, DataCache cache) {
  Config config = CsvConfig(ModelKind::kSoftmax, content, "kind");
  config.model.outputs = 2;
  config.data.categories = {"city"};
  config.data.missing = MissingValues::kIndicator;
  config.data.cache = cache;
  config.data.shuffle_rows = 300;
  config.data.cache_dir = CacheDirectory();
  config.train.batch_size = 10;
  config.train.epochs = 2;
  return config;
}

struct Rows {
  std::vector<float> features;
  std::vector<int32_t> labels;
};

inline Rows Gathered(const DataSet& set, const std::vector<int64_t>& rows) {
  Rows gathered;
  const auto count = static_cast<int64_t>(rows.size());
  gathered.features.resize(static_cast<size_t>(count * set.inputs()));
  gathered.labels.resize(rows.size());
  set.Gather(rows.data(), count, gathered.features.data(), gathered.labels.data(), nullptr);
  return gathered;
}

}  // namespace dtrain
