// Rows that are not in memory: read from their files in each epoch (data.cache: none), or from a cache of
// parsed rows (file). Both give the rows that a set in memory has.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "trainer/config/config.h"
#include "trainer/order/order.h"
#include "trainer/sets/cache_file.h"
#include "trainer/sets/file_sets.h"
#include "trainer/sets/load_data.h"
#include "trainer/sets/sets_test_util.h"
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
      const Rows here = RowsOf(*loaded.train, some), there = RowsOf(*memory.train, some);
      CHECK(here.labels == there.labels);
      REQUIRE(here.features.size() == there.features.size());
      // Mean and deviation are of one pass, and not of two.
      for (size_t i = 0; i < here.features.size(); ++i) {
        if (here.features[i] != doctest::Approx(there.features[i]).epsilon(1e-6)) FAIL_CHECK(i);
      }
      CHECK(RowsOf(*loaded.test, {0, 7}).labels == RowsOf(*memory.test, {0, 7}).labels);
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

std::vector<float> BatchesFrom(const Config& config, int64_t step) {
  const std::unique_ptr<BatchSource> source = MakeBatchSource(config, LoadData(config).train, 1, 3);
  source->Seek(step);
  return FirstFeatures(*source);
}

TEST_CASE("out of memory: none and file have one order, and a worker that comes back goes on in it") {
  Config config = TableConfig(Table(3000), DataCache::kNone);
  config.cluster.worker.assign(3, "");
  const std::vector<float> all = BatchesFrom(config, 0);
  CHECK(BatchesFrom(config, 37) == std::vector<float>(all.begin() + 370, all.end()));
  config.data.cache = DataCache::kFile;
  CHECK(BatchesFrom(config, 0) == all);
}

TEST_CASE("out of memory: a compressed file is read in windows from front to back") {
  Config config = TableConfig(Table(5000), DataCache::kNone);
  const LoadedData plain = LoadData(config);
  config.data.train.path = {WriteGzip("train.csv.gz", Table(5000))};
  const LoadedData packed = LoadData(config);
  CHECK(plain.train->blocks()->size() > 1);
  CHECK(packed.train->blocks()->size() == 1);
  const std::vector<int64_t> some = SomeRows(5000, 8);
  CHECK(RowsOf(*packed.train, some).features == RowsOf(*plain.train, some).features);
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
    CHECK(RowsOf(*loaded.train, {0, 3, 4, 2399}).features == std::vector<float>{0, 4, 6, 2999});
  }
}

TEST_CASE("out of memory: a value that cannot be read ends the start, with its place") {
  for (const DataCache cache : {DataCache::kNone, DataCache::kFile}) {
    Config config = TableConfig("id,city,income,kind\n1,Rome,2,yes\n2,Rome,rich,no\n", cache);
    CHECK(Has(LoadError(config), "train.csv:3:8: income = rich; must be a number"));
    CHECK((!fs::exists(config.data.cache_dir) ||
           std::none_of(fs::directory_iterator(config.data.cache_dir), fs::directory_iterator(),
                        [](const auto& entry) { return entry.path().extension() != ".lock"; })));
  }
}

// A table of numbers x, y, and classes `zero` and 1; row 2500 has `bad` in place of its number.
Config Numbers(int64_t rows, const std::string& zero, const std::string& bad = "2500") {
  std::string table = "x,y\n";
  for (int64_t row = 0; row < rows; ++row) {
    table += fmt::format("{},{}\n", row == 2500 ? bad : fmt::format("{}", row), row % 3 == 0 ? "1" : zero);
  }
  Config config = CsvConfig(ModelKind::kLogistic, table, "y");
  config.data.cache = DataCache::kNone;
  config.data.shuffle_rows = 1000;
  config.train.batch_size = 10;
  config.train.epochs = 1;
  return config;
}

TEST_CASE("streamed set: text is scanned once and parsed once, when it is trained on") {
  const Config config = Numbers(1'000'000, "0");
  const auto size = static_cast<int64_t>(fs::file_size(config.data.train.path.front()));
  const int64_t before = BytesRead();
  const LoadedData loaded = LoadData(config);
  CHECK(loaded.train->facts()->why_parsed.empty());
  CHECK(loaded.train->class_rows() == nullptr);
  const std::unique_ptr<BatchSource> source = MakeBatchSource(config, loaded.train, 0, 1);
  int64_t rows = 0;
  for (Batch batch; source->Next(&batch);) rows += batch.rows;
  CHECK(rows == 1'000'000);
  CHECK(BytesRead() - before < 2 * size + (6 << 20));  // each opening of the file reads a MiB
}

