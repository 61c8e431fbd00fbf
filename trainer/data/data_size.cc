#include "trainer/data/data_size.h"

#include <sys/stat.h>

#include <string>

#include "trainer/data/data_defaults.h"
#include "trainer/data/idx.h"

namespace dtrain {
namespace {

struct SetSize {
  std::optional<int64_t> rows = 0;
  double bytes = 0;
};

// 0 where there is none.
int64_t FileBytes(const std::string& path) {
  struct stat about {};
  return stat(path.c_str(), &about) == 0 ? about.st_size : 0;
}

// A file of the test set is taken for a plain one: what is wrong with its header is said when it is read.
SetSize IdxSize(const DataSourceConfig& source, const std::string& section, int64_t inputs) {
  const int64_t bytes = FileBytes(source.images);
  if (bytes == 0) return {};
  const int64_t rows =
      section == "data.train" ? PeekIdxImages(source.images, section + ".images").count : bytes / inputs;
  return {rows, static_cast<double>(rows) * static_cast<double>(inputs + 1)};
}

// A number and its comma take four bytes or more in nearly all files, and four in memory.
SetSize CsvSize(const DataSourceConfig& source, int64_t inputs) {
  const int64_t bytes = FileBytes(source.path);
  return {bytes / (4 * (inputs + 1)) + 1, static_cast<double>(bytes)};
}

SetSize SyntheticSize(const DataSourceConfig& source, int64_t digit_rows) {
  if (source.name == SyntheticName::kLinear) return {source.rows, 0};
  const int64_t rows = source.rows.value_or(digit_rows);
  return {rows, static_cast<double>(rows) * static_cast<double>(kDigitInputs + 1)};
}

SetSize SizeOf(const DataSourceConfig& source, const std::string& section, int64_t inputs,
               int64_t digit_rows) {
  switch (source.format) {
    case DataFormat::kIdx:
      return IdxSize(source, section, inputs);
    case DataFormat::kCsv:
      return CsvSize(source, inputs);
    case DataFormat::kSynthetic:
      return SyntheticSize(source, digit_rows);
    default:
      return {};
  }
}

}  // namespace

DataSize EstimateDataSize(const Config& config) {
  const DataSourceConfig& source = config.data.train;
  const SetSize train = SizeOf(source, "data.train", *config.model.inputs, kDigitTrainRows);
  const SetSize test = SizeOf(config.data.test, "data.test", *config.model.inputs, kDigitTestRows);
  DataSize size;
  size.bytes = train.bytes + test.bytes;
  size.train_rows = train.rows;
  size.test_rows = test.rows.value_or(0);
  size.as_bytes = source.format == DataFormat::kIdx ||
                  (source.format == DataFormat::kSynthetic && source.name == SyntheticName::kDigits);
  return size;
}

}  // namespace dtrain
