// Texts of sparse rows as a run reads them: LoadData, PeekShape, batches.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "trainer/data/data_shape.h"
#include "trainer/data/data_warnings.h"
#include "trainer/data/files/data_test_util.h"
#include "trainer/data/load_data.h"
#include "trainer/data/source.h"

namespace dtrain {
namespace {

Config Libsvm(ModelKind kind, const std::string& content, const std::string& name = "train.txt") {
  Config config;
  config.model.kind = kind;
  config.data.train.format = DataFormat::kLibsvm;
  config.data.train.path = {WritePlain(name, content)};
  config.data.shuffle = false;
  config.train.batch_size = 10;
  config.train.epochs = 1;
  return config;
}

void TestOn(const std::string& content, Config* config) {
  config->data.test.format = config->data.train.format;
  config->data.test.path = {WritePlain("test.txt", content)};
}

struct Rows {
  SparseBuffer features;
  std::vector<float> dense;
  std::vector<int32_t> labels;
  std::vector<float> targets;
};

Rows RowsOf(const DataSet& set) {
  const int64_t count = *set.rows();
  std::vector<int64_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  Rows rows;
  rows.dense.resize(static_cast<size_t>(count * set.inputs()));
  (set.classes() ? rows.labels.resize(all.size()) : rows.targets.resize(all.size()));
  set.Gather(all.data(), count, rows.dense.data(), rows.labels.data(), rows.targets.data());
  set.GatherSparse(all.data(), count, &rows.features);
  return rows;
}

TEST_CASE("sparse: a row has its features, and as a dense row zeros beside them") {
  const LoadedData data =
      LoadData(Libsvm(ModelKind::kLogistic, "1 1:2 4:1\n# comment\n\n0 2:3\n1\n0 4:1 4:1"));
  CHECK(data.train->sparse());
  CHECK(data.train->inputs() == 4);
  CHECK(data.train->rows() == 4);
  const Rows rows = RowsOf(*data.train);
  CHECK(rows.features.offsets == std::vector<int64_t>{0, 2, 3, 3, 5});
  CHECK(rows.features.ids == std::vector<uint64_t>{0, 3, 1, 3, 3});
  CHECK(rows.features.values == std::vector<float>{2, 1, 3, 1, 1});
  CHECK(rows.dense == std::vector<float>{2, 0, 0, 1, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2});
  CHECK(rows.labels == std::vector<int32_t>{1, 0, 1, 0});
  CHECK(data.form.classes.empty());
}

TEST_CASE("sparse: labels are numbers of classes, -1 and +1, names, or real targets") {
  const auto of = [](ModelKind kind, const std::string& content) {
    Config config = Libsvm(kind, content);
    if (kind == ModelKind::kSoftmax) config.model.outputs = 3;
    return RowsOf(*LoadData(config).train);
  };
  CHECK(of(ModelKind::kLogistic, "-1 1:1\n+1 1:1\n1 1:1\n").labels == std::vector<int32_t>{0, 1, 1});
  CHECK(of(ModelKind::kSoftmax, "2 1:1\n0 1:1\n").labels == std::vector<int32_t>{2, 0});
  CHECK(of(ModelKind::kSoftmax, "oak 1:1\nelm 1:1\nyew 1:1\n").labels == std::vector<int32_t>{1, 0, 2});
  CHECK(of(ModelKind::kLinear, "-0.5 1:1\n1e3 1:1\n").targets == std::vector<float>{-0.5f, 1000});
}

TEST_CASE("sparse: what is wrong is told with file, line, column, value and remedy") {
  const auto error = [](ModelKind kind, const std::string& content) {
    const Config config = Libsvm(kind, content);
    const std::string text = UserErrorOf([&] { LoadData(config); });
    const std::string path = config.data.train.path[0];
    return text.substr(0, path.size()) == path ? text.substr(path.size()) : text;
  };
  CHECK(error(ModelKind::kLogistic, "1 1:1\n\n# c\n0 2:x\n") ==
        ":4:5: the value of feature 2 = x; must be a number. Correct it, or remove the row.");
  CHECK(
      error(ModelKind::kLogistic, "-1 1:1\r\n0 2:1\r\n") ==
      ":2:1: the label = 0; must be as in the rows before: two classes are 0 and 1, or -1 and 1. Correct it, "
      "or remove the row.");
  CHECK(error(ModelKind::kLogistic, " 2 1:1\n").find(":1:2: the label = 2; must be a whole number in 0..1") ==
        0);
  CHECK(error(ModelKind::kLinear, "1 1:1\nabc 1:1").find(":2:1: the label = abc; must be a number") == 0);
  CHECK(error(ModelKind::kLogistic, "1 0:1\n") ==
        ":1:3: feature 0; indexes begin at 1. If those of this file begin at 0, set data.index_base: 0.");
  CHECK(error(ModelKind::kLogistic, "# only a comment\n") ==
        ": no rows; data.train.path must name files with data. Fetch them anew.");
}

TEST_CASE("sparse: with data.index_base 0 the largest index is the number of features less one") {
  Config config = Libsvm(ModelKind::kLogistic, "1 0:1 2:1\n");
  config.data.index_base = 0;
  CHECK(PeekShape(config).inputs == 3);
  CHECK(RowsOf(*LoadData(config).train).features.ids == std::vector<uint64_t>{0, 2});
}

TEST_CASE("sparse: model.inputs is the width, and a feature beyond it is told") {
  Config config = Libsvm(ModelKind::kLogistic, "1 1:1\n0 9:1\n");
  config.model.inputs = 20;
  CHECK(LoadData(config).train->inputs() == 20);
  config.model.inputs = 8;
  CHECK(PeekShape(config).inputs == 8);
  CHECK(UserErrorOf([&] { LoadData(config); }) ==
        config.data.train.path[0] +
            ":2:3: feature 9; must be 1 to 8 (model.inputs = 8; where it is not set, the features of "
            "data.train). Raise model.inputs, or remove the row.");
}

TEST_CASE("sparse: the width is that of data.train, and a feature that it lacks in data.test is told") {
  Config config = Libsvm(ModelKind::kLogistic, "1 1:1\n0 3:1\n");
  TestOn("1 2:1\n0 4:1\n", &config);
  ResolveModelShape(PeekShape(config), &config);
  CHECK(config.model.inputs == 3);
  const std::string text = UserErrorOf([&] { LoadData(config); });
  CHECK(text.find("test.txt:2:3: feature 4; must be 1 to 3 (model.inputs = 3;") != std::string::npos);
  config.model.inputs = 4;
  CHECK(RowsOf(*LoadData(config).test).features.ids == std::vector<uint64_t>{1, 3});
}

TEST_CASE("sparse: a softmax counts its classes") {
  CHECK(PeekShape(Libsvm(ModelKind::kSoftmax, "0 1:1\n4 3:1\n")).classes == 5);
  CHECK(PeekShape(Libsvm(ModelKind::kSoftmax, "oak 1:1\nelm 3:1\nash 2:1")).classes == 3);
}

TEST_CASE("sparse: where files are not here, or come through a pipe, model.inputs says the width") {
  Config config = Libsvm(ModelKind::kLogistic, "1 1:1\n");
  config.data.train.path = {"not-here.txt"};
  CHECK(UserErrorOf([&] { PeekShape(config); }).find("needs model.inputs in its place") != std::string::npos);
  config.data.train.path = {"exec:echo 1 1:1"};
  CHECK(UserErrorOf([&] { PeekShape(config); }).find("Set model.inputs") != std::string::npos);
  config.model.inputs = 7;
  CHECK(PeekShape(config).inputs == 7);
}

TEST_CASE("sparse: files that are too large to be read by each task need model.inputs, which check tells") {
  Config config = Libsvm(ModelKind::kLogistic, "1 1:1 77:1\n");
  const std::string path = config.data.train.path[0];
  // A hole, which reads as one long line of zeros behind the first ones.
  REQUIRE(truncate(path.c_str(), (256 << 20) + (1 << 20)) == 0);
  CHECK(UserErrorOf([&] { PeekShape(config); }) ==
        path +
            ": 257 MiB, too large for each task to find its largest index, which is the number of features. "
            "Set model.inputs to it: dtrain check reads the files and tells it.");
  config.data.bad_rows = BadRows::kSkip;
  config.model.inputs = 77;
  CHECK(PeekShape(config).inputs == 77);
}

TEST_CASE("sparse: batches have sparse rows where the model has a table, and dense ones where it has none") {
  Config config = Libsvm(ModelKind::kLogistic, "1 1:2 4:1\n0 2:3\n");
  for (const bool held_out : {false, true}) {
    CAPTURE(held_out);
    for (const bool table : {true, false}) {
      CAPTURE(table);
      config.model.table = table ? TableKind::kAuto : TableKind::kNone;
      const LoadedData data = LoadData(config);
      const auto source =
          held_out ? MakeSequentialSource(data.train, 0, 2, 10) : MakeBatchSource(config, data.train, 0, 1);
      Batch batch;
      REQUIRE(source->Next(&batch));
      CHECK(batch.rows == 2);
      CHECK(batch.columns == 4);
      CHECK(batch.labels[0] == 1);
      CHECK((batch.inputs == nullptr) == table);
      CHECK((batch.sparse.offsets != nullptr) == table);
      if (table) {
        CHECK(std::vector<int64_t>(batch.sparse.offsets, batch.sparse.offsets + 3) ==
              std::vector<int64_t>{0, 2, 3});
        CHECK(batch.sparse.ids[2] == 1);
      } else {
        CHECK(std::vector<float>(batch.inputs, batch.inputs + 8) ==
              std::vector<float>{2, 0, 0, 1, 0, 3, 0, 0});
      }
    }
  }
}

TEST_CASE("sparse: rows that cannot be read are left out and counted where that is asked for") {
  Config config = Libsvm(ModelKind::kLogistic, "1 1:1\n0 x\n2 1:1\n0 2:1\n1 3:nan\n");
  config.data.bad_rows = BadRows::kSkip;
  const LoadedData data = LoadData(config);
  CHECK(data.train->rows() == 2);
  CHECK(data.train->inputs() == 2);
  CHECK(data.skipped.bad == 3);
  REQUIRE(data.skipped.faults.size() == 3);
  CHECK(data.skipped.faults[1].find(":3:1: the label = 2") != std::string::npos);
  config.data.bad_rows_limit = 2;
  CHECK(UserErrorOf([&] { LoadData(config); }).find("It is bad row 3, and data.bad_rows_limit = 2.") !=
        std::string::npos);
}

TEST_CASE("sparse: files of a list, plain and packed, are one set") {
  Config config = Libsvm(ModelKind::kLogistic, "1 1:1\n");
  config.data.train.path.push_back(WriteGzip("b.gz", "0 5:1\n1 2:1"));
  config.data.train.path.push_back(WriteZstd("c.zst", "1 3:1\n"));
  const LoadedData data = LoadData(config);
  CHECK(data.train->inputs() == 5);
  CHECK(RowsOf(*data.train).features.ids == std::vector<uint64_t>{0, 4, 1, 2});
  config.data.train.path.push_back(WritePlain("d.txt", "1 3:1\n0 3:1:2\n"));
  CHECK(UserErrorOf([&] { LoadData(config); }).find("d.txt:2:5: the value of feature 3 = 1:2") !=
        std::string::npos);
}

TEST_CASE("sparse: held-out rows and the weights of classes are those of any data") {
  Config config = Libsvm(ModelKind::kLogistic, "1 1:1\n0 2:1\n0 3:1\n0 4:1\n");
  config.data.validation = 1;
  config.data.class_weights = {"1=3"};
  config.model.inputs = 4;
  const LoadedData data = LoadData(config);
  Batch batch;
  REQUIRE(MakeBatchSource(config, data.train, 0, 1)->Next(&batch));
  CHECK(batch.rows == 3);
  CHECK(FingerprintOf(*data.train).rows == 4);
  CHECK(DataWarnings(config, data).size() >= 1);  // class 1 is in no row that is trained on
}

TEST_CASE("sparse: the memory of rows is estimated from their features and not from their width") {
  std::string content;
  for (int i = 0; i < 50'000; ++i)
    content += fmt::format("{} {}:1 {}:2 1000000:1\n", i % 2, 1 + i % 7, 9 + i);
  Config config = Libsvm(ModelKind::kLogistic, content);
  ResolveModelShape(PeekShape(config), &config);
  CHECK(config.model.inputs == 1'000'000);
  const DataSize size = EstimateDataSize(config);
  CHECK(*size.train_rows > 45'000);
  CHECK(*size.train_rows < 60'000);
  CHECK(size.bytes < 50'000 * 60.0);
  config.data.cache = DataCache::kNone;
  config.data.shuffle_rows = 1000;
  CHECK(EstimateDataSize(config).bytes < 2 * 1000 * 60.0);
}

// What a source gives in one epoch: each row as a text, batches apart.
std::vector<std::string> EpochOf(const Config& config, int worker = 0, int workers = 1) {
  const LoadedData data = LoadData(config);
  const auto source = MakeBatchSource(config, data.train, worker, workers);
  std::vector<std::string> rows;
  Batch batch;
  while (source->Next(&batch)) {
    REQUIRE(batch.sparse.offsets != nullptr);
    REQUIRE(batch.sparse.offsets[0] == 0);
    for (int64_t row = 0; row < batch.rows; ++row) {
      std::string text = fmt::format("{}:", batch.labels[row]);
      for (int64_t i = batch.sparse.offsets[row]; i < batch.sparse.offsets[row + 1]; ++i) {
        text += fmt::format(" {}={}", batch.sparse.ids[i],
                            batch.sparse.values == nullptr ? 1 : batch.sparse.values[i]);
      }
      rows.push_back(text);
    }
    rows.emplace_back("");
  }
  return rows;
}

// Rows that all differ: the last feature is the row's own.
std::string ManyRows(int count, int first = 0, bool ones = false) {
  CounterRandom random(7);
  uint64_t at = 0;
  std::string content;
  for (int i = first; i < first + count; ++i) {
    content += i % 3 == 0 ? "-1" : "+1";
    for (uint64_t left = random.Below(at++, 9); left > 0; --left) {
      content +=
          fmt::format(" {}:{}", 1 + random.Below(at, 50000), ones ? 1 : 0.25 * static_cast<double>(at % 9));
      ++at;
    }
    content += fmt::format(" {}:1\n", 60'000 + i);
  }
  return content;
}

std::string NewDirectory() {
  std::string path = std::string(getenv("TEST_TMPDIR")) + "/cache-XXXXXX";
  REQUIRE(mkdtemp(path.data()) != nullptr);
  return path;
}

std::vector<std::string> Sorted(std::vector<std::string> rows) {
  std::sort(rows.begin(), rows.end());
  rows.erase(rows.begin(), std::upper_bound(rows.begin(), rows.end(), ""));
  return rows;
}

TEST_CASE("sparse streams: memory, none and file give every row, none and file in the same order") {
  for (const bool ones : {false, true}) {
    Config config = Libsvm(ModelKind::kLogistic, ManyRows(7000, 0, ones));
    config.model.inputs = 100'000;
    config.data.shuffle_rows = 2000;
    config.data.cache_dir = NewDirectory();
    for (const bool shuffle : {false, true}) {
      CAPTURE(shuffle);
      config.data.shuffle = shuffle;
      config.data.cache = DataCache::kMemory;
      const auto memory = EpochOf(config);
      config.data.cache = DataCache::kNone;
      const auto none = EpochOf(config);
      config.data.cache = DataCache::kFile;
      const auto file = EpochOf(config);
      CHECK((none == file));
      CHECK((EpochOf(config) == file));  // the cache that is there
      CHECK((Sorted(memory) == Sorted(none)));
      CHECK(Sorted(memory).size() == 7000);
      CHECK((shuffle || memory == none));
      CHECK((!shuffle || memory != none));
    }
  }
}

TEST_CASE("sparse streams: the workers' shares are all rows, each once, of several files and packed ones") {
  Config config = Libsvm(ModelKind::kLogistic, ManyRows(3000));
  config.data.train.path.push_back(WriteGzip("b.gz", ManyRows(2000, 3000)));
  config.data.train.path.push_back(WritePlain("c.txt", "# nothing\n\n" + ManyRows(500, 5000)));
  config.model.inputs = 100'000;
  config.data.shuffle = true;
  config.data.shuffle_rows = 700;
  const auto all = Sorted(EpochOf(config));
  CHECK(all.size() == 5500);
  for (const DataCache cache : {DataCache::kNone, DataCache::kFile}) {
    config.data.cache = cache;
    config.data.cache_dir = NewDirectory();
    for (const int workers : {1, 2, 3}) {
      CAPTURE(workers);
      std::vector<std::string> together;
      for (int worker = 0; worker < workers; ++worker) {
        const auto share = EpochOf(config, worker, workers);
        together.insert(together.end(), share.begin(), share.end());
      }
      CHECK((Sorted(together) == all));
    }
  }
}

TEST_CASE("sparse streams: labels, fingerprints and counts of classes are those of rows in memory") {
  Config config = Libsvm(ModelKind::kLogistic, ManyRows(3000));
  config.model.inputs = 100'000;
  const LoadedData memory = LoadData(config);
  for (const DataCache cache : {DataCache::kNone, DataCache::kFile}) {
    config.data.cache = cache;
    config.data.cache_dir = NewDirectory();
    const LoadedData data = LoadData(config);
    CHECK(FingerprintOf(*data.train) == FingerprintOf(*memory.train));
    REQUIRE(data.train->class_rows() != nullptr);
    CHECK(*data.train->class_rows() == std::vector<int64_t>{1000, 2000});
    std::vector<int64_t> rows(3000);
    std::iota(rows.rbegin(), rows.rend(), 0);
    SparseBuffer here, there;
    data.train->GatherSparse(rows.data(), 3000, &here);
    memory.train->GatherSparse(rows.data(), 3000, &there);
    CHECK((here.ids == there.ids));
    CHECK((here.values == there.values));
    CHECK((here.offsets == there.offsets));
  }
}

TEST_CASE("sparse streams: without a table rows from files and caches are dense") {
  Config config = Libsvm(ModelKind::kLogistic, "1 1:2 4:1\n0 2:3\n1\n");
  config.model.table = TableKind::kNone;
  config.model.inputs = 4;
  for (const DataCache cache : {DataCache::kMemory, DataCache::kNone, DataCache::kFile}) {
    config.data.cache = cache;
    config.data.cache_dir = NewDirectory();
    Batch batch;
    const LoadedData data = LoadData(config);
    const auto source = MakeBatchSource(config, data.train, 0, 1);
    REQUIRE(source->Next(&batch));
    CHECK((batch.sparse.offsets == nullptr));
    REQUIRE(batch.inputs != nullptr);
    CHECK(std::vector<float>(batch.inputs, batch.inputs + 12) ==
          std::vector<float>{2, 0, 0, 1, 0, 3, 0, 0, 0, 0, 0, 0});
  }
}

TEST_CASE("sparse streams: a cache keeps ids of 8 bytes where the width needs them") {
  Config config = Libsvm(ModelKind::kLogistic, "1 5000000000:2 4:1\n0 2:1\n1 7:1 8:1 9:3\n");
  config.model.inputs = 6'000'000'000;
  const auto memory = EpochOf(config);
  config.data.cache = DataCache::kFile;
  config.data.cache_dir = NewDirectory();
  CHECK(EpochOf(config) == memory);
  CHECK(EpochOf(config) == memory);
}

TEST_CASE("sparse streams: a cache that is damaged is told or made anew, and other keys make another one") {
  Config config = Libsvm(ModelKind::kLogistic, ManyRows(3000));
  config.model.inputs = 100'000;
  config.data.cache = DataCache::kFile;
  config.data.cache_dir = NewDirectory();
  const auto rows = EpochOf(config);
  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator(config.data.cache_dir)) {
    if (entry.path().extension() == ".rows") path = entry.path();
  }
  const std::string content = ReadBack(path);
  CounterRandom random(3);
  int told = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    std::string damaged = content;
    const uint64_t at = random.Below(2 * i, damaged.size());
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << random.Below(2 * i + 1, 8)));
    std::filesystem::remove(path);
    CHECK(std::rename(WritePlain("damaged", damaged).c_str(), path.c_str()) == 0);
    std::vector<std::string> read;
    const std::string error = UserErrorOf([&] { read = EpochOf(config); });
    if (error.empty()) {
      CHECK((read == rows));
    } else {
      ++told;
      CHECK(error.find("are damaged. Delete the file; it is made anew.") != std::string::npos);
    }
  }
  CHECK(told > 0);
  config.model.inputs = 200'000;
  EpochOf(config);
  config.data.index_base = 0;
  EpochOf(config);
  int caches = 0;
  for (const auto& entry : std::filesystem::directory_iterator(config.data.cache_dir)) {
    caches += entry.path().extension() == ".rows" ? 1 : 0;
  }
  CHECK(caches == 3);
}

TEST_CASE("sparse streams: rows that are left out are counted once, however often they are read") {
  Config config = Libsvm(ModelKind::kLogistic, ManyRows(1500) + "broken\nbroken\n" + ManyRows(1500, 1500));
  config.model.inputs = 100'000;
  config.train.epochs = 20;
  config.data.bad_rows = BadRows::kSkip;
  config.data.bad_rows_limit = 2;
  for (const DataCache cache : {DataCache::kMemory, DataCache::kNone, DataCache::kFile}) {
    config.data.cache = cache;
    config.data.cache_dir = NewDirectory();
    CHECK(LoadData(config).skipped.bad == 2);
    CHECK(EpochOf(config).size() == 20 * (3000 + 300));
  }
}

TEST_CASE("sparse streams: through a pipe rows come once, in windows, sparse or dense") {
  Config config = Libsvm(ModelKind::kLogistic, ManyRows(5000));
  config.model.inputs = 100'000;
  config.data.validation = 30;
  const auto memory = EpochOf(config);
  config.data.train.path = {"exec:cat " + config.data.train.path[0]};
  CHECK((EpochOf(config) == memory));  // into memory
  config.data.cache = DataCache::kNone;
  config.data.shuffle_rows = 1000;
  CHECK((EpochOf(config) == memory));
  config.data.shuffle = true;
  const auto shuffled = EpochOf(config);
  CHECK((shuffled != memory));
  CHECK((Sorted(shuffled) == Sorted(memory)));
  const LoadedData data = LoadData(config);
  Batch batch;
  REQUIRE(MakeSequentialSource(data.train, 0, 30, 30)->Next(&batch));
  CHECK(batch.sparse.offsets[30] > 30);
  config.model.table = TableKind::kNone;
  config.model.inputs = 70'000;
  const LoadedData dense = LoadData(config);
  const auto source = MakeBatchSource(config, dense.train, 0, 1);
  REQUIRE(source->Next(&batch));
  CHECK((batch.sparse.offsets == nullptr));
  REQUIRE(batch.inputs != nullptr);
  float last = 0;
  for (int64_t i = 60'000; i < 70'000; ++i) last += batch.inputs[i - 1];
  CHECK(last == 1);
}

TEST_CASE("sparse streams: a fault behind the first window of a pipe is told with its place") {
  Config config = Libsvm(ModelKind::kLogistic, ManyRows(5000) + "1 2:3:4\n");
  config.model.inputs = 100'000;
  config.data.train.path = {"exec:cat " + config.data.train.path[0]};
  config.data.cache = DataCache::kNone;
  config.data.shuffle_rows = 1000;
  CHECK(UserErrorOf([&] { EpochOf(config); }).find(":5001:5: the value of feature 2 = 3:4") !=
        std::string::npos);
}

}  // namespace
}  // namespace dtrain
