// Rows that are not in memory: read from their files in each epoch (data.cache: none), or from a cache of
// parsed rows (file). Both give the rows that a set in memory has.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "trainer/input/data_test_util.h"
#include "trainer/order/order.h"
#include "trainer/sets/load_data.h"
#include "trainer/sets/out_of_memory_test_util.h"
#include "trainer/sets/row_cache.h"
#include "trainer/sets/source.h"
#include "trainer/sets/streamed_set.h"
#include "trainer/survey/data_shape.h"
#include "trainer/survey/data_warnings.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

std::vector<int64_t> SomeRows(int64_t rows, uint64_t seed) {
  std::vector<int64_t> some(500);
  for (size_t i = 0; i < some.size(); ++i) {
    some[i] = static_cast<int64_t>(CounterRandom(seed).Below(i, static_cast<uint64_t>(rows)));
  }
  return some;
}

TEST_CASE("out of memory: the rows, classes, columns and scale are those of a set in memory") {
  const std::string content = Table(5000);
  for (const FeatureScale scale : {FeatureScale::kNone, FeatureScale::kUnit, FeatureScale::kStandard}) {
    Config config = TableConfig(content, DataCache::kMemory);
    config.data.scale = scale;
    config.data.validation = 100;
    config.data.test = CsvSource("test.csv", Table(30), "kind");
    const LoadedData memory = LoadData(config);
    for (const DataCache cache : {DataCache::kNone, DataCache::kFile}) {
      CAPTURE(static_cast<int>(cache));
      config.data.cache = cache;
      const LoadedData loaded = LoadData(config);
      CHECK(loaded.form.classes == memory.form.classes);
      CHECK(loaded.form.features == memory.form.features);
      CHECK(*loaded.train->rows() == 5000);
      CHECK(loaded.train->inputs() == memory.train->inputs());
      CHECK(FingerprintOf(*loaded.train).rows == 5000);
      const std::vector<int64_t> some = SomeRows(5000, 3);
      const Rows here = Gathered(*loaded.train, some), there = Gathered(*memory.train, some);
      CHECK(here.labels == there.labels);
      REQUIRE(here.features.size() == there.features.size());
      // Mean and deviation are of one pass, and not of two.
      for (size_t i = 0; i < here.features.size(); ++i) {
        if (here.features[i] != doctest::Approx(there.features[i]).epsilon(1e-6)) FAIL_CHECK(i);
      }
      CHECK(Gathered(*loaded.test, {0, 7}).labels == Gathered(*memory.test, {0, 7}).labels);
    }
  }
}

// Reads all batches of a worker's epochs; counts each row by its epoch, in `read`.
void ReadAll(const Config& config, const std::shared_ptr<const DataSet>& set, int worker, int workers,
             std::map<std::pair<int64_t, int64_t>, int>* read) {
  const std::unique_ptr<BatchSource> source = MakeBatchSource(config, set, worker, workers);
  const auto features = set->inputs();
  for (Batch batch; source->Next(&batch);) {
    for (int64_t row = 0; row < batch.rows; ++row) {
      const float* const inputs =
          batch.inputs != nullptr ? batch.inputs + row * features : batch.table.row(batch.table_rows[row]);
      ++(*read)[{source->epoch(), static_cast<int64_t>(inputs[0])}];
    }
  }
}

TEST_CASE("out of memory: each row comes once an epoch, for any number of workers and threads") {
  const std::string content = Table(3000);
  for (const DataCache cache : {DataCache::kNone, DataCache::kFile}) {
    for (int workers = 1; workers <= 5; ++workers) {
      CAPTURE(workers);
      Config config = TableConfig(content, cache);
      config.cluster.worker.assign(static_cast<size_t>(workers), "");
      const std::shared_ptr<const DataSet> set = LoadData(config).train;
      std::vector<std::map<std::pair<int64_t, int64_t>, int>> read(static_cast<size_t>(workers));
      std::vector<std::thread> threads;
      for (int worker = 0; worker < workers; ++worker) {
        threads.emplace_back(
            [&, worker] { ReadAll(config, set, worker, workers, &read[static_cast<size_t>(worker)]); });
      }
      for (std::thread& thread : threads) thread.join();
      std::map<std::pair<int64_t, int64_t>, int> all;
      for (const auto& one : read) {
        for (const auto& [row, times] : one) all[row] += times;
      }
      CHECK(all.size() == 6000);
      CHECK(std::all_of(all.begin(), all.end(), [](const auto& entry) { return entry.second == 1; }));
    }
  }
}

