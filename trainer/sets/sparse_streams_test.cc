// Sparse rows that do not stay in memory: from files in each epoch, from a cache, through a pipe.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.h"
#include "trainer/config/config.h"
#include "trainer/sets/sets_test_util.h"

namespace dtrain {
namespace {

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

Config WideConfig(const std::string& content) {
  Config config = LibsvmConfig(ModelKind::kLogistic, content);
  config.model.inputs = 100'000;
  return config;
}

TEST_CASE("sparse streams: memory, none and file give every row, none and file in the same order") {
  for (const bool ones : {false, true}) {
    Config config = WideConfig(ManyRows(7000, 0, ones));
    config.data.shuffle_rows = 2000;
    config.data.cache_dir = NewCacheDirectory();
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
      CHECK((SortedRows(memory) == SortedRows(none)));
      CHECK(SortedRows(memory).size() == 7000);
      CHECK((shuffle || memory == none));
      CHECK((!shuffle || memory != none));
    }
  }
}

TEST_CASE("sparse streams: the workers' shares are all rows, each once, of several files and packed ones") {
  Config config = LibsvmConfig(ModelKind::kLogistic, ManyRows(3000));
  config.data.train.path.push_back(WriteGzip("b.gz", ManyRows(2000, 3000)));
  config.data.train.path.push_back(WritePlain("c.txt", "# nothing\n\n" + ManyRows(500, 5000)));
  config.model.inputs = 100'000;
  config.data.shuffle = true;
  config.data.shuffle_rows = 700;
  const auto all = SortedRows(EpochOf(config));
  CHECK(all.size() == 5500);
  for (const DataCache cache : {DataCache::kNone, DataCache::kFile}) {
    SetCache(cache, &config);
    for (const int workers : {1, 2, 3}) {
      CAPTURE(workers);
      std::vector<std::string> together;
      for (int worker = 0; worker < workers; ++worker) {
        const auto share = EpochOf(config, worker, workers);
        together.insert(together.end(), share.begin(), share.end());
      }
      CHECK((SortedRows(together) == all));
    }
  }
}

TEST_CASE("sparse streams: labels, fingerprints and counts of classes are those of rows in memory") {
  Config config = WideConfig(ManyRows(3000));
  const LoadedData memory = LoadAsRun(config);
  for (const DataCache cache : {DataCache::kNone, DataCache::kFile}) {
    SetCache(cache, &config);
    const LoadedData data = LoadAsRun(config);
    CHECK(FingerprintOf(*data.train) == FingerprintOf(*memory.train));
    // Lines that are read again were counted and not parsed.
    REQUIRE((data.train->class_rows() != nullptr) == (cache == DataCache::kFile));
    if (cache == DataCache::kFile) CHECK(*data.train->class_rows() == std::vector<int64_t>{1000, 2000});
    std::vector<int64_t> rows(3000);
    std::iota(rows.rbegin(), rows.rend(), 0);
    SparseBuffer here, there;
    data.train->Read(rows, {nullptr, &here});
    memory.train->Read(rows, {nullptr, &there});
    CHECK((here.ids == there.ids));
    CHECK((here.values == there.values));
    CHECK((here.offsets == there.offsets));
  }
}

TEST_CASE("sparse streams: without a table rows from files and caches are dense") {
  Config config = LibsvmConfig(ModelKind::kLogistic, "1 1:2 4:1\n0 2:3\n1\n");
  config.model.table = TableKind::kNone;
  config.model.inputs = 4;
  for (const DataCache cache : {DataCache::kMemory, DataCache::kNone, DataCache::kFile}) {
    SetCache(cache, &config);
    Batch batch;
    const LoadedData data = LoadAsRun(config);
    const auto source = MakeBatchSource(config, data.train, 0, 1);
    REQUIRE(source->Next(&batch));
    CHECK((batch.sparse.offsets == nullptr));
    REQUIRE(batch.inputs != nullptr);
    CHECK(std::vector<float>(batch.inputs, batch.inputs + 12) ==
          std::vector<float>{2, 0, 0, 1, 0, 3, 0, 0, 0, 0, 0, 0});
  }
}

TEST_CASE("sparse streams: a cache of several MiB is the rows of its files, and of one row that row") {
  Config config = LibsvmConfig(ModelKind::kLogistic, ManyRows(60'001));
  config.model.inputs = 200'000;
  const auto memory = EpochOf(config);
  SetCache(DataCache::kFile, &config);
  CHECK((EpochOf(config) == memory));
  config = LibsvmConfig(ModelKind::kLogistic, "1 3:0.5\n");
  SetCache(DataCache::kFile, &config);
  CHECK(EpochOf(config) == std::vector<std::string>{"1: 2=0.5", ""});
}

TEST_CASE("sparse streams: a cache keeps ids of 8 bytes where the width needs them") {
  Config config = LibsvmConfig(ModelKind::kLogistic, "1 5000000000:2 4:1\n0 2:1\n1 7:1 8:1 9:3\n");
  config.model.inputs = 6'000'000'000;
  const auto memory = EpochOf(config);
  SetCache(DataCache::kFile, &config);
  CHECK(EpochOf(config) == memory);
  CHECK(EpochOf(config) == memory);
}

TEST_CASE("sparse streams: a cache that is damaged is told or made anew, and other keys make another one") {
  Config config = WideConfig(ManyRows(3000));
  SetCache(DataCache::kFile, &config);
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
      CHECK(Has(error, "are damaged. Delete the file; it is made anew."));
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
  Config config = WideConfig(ManyRows(1500) + "broken\nbroken\n" + ManyRows(1500, 1500));
  config.train.epochs = 20;
  config.data.bad_rows = BadRows::kSkip;
  config.data.bad_rows_limit = 2;
  for (const DataCache cache : {DataCache::kMemory, DataCache::kNone, DataCache::kFile}) {
    SetCache(cache, &config);
    CHECK(LoadAsRun(config).skipped.bad == 2);
    CHECK(EpochOf(config).size() == 20 * (3000 + 300));
  }
}

TEST_CASE("sparse streams: through a pipe rows come once, in windows, sparse or dense") {
  Config config = WideConfig(ManyRows(5000));
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
  CHECK((SortedRows(shuffled) == SortedRows(memory)));
  const LoadedData data = LoadAsRun(config);
  Batch batch;
  const auto held_out = MakeSequentialSource(data.train, 0, 30, 30);
  REQUIRE(held_out->Next(&batch));
  CHECK(batch.sparse.offsets[30] > 30);
  config.model.table = TableKind::kNone;
  config.model.inputs = 70'000;
  const LoadedData dense = LoadAsRun(config);
  const auto source = MakeBatchSource(config, dense.train, 0, 1);
  REQUIRE(source->Next(&batch));
  CHECK((batch.sparse.offsets == nullptr));
  REQUIRE(batch.inputs != nullptr);
  float last = 0;
  for (int64_t i = 60'000; i < 70'000; ++i) last += batch.inputs[i - 1];
  CHECK(last == 1);
}

TEST_CASE("sparse streams: a fault behind the first window of a pipe is told with its place") {
  Config config = WideConfig(ManyRows(5000) + "1 2:3x\n");
  config.data.train.path = {"exec:cat " + config.data.train.path[0]};
  config.data.cache = DataCache::kNone;
  config.data.shuffle_rows = 1000;
  CHECK(Has(UserErrorOf([&] { EpochOf(config); }), ":5001:5: the value of feature 2 = 3x"));
}

}  // namespace
}  // namespace dtrain
