#include "trainer/input/data_test_util.h"

#include <zlib.h>
#include <zstd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/check.h"
#include "base/error.h"
#include "trainer/config/config.h"

namespace dtrain {
namespace {

std::string BigEndian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

std::string PathOf(const std::string& name) {
  const char* const directory = std::getenv("TEST_TMPDIR");
  return std::string(directory != nullptr ? directory : "/tmp") + "/" + name;
}

}  // namespace

std::string IdxImageContent(uint32_t count, uint32_t rows, uint32_t cols) {
  std::string content = BigEndian(0x803) + BigEndian(count) + BigEndian(rows) + BigEndian(cols);
  for (uint32_t i = 0; i < count * rows * cols; ++i) content.push_back(static_cast<char>(i));
  return content;
}

std::string IdxLabelContent(const std::vector<uint8_t>& labels) {
  std::string content = BigEndian(0x801) + BigEndian(static_cast<uint32_t>(labels.size()));
  content.append(labels.begin(), labels.end());
  return content;
}

std::string WritePlain(const std::string& name, const std::string& content) {
  std::ofstream file(PathOf(name), std::ios::binary);
  file << content;
  file.close();
  DT_CHECK(file.good(), name);
  return PathOf(name);
}

std::string WriteGzip(const std::string& name, const std::string& content) {
  const gzFile file = gzopen(PathOf(name).c_str(), "wb");
  DT_CHECK(file != nullptr, name);
  const int wrote = gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  DT_CHECK(wrote == static_cast<int>(content.size()) && gzclose(file) == Z_OK, name);
  return PathOf(name);
}

std::string WriteZstd(const std::string& name, const std::string& content) {
  std::string frame(ZSTD_compressBound(content.size()), '\0');
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);  // as zstd(1) does
  const size_t size = ZSTD_compress2(context, frame.data(), frame.size(), content.data(), content.size());
  ZSTD_freeCCtx(context);
  DT_CHECK(ZSTD_isError(size) == 0, name);
  return WritePlain(name, frame.substr(0, size));
}

std::string ReadBack(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

DataSourceConfig CsvSource(const std::string& name, const std::string& content, const std::string& label) {
  DataSourceConfig source;
  source.format = DataFormat::kCsv;
  source.path = {WritePlain(name, content)};
  source.label = label;
  return source;
}

Config CsvConfig(ModelKind kind, const std::string& content, const std::string& label) {
  Config config;
  config.model.kind = kind;
  if (kind == ModelKind::kSoftmax) config.model.outputs = 3;
  config.data.train = CsvSource("train.csv", content, label);
  return config;
}

int64_t BytesRead() {
  std::ifstream io("/proc/self/io");
  std::string name;
  int64_t bytes = 0;
  io >> name >> bytes;  // the first line
  DT_CHECK(name == "rchar:", name);
  return bytes;
}

std::string UserErrorOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace dtrain