std::vector<float> BatchesFrom(const Config& config, const std::shared_ptr<const DataSet>& set,
                               int64_t step) {
  const std::unique_ptr<BatchSource> source = MakeBatchSource(config, set, 1, 3);
  source->Seek(step);
  std::vector<float> ids;
  for (Batch batch; source->Next(&batch);) {
    for (int64_t row = 0; row < batch.rows; ++row) {
      ids.push_back(batch.inputs != nullptr ? batch.inputs[row * batch.columns]
                                            : batch.table.row(batch.table_rows[row])[0]);
    }
  }
  return ids;
}

TEST_CASE("out of memory: none and file have one order, and a worker that comes back goes on in it") {
  const std::string content = Table(3000);
  Config config = TableConfig(content, DataCache::kNone);
  config.cluster.worker.assign(3, "");
  const std::shared_ptr<const DataSet> none = LoadData(config).train;
  const std::vector<float> all = BatchesFrom(config, none, 0);
  const std::vector<float> rest = BatchesFrom(config, LoadData(config).train, 37);
  CHECK(rest == std::vector<float>(all.begin() + 370, all.end()));
  config.data.cache = DataCache::kFile;
  CHECK(BatchesFrom(config, LoadData(config).train, 0) == all);
}

TEST_CASE("out of memory: a compressed file is read in windows from front to back") {
  Config config = TableConfig(Table(5000), DataCache::kNone);
  const LoadedData plain = LoadData(config);
  config.data.train.path = {WriteGzip("train.csv.gz", Table(5000))};
  const LoadedData packed = LoadData(config);
  CHECK(plain.train->blocks()->size() > 1);
  CHECK(packed.train->blocks()->size() == 1);
  const std::vector<int64_t> some = SomeRows(5000, 8);
  CHECK(Gathered(*packed.train, some).features == Gathered(*plain.train, some).features);
  std::map<std::pair<int64_t, int64_t>, int> read;
  ReadAll(config, packed.train, 0, 1, &read);
  CHECK(read.size() == 10000);
}

TEST_CASE("out of memory: rows that are skipped or dropped have no place in the order") {
  for (const DataCache cache : {DataCache::kMemory, DataCache::kNone, DataCache::kFile}) {
    std::string content = "id,kind\n";
    for (int row = 0; row < 3000; ++row) {
      content += row % 10 == 3   ? "x,yes\n"
                 : row % 10 == 5 ? ",yes\n"
                                 : fmt::format("{},{}\n", row, row % 2 ? "yes" : "no");
    }
    Config config = TableConfig(content, cache);
    config.data.categories.clear();
    config.data.missing = MissingValues::kDrop;
    config.data.bad_rows = BadRows::kSkip;
    const LoadedData loaded = LoadData(config);
    CHECK(*loaded.train->rows() == 2400);
    CHECK(loaded.skipped.bad == 300);
    CHECK(loaded.skipped.with_gaps == 300);
    CHECK(loaded.skipped.faults.size() == SkippedRows::kToldFaults);
    CHECK(Gathered(*loaded.train, {0, 3, 4, 2399}).features == std::vector<float>{0, 4, 6, 2999});
  }
}

