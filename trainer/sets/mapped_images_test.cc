// Images that are mapped, in their files or in copies of packed ones.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "trainer/config/config.h"
#include "trainer/sets/sets_test_util.h"
#include "trainer/survey/data_shape.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kImages = 3000;

std::vector<uint8_t> Labels() {
  std::vector<uint8_t> labels(kImages);
  for (size_t row = 0; row < labels.size(); ++row) labels[row] = static_cast<uint8_t>(row % 10);
  return labels;
}

Config ImagesConfig(const std::string& images, DataCache cache = DataCache::kFile) {
  Config config = IdxConfig(images, WriteGzip("labels.gz", IdxLabelContent(Labels())));
  config.model.inputs = 6;
  config.data.cache = cache;
  config.data.cache_dir = NewCacheDirectory();
  return config;
}

std::vector<std::string> Copies(const Config& config) {
  std::vector<std::string> copies;
  if (!fs::exists(config.data.cache_dir)) return copies;
  for (const auto& entry : fs::directory_iterator(config.data.cache_dir)) {
    const std::string ending = entry.path().extension();
    if (ending != ".lock" && ending != ".crc") copies.push_back(entry.path().string());
  }
  return copies;
}

ino_t Identity(const std::string& path) {
  struct stat about {};
  REQUIRE(stat(path.c_str(), &about) == 0);
  return about.st_ino;
}

TEST_CASE("mapped images: the rows are those of images that are read; packed and cut files are refused") {
  const std::string images = IdxImageContent(kImages, 2, 3);
  Config config = ImagesConfig(WritePlain("images", images), DataCache::kMemory);
  const std::shared_ptr<const DataSet> memory = LoadData(config).train;
  config.data.cache = DataCache::kNone;
  const std::shared_ptr<const DataSet> mapped = LoadData(config).train;
  CHECK(RowsOf(*mapped).features == RowsOf(*memory).features);
  CHECK(RowsOf(*mapped).labels == RowsOf(*memory).labels);
  CHECK(std::equal(images.begin() + 16, images.end(), mapped->bytes().data,
                   [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; }));
  config.data.train.images = {WriteGzip("images.gz", images)};
  CHECK(Has(LoadError(config), "is packed"));
  config.data.train.images = {WritePlain("images", images.substr(0, images.size() - 1))};
  CHECK(!LoadError(config).empty());
}

TEST_CASE("mapped images: the rows of several files are those of one file, as floats") {
  const std::string images = IdxImageContent(kImages, 2, 3);
  Config config = ImagesConfig(WritePlain("whole", images), DataCache::kMemory);
  config.train.batch_size = 7;
  config.train.epochs = 1;
  DataSourceConfig& train = config.data.train;
  const std::vector<uint8_t> labels = Labels();
  const std::shared_ptr<const DataSet> whole = LoadData(config).train;
  config.data.cache = DataCache::kNone;
  const std::shared_ptr<const DataSet> mapped = LoadData(config).train;
  const DataSize size_of_one = EstimateDataSize(config);
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
  CHECK(!EstimateDataSize(config).as_bytes);
  CHECK(FingerprintOf(*parts) == FingerprintOf(*whole));
  CHECK(RowsOf(*parts).features == RowsOf(*whole).features);
  CHECK(RowsOf(*parts).labels == RowsOf(*whole).labels);
  const auto source = MakeBatchSource(config, parts, 0, 1), same = MakeBatchSource(config, mapped, 0, 1);
  Batch batch, expected;
  while (source->Next(&batch)) {
    REQUIRE(same->Next(&expected));
    REQUIRE((batch.bytes.table.data == nullptr && batch.inputs != nullptr));
    const gpu::Span<const int64_t>& rows = expected.bytes.rows;
    const Rows wanted = RowsOf(*mapped, {rows.data, rows.data + rows.size});
    REQUIRE(std::vector<float>(batch.inputs, batch.inputs + batch.rows * 6) == wanted.features);
    REQUIRE(std::vector<int32_t>(batch.labels, batch.labels + batch.rows) == wanted.labels);
  }
  CHECK(!same->Next(&expected));
  train.images[2] = WriteGzip("images.gz", IdxImageContent(1899, 2, 3));
  CHECK(Has(LoadError(config), "images.gz: is packed"));
  train.images[2] = WritePlain("other", IdxImageContent(1898, 2, 3));
  CHECK(Has(LoadError(config), "other has 1898 images, and each needs one label"));
}

TEST_CASE("unpacked images: packed ones are mapped as their bytes, and unpacked once") {
  const std::string content = IdxImageContent(kImages, 2, 3);
  for (const bool gzip : {true, false}) {
    const Config config =
        ImagesConfig(gzip ? WriteGzip("images.gz", content) : WriteZstd("images.zst", content));
    const std::shared_ptr<const DataSet> mapped = LoadData(config).train;
    REQUIRE(mapped->bytes().rows == kImages);
    CHECK(std::equal(content.begin() + 16, content.end(), mapped->bytes().data,
                     [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; }));
    CHECK(EstimateDataSize(config).as_bytes);
    const std::vector<std::string> copies = Copies(config);
    REQUIRE(copies.size() == 1);
    CHECK(ReadBack(copies[0]) == content);
    const ino_t made = Identity(copies[0]);
    LoadData(config);
    CHECK(Identity(copies[0]) == made);
  }
}

