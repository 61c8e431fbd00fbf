#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "trainer/input/data_test_util.h"
#include "trainer/sets/load_data.h"
#include "trainer/sets/out_of_memory_test_util.h"
#include "trainer/survey/data_shape.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kImages = 300;

Config PackedConfig(const std::string& images) {
  Config config;
  config.model.kind = ModelKind::kSoftmax;
  config.model.inputs = 6;
  config.data.train.format = DataFormat::kIdx;
  std::vector<uint8_t> labels(kImages);
  for (size_t row = 0; row < labels.size(); ++row) labels[row] = static_cast<uint8_t>(row % 10);
  config.data.train.images = {images};
  config.data.train.labels = {WriteGzip("labels.gz", IdxLabelContent(labels))};
  config.data.cache = DataCache::kFile;
  config.data.cache_dir = CacheDirectory();
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

TEST_CASE("unpacked images: packed ones are mapped as their bytes, and unpacked once") {
  const std::string content = IdxImageContent(kImages, 2, 3);
  for (const bool gzip : {true, false}) {
    const Config config =
        PackedConfig(gzip ? WriteGzip("images.gz", content) : WriteZstd("images.zst", content));
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
  const Config config = PackedConfig(WritePlain("images", IdxImageContent(kImages, 2, 3)));
  CHECK(LoadData(config).train->bytes().rows == kImages);
  CHECK(Copies(config).empty());
}

TEST_CASE("unpacked images: the copy of a file that has changed, or one that is damaged, is made anew") {
  const Config config = PackedConfig(WriteGzip("images.gz", IdxImageContent(kImages, 2, 3)));
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
    const Config config = PackedConfig(WriteGzip("images.gz", each.content));
    const std::string error = UserErrorOf([&] { LoadData(config); });
    CAPTURE(error);
    CHECK(error.find("images.gz: ") != std::string::npos);
    CHECK(error.find(each.text) != std::string::npos);
    CHECK(Copies(config).empty());
  }
}

TEST_CASE("unpacked images: a directory under the name of the copy is named") {
  const Config config = PackedConfig(WriteGzip("images.gz", IdxImageContent(kImages, 2, 3)));
  LoadData(config);
  const std::string copy = Copies(config).at(0);
  fs::remove(copy);
  fs::create_directory(copy);
  CHECK(UserErrorOf([&] { LoadData(config); }) ==
        copy +
            ": is a directory, and the cache of data.train has this name. Remove it, or set another "
            "data.cache_dir.");
}

TEST_CASE("unpacked images: a directory that cannot be written is named, with the key") {
  Config config = PackedConfig(WriteGzip("images.gz", IdxImageContent(kImages, 2, 3)));
  config.data.cache_dir = WritePlain("no_directory", "") + "/cache";
  CHECK(UserErrorOf([&] { LoadData(config); }).find("data.cache_dir") != std::string::npos);
}

TEST_CASE("unpacked images: several tasks at once make one copy, and all have it") {
  const Config config = PackedConfig(WriteGzip("images.gz", IdxImageContent(kImages, 2, 3)));
  std::vector<std::thread> tasks;
  std::vector<int64_t> rows(4);
  for (int64_t& found : rows) tasks.emplace_back([&] { found = LoadData(config).train->bytes().rows; });
  for (std::thread& task : tasks) task.join();
  CHECK(std::all_of(rows.begin(), rows.end(), [](int64_t found) { return found == kImages; }));
  CHECK(Copies(config).size() == 1);
}

}  // namespace
}  // namespace dtrain