TEST_CASE("out of memory: a value that cannot be read ends the start, with its place") {
  for (const DataCache cache : {DataCache::kNone, DataCache::kFile}) {
    Config config = TableConfig("id,city,income,kind\n1,Rome,2,yes\n2,Rome,rich,no\n", cache);
    CHECK(UserErrorOf([&] { LoadData(config); }).find("train.csv:3:8: income = rich; must be a number") !=
          std::string::npos);
    CHECK((!fs::exists(config.data.cache_dir) ||
           std::none_of(fs::directory_iterator(config.data.cache_dir), fs::directory_iterator(),
                        [](const auto& entry) { return entry.path().extension() != ".lock"; })));
  }
}

TEST_CASE("streamed set: a file that changes in a run is told") {
  Config config = TableConfig(Table(3000), DataCache::kNone);
  const std::shared_ptr<const DataSet> set = LoadData(config).train;
  std::ofstream(config.data.train.path.front()) << "id,city,income,kind\n1,Rome,2,yes\n";
  CHECK(UserErrorOf([&] { Gathered(*set, {2000}); }).find("train.csv") != std::string::npos);
}

TEST_CASE("streamed set: rows that were written to in a run are told as a change, and never mixed") {
  const std::string table = Table(3000);
  Config config = TableConfig(table, DataCache::kNone);
  const std::string& path = config.data.train.path.front();
  for (const std::string by : {"no\n", "on\n", "\n\n\n"}) {
    CAPTURE(by);
    std::ofstream(path) << table;
    const std::shared_ptr<const DataSet> set = LoadData(config).train;
    std::string other = table;
    for (size_t at = 0; (at = other.find("no\n", at)) != std::string::npos; ++at) other.replace(at, 3, by);
    std::ofstream(path) << other;
    CHECK(UserErrorOf([&] { Gathered(*set, {2000}); }).find("has changed since the start") !=
          std::string::npos);
  }
}

TEST_CASE("out of memory: of several files some may be without rows, and not all") {
  for (const DataCache cache : {DataCache::kMemory, DataCache::kNone, DataCache::kFile}) {
    Config config = TableConfig("id,city,income,kind\n", cache);
    CHECK(!UserErrorOf([&] { LoadData(config); }).empty());
    const std::string empty = config.data.train.path.front();
    fs::copy_file(empty, empty + ".empty", fs::copy_options::overwrite_existing);
    const Config full = TableConfig(Table(50), cache);
    config.data.train.path = {full.data.train.path.front(), empty + ".empty"};
    CHECK(*LoadData(config).train->rows() == 50);
  }
}

TEST_CASE("out of memory: the classes are counted as in memory, and what is held out is warned of alike") {
  std::string table = "id,kind\n";
  for (int row = 0; row < 600; ++row) table += fmt::format("{},{}\n", row, row < 400 ? "no" : "ah");
  for (const DataCache cache : {DataCache::kMemory, DataCache::kNone, DataCache::kFile}) {
    Config config = TableConfig(table, cache);
    config.data.categories.clear();
    config.data.missing = MissingValues::kError;
    config.data.validation = 100;
    const LoadedData loaded = LoadData(config);
    const LabelCounts counts = CountLabels(loaded, 100);
    CHECK(counts.held_out == std::vector<int64_t>{0, 100});
    CHECK(counts.trained == std::vector<int64_t>{200, 300});
    CHECK(UnseenClassesText(config.data, loaded.form, counts).find("all of class no") != std::string::npos);
  }
}

std::string OnlyCache(const std::string& directory, const std::string& ending = ".rows") {
  std::string path;
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() != ending) continue;
    CHECK(path.empty());
    path = entry.path();
  }
  return path;
}