TEST_CASE("streamed set: rows of the next window that are in memory stay there while those after it come") {
  constexpr int64_t kBlock = 1024, kBlocks = 8, kApart = 200 * kBlock;  // no buffer of a file has two windows
  const std::shared_ptr<const DataSet> set = LoadData(Numbers(3 * kApart, "0")).train;
  const auto read = [&](int64_t window) {
    for (int64_t block = 0; block < kBlocks; ++block) RowsOf(*set, {window * kApart + block * kBlock});
  };
  const auto run_of = [&](int64_t window) {
    return RowRun{window * kApart, window * kApart + kBlocks * kBlock};
  };
  set->WillNeed({run_of(0), run_of(1)});
  for (const int64_t window : {1, 0}) read(window);
  set->WillNeed({run_of(1), run_of(2)});
  read(2);
  const int64_t before = BytesRead();
  read(1);
  CHECK(BytesRead() - before < 1024);  // the count is a file, too
}

TEST_CASE("streamed set: a bad row is met when it is trained on, and found at once where rows are checked") {
  for (const std::string bad : {"rich", "1,2", "", "\"2\"x"}) {
    CAPTURE(bad);
    const Config config = Numbers(4000, "0", bad);
    const std::string told = UserErrorOf([&] { LoadData(config, nullptr, {}, /*checks=*/true); });
    CHECK(told.find("train.csv:2502:") != std::string::npos);
    if (bad.back() == 'x') {  // it is not known where the record ends
      CHECK(UserErrorOf([&] { LoadData(config); }) == told);
      continue;
    }
    const std::shared_ptr<const DataSet> set = LoadData(config).train;
    CHECK(*set->rows() == 4000);
    CHECK(RowsOf(*set, {0, 3999}).features == std::vector<float>{0, 3999});
    CHECK(UserErrorOf([&] { RowsOf(*set, {2100}); }) == told);
  }
  // The first row of a later block is not the first of the file.
  Config config = Numbers(4000, "0");
  std::string table = ReadBack(config.data.train.path.front());
  const size_t at = table.find("\n2048,") + 1;
  std::ofstream(config.data.train.path.front()) << table.replace(at, 4, "city");
  const std::string told = UserErrorOf([&] { LoadData(config, nullptr, {}, /*checks=*/true); });
  const std::shared_ptr<const DataSet> set = LoadData(config).train;
  CHECK(UserErrorOf([&] { RowsOf(*set, {2050}); }) == told);
}

TEST_CASE("streamed set: labels are of one kind in all rows, whichever is parsed first") {
  const auto fault = [](const std::string& zero, const std::string& other) {
    const Config config = Numbers(4000, zero);
    std::string table = ReadBack(config.data.train.path.front());
    table.replace(table.rfind("," + zero + "\n") + 1, zero.size(), other);
    std::ofstream(config.data.train.path.front()) << table;
    const std::string told = UserErrorOf([&] { LoadData(config, nullptr, {}, /*checks=*/true); });
    CHECK(!told.empty());
    const LoadedData loaded = LoadData(config);
    CHECK(loaded.form.classes.size() == (zero == "-1" ? 2 : 0));
    return UserErrorOf([&] { RowsOf(*loaded.train, {3999}); }) == told;
  };
  CHECK(fault("0", "-1"));
  CHECK(fault("-1", "0"));
  CHECK(fault("0", "cat"));
  CHECK(fault("0", "2"));
}

TEST_CASE("streamed set: what needs the values of all rows says so, and they are parsed") {
  const auto why = [](const std::function<void(Config*)>& change) {
    Config config = Numbers(3000, "0");
    change(&config);
    const LoadedData loaded = LoadData(config);
    CHECK(loaded.train->class_rows() != nullptr);
    return loaded.train->facts()->why_parsed;
  };
  CHECK(why([](Config* c) { c->data.class_weights = {"balanced"}; }).find("data.class_weights: balanced") ==
        0);
  CHECK(why([](Config* c) { c->data.bad_rows = BadRows::kSkip; }).find("data.bad_rows: skip") == 0);
  CHECK(why([](Config* c) { c->data.missing = MissingValues::kDrop; }).find("data.missing: drop") == 0);
  CHECK(why([](Config* c) {
          c->data.validation = 100;
          c->data.validation_by = HeldOutBy::kStratified;
        }).find("data.validation_by: stratified") == 0);
  CHECK(why([](Config* c) { c->data.label_type = LabelType::kNames; }).find("the first labels do not") == 0);
  CHECK(why([](Config* c) {
          c->data.train.path = {WriteGzip("packed.csv", ReadBack(c->data.train.path.front()))};
        }).find("is packed") != std::string::npos);
}

