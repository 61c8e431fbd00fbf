#include "trainer/data/data_size.h"

#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <vector>

#include "trainer/data/data_defaults.h"
#include "trainer/data/idx.h"
#include "trainer/data/input_bytes.h"

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

// As many rows as the lines of the first MiB tell: numbers take from two bytes to more than twenty as text.
SetSize CsvSize(const DataSourceConfig& source, const std::string& section, int64_t inputs) {
  if (FileBytes(source.path) == 0) return {};
  InputBytes file(source.path, section + ".path");
  std::vector<char> sample(1 << 20);
  sample.resize(static_cast<size_t>(file.Read(sample.data(), static_cast<int64_t>(sample.size()))));
  const auto lines = std::max<int64_t>(1, std::count(sample.begin(), sample.end(), '\n'));
  const double line_bytes = static_cast<double>(sample.size()) / static_cast<double>(lines);
  const auto rows = static_cast<int64_t>(static_cast<double>(file.ExpectedContent()) / line_bytes);
  return {rows, 4 * static_cast<double>(rows) * static_cast<double>(inputs + 1)};
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
      return CsvSize(source, section, inputs);
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