TEST_CASE("row index: it is kept where data.cache_dir is set, used again, and remade with its file") {
  Config config = TableConfig(Table(3000), DataCache::kNone);
  const std::vector<int64_t> some = SomeRows(3000, 8);
  const Rows rows = Gathered(*LoadData(config).train, some);
  const std::string path = OnlyCache(config.data.cache_dir, ".index");
  REQUIRE(!path.empty());
  const std::string whole = ReadBack(path);
  const auto made = fs::last_write_time(path);
  const LoadedData again = LoadData(config);
  CHECK(fs::last_write_time(path) == made);
  CHECK(Gathered(*again.train, some).features == rows.features);
  CHECK(again.form.classes == std::vector<std::string>{"no", "yes"});
  CHECK(FingerprintOf(*again.train).labels == FingerprintOf(*LoadData(config).train).labels);
  for (size_t damaged = 0; damaged < whole.size(); damaged += 1 + whole.size() / 97) {
    CAPTURE(damaged);
    std::string content = whole;
    content[damaged] = static_cast<char>(content[damaged] ^ 0x5a);
    std::ofstream(path, std::ios::binary) << content;
    CHECK(Gathered(*LoadData(config).train, some).features == rows.features);
    CHECK(ReadBack(path) == whole);
  }
  for (const size_t size : {size_t{0}, size_t{20}, size_t{100}, whole.size() - 1}) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    CHECK(Gathered(*LoadData(config).train, some).labels == rows.labels);
  }
  std::ofstream(config.data.train.path.front(), std::ios::app) << "3000,Rome,1,no\n";
  CHECK(*LoadData(config).train->rows() == 3001);
  config.data.cache_dir.clear();
  CHECK(*LoadData(config).train->rows() == 3001);
}

TEST_CASE("out of memory: rows have the weights that they have in memory") {
  Config config = TableConfig(Table(3000), DataCache::kMemory);
  config.data.weight = "income";
  config.data.missing = MissingValues::kDrop;
  const std::vector<int64_t> some = SomeRows(2000, 6);
  const auto weights = [&] {
    const std::shared_ptr<const DataSet> set = LoadData(config).train;
    CHECK(set->weighted());
    std::vector<float> of_rows(some.size());
    set->Weights(some.data(), static_cast<int64_t>(some.size()), of_rows.data());
    return of_rows;
  };
  const std::vector<float> memory = weights();
  for (const DataCache cache : {DataCache::kNone, DataCache::kFile}) {
    config.data.cache = cache;
    CHECK(weights() == memory);
  }
  // Now they are kept: a damaged weight is found.
  const std::string path = OnlyCache(config.data.cache_dir);
  std::string content = ReadBack(path);
  const size_t rows = static_cast<size_t>(*LoadData(config).train->rows());
  const size_t weights_at = 4096 + rows * 4 * (static_cast<size_t>(LoadData(config).train->inputs()) + 1);
  content[weights_at + 5] = static_cast<char>(content[weights_at + 5] ^ 0x5a);
  std::ofstream(path, std::ios::binary) << content;
  CHECK(weights() == memory);
}

TEST_CASE("row cache: it is used again, and remade when a byte or a key has changed") {
  const Config config = TableConfig(Table(2000), DataCache::kFile);
  LoadData(config);
  const std::string path = OnlyCache(config.data.cache_dir);
  const auto made = fs::last_write_time(path);
  LoadData(config);
  CHECK(fs::last_write_time(path) == made);
  // Another scale or order needs no other cache.
  Config scaled = config;
  scaled.data.scale = FeatureScale::kUnit;
  scaled.data.seed = 9;
  LoadData(scaled);
  CHECK(OnlyCache(config.data.cache_dir) == path);
  CHECK(fs::last_write_time(path) == made);
  // The same size, and the same time of the last write.
  const std::string& file = config.data.train.path.front();
  const auto written = fs::last_write_time(file);
  std::string content = ReadBack(file);
  content[content.find("yes")] = 'Y';
  std::ofstream(file) << content;
  fs::last_write_time(file, written);
  Config three = config;
  three.model.outputs = 3;
  CHECK(LoadData(three).form.classes == std::vector<std::string>{"Yes", "no", "yes"});
}