TEST_CASE("streamed set: names of classes that are given need no pass over all rows") {
  Config config = Numbers(3000, "cat");
  config.data.label_type = LabelType::kNames;
  config.data.classes = {"1", "cat"};
  const LoadedData loaded = LoadData(config);
  CHECK(loaded.train->class_rows() == nullptr);
  CHECK(loaded.form.classes == config.data.classes);
  CHECK(RowsOf(*loaded.train, {0, 1}).labels == std::vector<int32_t>{0, 1});
}

TEST_CASE("row index: one that was made by a scan is made anew where labels are needed") {
  Config config = Numbers(3000, "-1");
  config.data.cache_dir = NewCacheDirectory();
  const LoadedData scanned = LoadData(config), again = LoadData(config);
  CHECK(scanned.train->class_rows() == nullptr);
  CHECK(again.form.classes == std::vector<std::string>{"-1", "1"});
  CHECK(again.train->fingerprint()->features == scanned.train->fingerprint()->features);
  config.data.class_weights = {"balanced"};
  const LoadedData counted = LoadData(config);
  CHECK(*counted.train->class_rows() == std::vector<int64_t>{2000, 1000});
  CHECK(*counted.train->blocks() == *scanned.train->blocks());
  config.data.class_weights.clear();
  CHECK(LoadData(config).train->class_rows() != nullptr);
}

TEST_CASE("streamed set: a file that changes in a run is told") {
  Config config = TableConfig(Table(3000), DataCache::kNone);
  const std::shared_ptr<const DataSet> set = LoadData(config).train;
  std::ofstream(config.data.train.path.front()) << "id,city,income,kind\n1,Rome,2,yes\n";
  CHECK(Has(UserErrorOf([&] { RowsOf(*set, {2000}); }), "train.csv"));
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
    CHECK(Has(UserErrorOf([&] { RowsOf(*set, {2000}); }), "has changed since the start"));
  }
}

TEST_CASE("out of memory: of several files some may be without rows, and not all") {
  for (const DataCache cache : {DataCache::kMemory, DataCache::kNone, DataCache::kFile}) {
    Config config = TableConfig("id,city,income,kind\n", cache);
    CHECK(!LoadError(config).empty());
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
    CHECK(Has(UnseenClassesText(config.data, loaded.form, counts), "all of class no"));
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

// Checks that a file that was made of data.train gives these rows, and is made anew where a byte of it is
// damaged, or where it is cut short.
void CheckMadeAnew(const Config& config, const std::string& path, const std::vector<int64_t>& some,
                   const std::vector<size_t>& damaged_bytes, const std::vector<size_t>& sizes) {
  const Rows rows = RowsOf(*LoadData(config).train, some);
  const std::string whole = ReadBack(path);
  for (const size_t damaged : damaged_bytes) {
    CAPTURE(damaged);
    std::string content = whole;
    content.at(damaged) ^= 0x5a;
    std::ofstream(path, std::ios::binary) << content;
    CHECK(RowsOf(*LoadData(config).train, some).features == rows.features);
    CHECK(ReadBack(path) == whole);
  }
  for (const size_t size : sizes) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    CHECK(RowsOf(*LoadData(config).train, some).labels == rows.labels);
  }
}

TEST_CASE("row index: it is kept where data.cache_dir is set, used again, and remade with its file") {
  Config config = TableConfig(Table(3000), DataCache::kNone);
  const std::vector<int64_t> some = SomeRows(3000, 8);
  const Rows rows = RowsOf(*LoadData(config).train, some);
  const std::string path = OnlyCache(config.data.cache_dir, ".index");
  REQUIRE(!path.empty());
  const size_t size = fs::file_size(path);
  const auto made = fs::last_write_time(path);
  const LoadedData again = LoadData(config);
  CHECK(fs::last_write_time(path) == made);
  CHECK(RowsOf(*again.train, some).features == rows.features);
  CHECK(again.form.classes == std::vector<std::string>{"no", "yes"});
  CHECK(FingerprintOf(*again.train).labels == FingerprintOf(*LoadData(config).train).labels);
  std::vector<size_t> damaged;
  for (size_t at = 0; at < size; at += 1 + size / 97) damaged.push_back(at);
  CheckMadeAnew(config, path, some, damaged, {0, 20, 100, size - 1});
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
    return RowsOf(*set, some).weights;
  };
  const std::vector<float> memory = weights();
  for (const DataCache cache : {DataCache::kNone, DataCache::kFile}) {
    config.data.cache = cache;
    CHECK(weights() == memory);
  }
  // Now they are kept: a damaged weight is found.
  const std::shared_ptr<const DataSet> set = LoadData(config).train;
  const auto weights_at = static_cast<size_t>(4096 + *set->rows() * 4 * (set->inputs() + 1));
  CheckMadeAnew(config, OnlyCache(config.data.cache_dir), some, {weights_at + 5}, {});
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
  const size_t labels_at = 4096 + 2000 * 4 * static_cast<size_t>(LoadData(config).train->inputs());
  const std::string path = OnlyCache(config.data.cache_dir);
  const size_t size = fs::file_size(path);
  CheckMadeAnew(config, path, some, {0, 8, 16, 25, labels_at, size - 1}, {0, 100, 5000, size - 1});
}