TEST_CASE("unpacked images: plain files are mapped where they are") {
  const Config config = ImagesConfig(WritePlain("images", IdxImageContent(kImages, 2, 3)));
  CHECK(LoadData(config).train->bytes().rows == kImages);
  CHECK(Copies(config).empty());
}

TEST_CASE("unpacked images: the copy of a file that has changed, or one that is damaged, is made anew") {
  const Config config = ImagesConfig(WriteGzip("images.gz", IdxImageContent(kImages, 2, 3)));
  LoadData(config);
  const std::string first = Copies(config).at(0);
  fs::resize_file(first, 100);
  CHECK(LoadData(config).train->bytes().rows == kImages);
  CHECK(fs::file_size(first) == 16 + kImages * 6);
  // The header of a copy, a pixel of it, and what a task has left that was killed.
  for (const size_t byte : {size_t{7}, size_t{16 + 100 * 6}}) {
    std::string damaged = ReadBack(first);
    ++damaged[byte];
    std::ofstream(first, std::ios::binary) << damaged;
    std::ofstream(first + ".12345.tmp") << "a part";
    CHECK(LoadData(config).train->bytes().rows == kImages);
    CHECK(ReadBack(first) == IdxImageContent(kImages, 2, 3));
  }
  CHECK(Copies(config).size() == 1);
  const std::string other = IdxImageContent(kImages, 3, 2);
  WriteGzip("images.gz", other);
  LoadData(config);
  const std::vector<std::string> copies = Copies(config);
  REQUIRE(copies.size() == 1);
  CHECK(copies[0] != first);
  CHECK(ReadBack(copies[0]) == other);
}

TEST_CASE("unpacked images: a file that is damaged is named, and leaves no copy") {
  const std::string content = IdxImageContent(kImages, 2, 3);
  const struct {
    std::string content, text;
  } cases[] = {{content.substr(0, content.size() - 1), "ends at byte"}, {content + "x", "more bytes follow"}};
  for (const auto& each : cases) {
    const Config config = ImagesConfig(WriteGzip("images.gz", each.content));
    const std::string error = LoadError(config);
    CAPTURE(error);
    CHECK(Has(error, "images.gz: "));
    CHECK(Has(error, each.text));
    CHECK(Copies(config).empty());
  }
}

TEST_CASE("unpacked images: a directory under the name of the copy is named") {
  const Config config = ImagesConfig(WriteGzip("images.gz", IdxImageContent(kImages, 2, 3)));
  LoadData(config);
  const std::string copy = Copies(config).at(0);
  fs::remove(copy);
  fs::create_directory(copy);
  CHECK(LoadError(config) ==
        copy +
            ": is a directory, and the cache of data.train has this name. Remove it, or set another "
            "data.cache_dir.");
}

TEST_CASE("unpacked images: a directory that cannot be written is named, with the key") {
  Config config = ImagesConfig(WriteGzip("images.gz", IdxImageContent(kImages, 2, 3)));
  config.data.cache_dir = WritePlain("no_directory", "") + "/cache";
  CHECK(Has(LoadError(config), "data.cache_dir"));
}

TEST_CASE(
    "unpacked images: a task waits for one that makes the copy as long as the config says, not longer") {
  Config config = ImagesConfig(WriteGzip("images.gz", IdxImageContent(kImages, 2, 3)));
  LoadData(config);
  const std::string copy = Copies(config).at(0);
  fs::remove(copy);
  config.data.cache_wait_s = 0.05;
  {
    const FileDescriptor other(open((copy + ".lock").c_str(), O_RDWR | O_CLOEXEC));
    REQUIRE(flock(other.get(), LOCK_EX | LOCK_NB) == 0);
    CHECK(
        LoadError(config) ==
        copy +
            ": another task makes this cache and is not done after 0.05 s (data.cache_wait_s). Wait for it, "
            "or end it, or set another data.cache_dir.");
  }
  CHECK(LoadError(config).empty());  // the other one has died
  CHECK(Copies(config).size() == 1);
}

TEST_CASE("unpacked images: several tasks at once make one copy, and all have it") {
  const Config config = ImagesConfig(WriteGzip("images.gz", IdxImageContent(kImages, 2, 3)));
  std::vector<std::thread> tasks;
  std::vector<int64_t> rows(4);
  for (int64_t& found : rows) tasks.emplace_back([&] { found = LoadData(config).train->bytes().rows; });
  for (std::thread& task : tasks) task.join();
  CHECK(std::all_of(rows.begin(), rows.end(), [](int64_t found) { return found == kImages; }));
  CHECK(Copies(config).size() == 1);
}

}  // namespace
}  // namespace dtrain