TEST_CASE("row cache: one that is damaged, cut short or of something else is remade") {
  const Config config = TableConfig(Table(2000), DataCache::kFile);
  const std::vector<int64_t> some = SomeRows(2000, 2);
  const Rows rows = Gathered(*LoadData(config).train, some);
  const std::string path = OnlyCache(config.data.cache_dir);
  const std::string whole = ReadBack(path);
  const size_t labels_at = 4096 + 2000 * 4 * static_cast<size_t>(LoadData(config).train->inputs());
  for (const size_t damaged : {size_t{0}, size_t{8}, size_t{16}, size_t{25}, labels_at, whole.size() - 1}) {
    CAPTURE(damaged);
    std::string content = whole;
    content[damaged] = static_cast<char>(content[damaged] ^ 0x5a);
    std::ofstream(path, std::ios::binary) << content;
    CHECK(Gathered(*LoadData(config).train, some).features == rows.features);
    CHECK(ReadBack(path) == whole);
  }
  for (const size_t size : {size_t{0}, size_t{100}, size_t{5000}, whole.size() - 1}) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    CHECK(Gathered(*LoadData(config).train, some).labels == rows.labels);
  }
}

TEST_CASE("row cache: damaged features are found when their rows are asked for, with the file") {
  const Config config = TableConfig(Table(3000), DataCache::kFile);
  LoadData(config);
  const std::string path = OnlyCache(config.data.cache_dir);
  std::string content = ReadBack(path);
  content[4096 + 4 * 6 * 1500] ^= 0x10;
  std::ofstream(path, std::ios::binary) << content;
  const std::shared_ptr<const DataSet> set = LoadData(config).train;
  Gathered(*set, {0, 1023, 2048, 2999});
  const std::string error = UserErrorOf([&] { Gathered(*set, {1024}); });
  CHECK(error.find(path + ": the rows 1024 to 2047 are damaged. Delete the file") == 0);
}

