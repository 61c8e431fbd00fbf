// TFRecord as a run reads it: whatever is made of its rows is what a table of the same rows gives.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/tfrecord.h"
#include "trainer/config/config.h"
#include "trainer/rows/example_fields.h"
#include "trainer/sets/sets_test_util.h"

namespace dtrain {
namespace {

// The same rows: texts and whole numbers with gaps, weights, a list of two real numbers, classes.
struct Both {
  explicit Both(int rows, int first = 0) {
    const CounterRandom random(11);
    csv = "city,n,w,x[0],x[1],y\n";
    for (int row = first; row < first + rows; ++row) {
      const auto draw = [&](uint64_t what) { return random.Bits(static_cast<uint64_t>(row) * 8 + what); };
      const std::string city = draw(0) % 5 == 0 ? "" : fmt::format("city {}", draw(1) % 7);
      const auto number = static_cast<int64_t>(draw(2) % 1000) - 500;
      const bool has_number = draw(3) % 9 != 0;
      const float weight = static_cast<float>(draw(4) % 8) / 8;
      const float x0 = static_cast<float>(random.Normal(static_cast<uint64_t>(row))),
                  x1 = 1e-3f * static_cast<float>(row);
      const int64_t label = static_cast<int64_t>(draw(5) % 2);
      csv += fmt::format("{},{},{},{},{},{}\n", city, has_number ? fmt::format("{}", number) : "", weight, x0,
                         x1, label);
      ExampleWriter example;
      if (row % 3 == 0) example.AddInts("y", {label});  // entries have no order
      if (!city.empty()) example.AddTexts("city", {city});
      example.AddFloats("x", {x0, x1});
      if (has_number) example.AddInts("n", {number});
      if (row % 3 != 0) example.AddInts("y", {label});
      example.AddFloats("w", {weight});
      AppendTfrecord(example.Take(), &records);
    }
  }
  std::string csv, records;
};

Config DenseConfig(DataFormat format, const std::string& path) {
  Config config;
  config.model.kind = ModelKind::kSoftmax;
  config.model.outputs = 2;
  config.data.train.format = format;
  config.data.train.path = {path};
  config.data.train.label = "y";
  config.data.weight = "w";
  config.data.categories = {"city"};
  config.data.missing = MissingValues::kIndicator;
  config.data.scale = FeatureScale::kStandard;
  config.data.validation_share = 0.1;
  config.data.validation_by = HeldOutBy::kStratified;
  config.data.shuffle_rows = 3000;
  config.train.batch_size = 64;
  config.train.epochs = 1;
  return config;
}

// What a worker gets: names of features, and then each row.
std::vector<std::string> Given(const Config& config) {
  const LoadedData data = LoadAsRun(config);
  std::vector<std::string> rows = data.form.features;
  for (const double shift : data.form.scale.shift) rows.push_back(fmt::format("{}", shift));
  const auto source = MakeBatchSource(config, data.train, 0, 1);
  for (Batch batch; source->Next(&batch);) {
    for (int64_t row = 0; row < batch.rows; ++row) {
      const float* const features = batch.inputs != nullptr ? batch.inputs + row * batch.columns
                                                            : batch.table.row(batch.table_rows[row]);
      std::string text = fmt::format("{} *{}:", batch.labels[row],
                                     (batch.weights != nullptr ? batch.weights : batch.row_offsets)[row]);
      for (int64_t i = 0; i < data.train->inputs(); ++i) text += fmt::format(" {}", features[i]);
      rows.push_back(text);
    }
  }
  return rows;
}

TEST_CASE("records: rows, their order, categories, means, weights and scale are those of a table") {
  const Both both(30'000);
  Config csv = DenseConfig(DataFormat::kCsv, WritePlain("a.csv", both.csv));
  Config records = DenseConfig(DataFormat::kTfrecord, WritePlain("a.tfrecord", both.records));
  Config packed = DenseConfig(DataFormat::kTfrecord, WriteGzip("a.tfrecord.gz", both.records));
  for (const DataCache cache : {DataCache::kMemory, DataCache::kNone, DataCache::kFile}) {
    CAPTURE(static_cast<int>(cache));
    for (Config* const config : {&csv, &records, &packed}) SetCache(cache, config);
    const std::vector<std::string> expected = Given(csv);
    CHECK(expected.size() > 27'000);
    for (const int64_t threads : {1, 3}) {
      records.data.threads = threads;
      CHECK((Given(records) == expected));
    }
    // What is read without an index comes in windows of its own.
    if (cache != DataCache::kNone) CHECK((Given(packed) == expected));
  }
  for (Config* const config : {&csv, &records}) {  // the same numbers
    config->data.offset = std::exchange(config->data.weight, "");
    config->data.cache = DataCache::kMemory;
  }
  CHECK((Given(records) == Given(csv)));
}

TEST_CASE("records: hashed columns have the features of a table, from memory, files, caches and pipes") {
  const Both both(3000);
  Config csv = DenseConfig(DataFormat::kCsv, WritePlain("a.csv", both.csv));
  csv.model.kind = ModelKind::kLogistic;
  csv.data.categories = {};
  csv.data.hash = {"city", "n"};
  csv.data.missing = MissingValues::kZero;
  csv.data.scale = FeatureScale::kNone;
  csv.data.validation_share = 0;
  csv.data.validation_by = HeldOutBy::kFirst;
  csv.data.cache_dir = NewCacheDirectory();
  Config records = csv;
  records.data.train.format = DataFormat::kTfrecord;
  records.data.train.path = {WritePlain("a.tfrecord", both.records)};
  for (const DataCache cache : {DataCache::kMemory, DataCache::kNone, DataCache::kFile}) {
    CAPTURE(static_cast<int>(cache));
    csv.data.cache = records.data.cache = cache;
    CHECK((EpochOf(records) == EpochOf(csv)));
  }
  csv.data.cache = records.data.cache = DataCache::kNone;
  csv.data.train.path = {"exec:cat '" + csv.data.train.path[0] + "'"};
  records.data.train.path = {"exec:cat '" + records.data.train.path[0] + "'"};
  CHECK((EpochOf(records) == EpochOf(csv)));
}

TEST_CASE("records: several files are one table, also where one has no value of a feature") {
  const Both first(1000), second(500, 1000);
  ExampleWriter example;
  example.AddFloats("w", {1});
  example.AddFloats("x", {0.5f, 0.25f});
  example.AddInts("y", {1});
  std::string rest;
  AppendTfrecord(example.Take(), &rest);
  const std::string csv = first.csv + second.csv.substr(second.csv.find('\n') + 1) + ",,1,0.5,0.25,1\n";
  Config records = DenseConfig(DataFormat::kTfrecord, WritePlain("1.tfrecord", first.records));
  records.data.train.path.push_back(WriteGzip("2.tfrecord", second.records));
  records.data.train.path.push_back(WritePlain("3.tfrecord", rest));
  CHECK((Given(records) == Given(DenseConfig(DataFormat::kCsv, WritePlain("a.csv", csv)))));
}

TEST_CASE("records: a name in the config is that of a feature that some record has, however late") {
  const Both both(3000);
  ExampleWriter example;
  example.AddFloats("w", {1});
  example.AddFloats("x", {0.5f, 0.25f});
  example.AddInts("y", {1});
  example.AddInts("late", {1, 2, 3});
  std::string last;
  AppendTfrecord(example.Take(), &last);
  for (const std::string& path : {WritePlain("late.tfrecord", both.records + last),
                                  WriteGzip("late.tfrecord.gz", both.records + last)}) {
    Config config = DenseConfig(DataFormat::kTfrecord, path);
    CHECK(Has(LoadError(config), ", record 3001 at byte "));
    config.data.ignore = {"late"};
    CHECK(Given(config).size() > 2700);
    config.data.ignore = {"late", "Late"};
    CHECK(Has(LoadError(config), "no column \"Late\" (data.ignore)"));
    CHECK(Has(LoadError(config), "Did you mean \"late\"?"));
    config.data.ignore = {"late", "x"};  // all of a list
    CHECK(Given(config)[0] != "x");
    config.data.ignore = {"late", "x[1]"};
    CHECK(Given(config).size() > 2700);
    config.data.ignore = {"late"};
    config.data.categories = {"City"};
    CHECK(Has(LoadError(config), "no column \"City\" (data.categories)"));
  }
}

TEST_CASE(
    "records: a record at fault ends the run with its place, or is left out, and damage always ends it") {
  const Both both(5);
  ExampleWriter example;
  example.AddTexts("y", {"yes"});
  std::string odd;
  AppendTfrecord(example.Take(), &odd);
  const std::string content = both.records + odd + both.records;
  Config config = DenseConfig(DataFormat::kTfrecord, WritePlain("a.tfrecord", content));
  config.data.validation_share = 0;
  config.data.validation_by = HeldOutBy::kFirst;
  const std::string place = fmt::format("a.tfrecord, record 6 at byte {}: ", both.records.size());
  CHECK(Has(LoadError(config), place + "the feature \"y\" is a bytes_list; must be an int64_list"));
  config.data.bad_rows = BadRows::kSkip;
  CHECK(LoadAsRun(config).train->rows() == 10);
  config.data.train.path = {WritePlain("a.tfrecord", content.substr(0, content.size() - 1))};
  CHECK(Has(LoadError(config), ": the file ends within the record. "));
  config.data.train.path = {WritePlain("a.csv", both.csv)};
  CHECK(Has(LoadError(config), "a.csv, record 1 at byte 0: the file is no TFRecord, or damaged"));
}

}  // namespace
}  // namespace dtrain