TEST_CASE("row cache: damaged features are found when their rows are asked for, with the file") {
  const Config config = TableConfig(Table(3000), DataCache::kFile);
  LoadData(config);
  const std::string path = OnlyCache(config.data.cache_dir);
  std::string content = ReadBack(path);
  content[4096 + 4 * 6 * 1500] ^= 0x10;
  std::ofstream(path, std::ios::binary) << content;
  const std::shared_ptr<const DataSet> set = LoadData(config).train;
  RowsOf(*set, {0, 1023, 2048, 2999});
  const std::string error = UserErrorOf([&] { RowsOf(*set, {1024}); });
  CHECK(error.find(path + ": the rows 1024 to 2047 are damaged. Delete the file") == 0);
}

TEST_CASE("row cache: several tasks at once make one, and all have it") {
  const Config config = TableConfig(Table(4000), DataCache::kFile);
  std::vector<std::thread> threads;
  std::vector<Rows> rows(4);
  for (size_t task = 0; task < rows.size(); ++task) {
    threads.emplace_back([&, task] { rows[task] = RowsOf(*LoadData(config).train, SomeRows(4000, 1)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Rows& other : rows) CHECK(other.features == rows[0].features);
  CHECK(!OnlyCache(config.data.cache_dir).empty());
}

TEST_CASE("row cache: what killed tasks have left of one goes when the next is made, and no other file") {
  const Config config = TableConfig(Table(100), DataCache::kFile);
  LoadData(config);
  const std::string path = OnlyCache(config.data.cache_dir);
  fs::remove(path);
  for (const char* left : {".12345.tmp", ".777.tmp", ".mine"}) std::ofstream(path + left) << "a part";
  const FileDescriptor writer(open((path + ".777.tmp").c_str(), O_RDONLY));
  REQUIRE(flock(writer.get(), LOCK_EX) == 0);  // it lives
  LoadData(config);
  CHECK_FALSE(fs::exists(path + ".12345.tmp"));
  CHECK(fs::exists(path + ".777.tmp"));
  CHECK(fs::exists(path + ".mine"));
}

TEST_CASE("row cache: one that was made with a higher limit of bad rows is made anew, which tells them") {
  Config config = TableConfig(Table(100) + "x,,,yes\ny,,,no\n", DataCache::kFile);
  config.data.bad_rows = BadRows::kSkip;
  CHECK(LoadData(config).skipped.bad == 2);
  config.data.bad_rows_limit = 1;
  CHECK(Has(LoadError(config), "It is bad row 2, and data.bad_rows_limit = 1."));
}

TEST_CASE("row cache: a directory that cannot be written is named, with the key") {
  Config config = TableConfig(Table(10), DataCache::kFile);
  config.data.cache_dir = WritePlain("a_file", "") + "/cache";
  const std::string error = LoadError(config);
  CHECK(Has(error, "cannot be written"));
  CHECK(Has(error, "data.cache_dir"));
}

}  // namespace
}  // namespace dtrain