TEST_CASE("row cache: several tasks at once make one, and all have it") {
  const Config config = TableConfig(Table(4000), DataCache::kFile);
  std::vector<std::thread> threads;
  std::vector<Rows> rows(4);
  for (size_t task = 0; task < rows.size(); ++task) {
    threads.emplace_back([&, task] { rows[task] = Gathered(*LoadData(config).train, SomeRows(4000, 1)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Rows& other : rows) CHECK(other.features == rows[0].features);
  CHECK(!OnlyCache(config.data.cache_dir).empty());
}

TEST_CASE("row cache: a directory that cannot be written is named, with the key") {
  Config config = TableConfig(Table(10), DataCache::kFile);
  config.data.cache_dir = WritePlain("a_file", "") + "/cache";
  const std::string error = UserErrorOf([&] { LoadData(config); });
  CHECK(error.find("cannot be written") != std::string::npos);
  CHECK(error.find("data.cache_dir") != std::string::npos);
}

TEST_CASE("mapped images: the rows are those of images that are read; packed and cut files are refused") {
  Config config;
  config.model.kind = ModelKind::kSoftmax;
  config.data.train.format = DataFormat::kIdx;
  std::vector<uint8_t> labels(3000);
  for (size_t row = 0; row < labels.size(); ++row) labels[row] = static_cast<uint8_t>(row % 10);
  const std::string images = IdxImageContent(3000, 2, 3);
  config.data.train.images = {WritePlain("images", images)};
  config.data.train.labels = {WritePlain("labels", IdxLabelContent(labels))};
  const std::shared_ptr<const DataSet> memory = LoadData(config).train;
  config.data.cache = DataCache::kNone;
  const std::shared_ptr<const DataSet> mapped = LoadData(config).train;
  const std::vector<int64_t> some = SomeRows(3000, 4);
  CHECK(Gathered(*mapped, some).features == Gathered(*memory, some).features);
  CHECK(Gathered(*mapped, some).labels == Gathered(*memory, some).labels);
  CHECK(std::equal(images.begin() + 16, images.end(), mapped->bytes().data,
                   [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; }));
  config.data.train.images = {WriteGzip("images.gz", images)};
  CHECK(UserErrorOf([&] { LoadData(config); }).find("is packed") != std::string::npos);
  config.data.train.images = {WritePlain("images", images.substr(0, images.size() - 1))};
  CHECK(!UserErrorOf([&] { LoadData(config); }).empty());
}

Config Sized(Config config, int64_t inputs) {
  config.model.inputs = inputs;
  return config;
}

TEST_CASE("mapped images: the rows of several files are those of one file, as floats") {
  Config config;
  config.model.kind = ModelKind::kSoftmax;
  config.train.batch_size = 7;
  config.train.epochs = 1;
  DataSourceConfig& train = config.data.train;
  train.format = DataFormat::kIdx;
  const std::string images = IdxImageContent(3000, 2, 3);
  std::vector<uint8_t> labels(3000);
  for (size_t row = 0; row < labels.size(); ++row) labels[row] = static_cast<uint8_t>(row % 10);
  train.images = {WritePlain("whole", images)};
  train.labels = {WritePlain("whole-labels", IdxLabelContent(labels))};
  const std::shared_ptr<const DataSet> whole = LoadData(config).train;
  config.data.cache = DataCache::kNone;
  const std::shared_ptr<const DataSet> mapped = LoadData(config).train;
  const DataSize size_of_one = EstimateDataSize(Sized(config, 6));
  train.images.clear();
  train.labels.clear();
  int64_t first = 0;
  for (const int64_t count : {1100, 1, 1899}) {
    const std::string header = IdxImageContent(static_cast<uint32_t>(count), 2, 3).substr(0, 16);
    train.images.push_back(
        WritePlain(fmt::format("images{}", first), header + images.substr(16 + first * 6, count * 6)));
    train.labels.push_back(
        WritePlain(fmt::format("labels{}", first),
                   IdxLabelContent({labels.begin() + first, labels.begin() + first + count})));
    first += count;
  }
  const std::shared_ptr<const DataSet> parts = LoadData(config).train;
  CHECK((parts->bytes().data == nullptr));
  CHECK(PeekShape(config).rows == 3000);
  CHECK(size_of_one.as_bytes);
  CHECK(!EstimateDataSize(Sized(config, 6)).as_bytes);
  CHECK(FingerprintOf(*parts) == FingerprintOf(*whole));
  std::vector<int64_t> some = SomeRows(3000, 4);
  some.insert(some.end(), {0, 1099, 1100, 1101, 2999});
  CHECK(Gathered(*parts, some).features == Gathered(*whole, some).features);
  CHECK(Gathered(*parts, some).labels == Gathered(*whole, some).labels);
  const auto source = MakeBatchSource(config, parts, 0, 1), same = MakeBatchSource(config, mapped, 0, 1);
  Batch batch, expected;
  while (source->Next(&batch)) {
    REQUIRE(same->Next(&expected));
    REQUIRE((batch.bytes.table.data == nullptr && batch.inputs != nullptr));
    const gpu::Span<const int64_t>& rows = expected.bytes.rows;
    const Rows wanted = Gathered(*mapped, {rows.data, rows.data + rows.size});
    REQUIRE(std::vector<float>(batch.inputs, batch.inputs + batch.rows * 6) == wanted.features);
    REQUIRE(std::vector<int32_t>(batch.labels, batch.labels + batch.rows) == wanted.labels);
  }
  CHECK(!same->Next(&expected));
  train.images[2] = WriteGzip("images.gz", IdxImageContent(1899, 2, 3));
  CHECK(UserErrorOf([&] { LoadData(config); }).find("images.gz: is packed") != std::string::npos);
  train.images[2] = WritePlain("other", IdxImageContent(1898, 2, 3));
  CHECK(UserErrorOf([&] { LoadData(config); }).find("other has 1898 images, and each needs one label") !=
        std::string::npos);
}

}  // namespace
}  // namespace dtrain
