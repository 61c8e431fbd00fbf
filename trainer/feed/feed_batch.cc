#include "trainer/feed/feed_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "trainer/order/order.h"

namespace dtrain {
namespace {

constexpr int64_t kBytesAhead = 4 << 20;
constexpr int64_t kLabelBytes = 4;
static_assert(sizeof(int32_t) == kLabelBytes && sizeof(float) == kLabelBytes);

int32_t LabelAt(net::TensorView values, int64_t row) {
  int32_t label;
  std::memcpy(&label, values.data + row * kLabelBytes, sizeof label);
  return label;
}

}  // namespace

int64_t BatchesAhead(int64_t bytes) {
  return std::clamp<int64_t>(kBytesAhead / std::max<int64_t>(bytes, 1), 2, kMaxBatchesAhead);
}

int64_t RowsPerStep(const Config& config) { return config.train.batch_size * config.device.towers(); }

int64_t MaxFedRows(const Config& config, std::optional<int64_t> train_rows) {
  return MaxBatchRows(config, train_rows, 0) * config.device.towers();
}

int64_t FedBatchBytes(int64_t rows, int64_t inputs, bool as_bytes) {
  return rows * (kLabelBytes + inputs * (as_bytes ? 1 : static_cast<int64_t>(sizeof(float))));
}

void CheckFedBatch(const Config& config, int64_t rows, int64_t inputs, bool as_bytes) {
  const int64_t bytes = FedBatchBytes(rows, inputs, as_bytes);
  if (bytes <= config.net.max_message_mb << 20) return;
  throw UserError(
      "train.batch_size = {}; with data.split = feed the batches of a step (one for each of device.ids) are "
      "one message, of {} bytes here, and net.max_message_mb = {}. Use a smaller batch, or raise "
      "net.max_message_mb for all workers.",
      config.train.batch_size, bytes, config.net.max_message_mb);
}

void WriteFedBatch(const DataSet& set, gpu::Span<const int64_t> rows, std::byte* values) {
  auto* const labels = reinterpret_cast<int32_t*>(values);
  auto* const targets = reinterpret_cast<float*>(values);
  std::byte* const features = values + rows.size * kLabelBytes;
  const gpu::MatrixView<const uint8_t> table = set.bytes();
  auto* const floats = table.data == nullptr ? reinterpret_cast<float*>(features) : nullptr;
  std::vector<int64_t> memory;
  rows = set.FileRows(rows, &memory);
  set.Read(rows, {floats, nullptr, labels, targets, nullptr});
  if (table.data == nullptr) return;
  const auto row_bytes = static_cast<size_t>(table.cols);
  for (int64_t i = 0; i < rows.size; ++i) {
    std::memcpy(features + i * table.cols, table.row(rows[i]), row_bytes);
  }
}

std::string WhyNotFedBatch(const Config& config, const wire::DataBatch& batch, net::TensorView values) {
  const int64_t rows = batch.rows();
  const int64_t most = batch.max_rows();
  if (most < 1 || most > RowsPerStep(config)) {
    return fmt::format("it names {} rows, and a step here has {} (train.batch_size, device.ids)", most,
                       RowsPerStep(config));
  }
  if (batch.end()) return "";
  const int64_t fewest = EndsInStep(config) ? 0 : 1;
  if (rows < fewest || rows > most) return fmt::format("it has {} rows of at most {}", rows, most);
  const int64_t bytes = FedBatchBytes(rows, *config.model.inputs, batch.as_bytes());
  if (values.size != static_cast<size_t>(bytes)) {
    return fmt::format("it has {} bytes, and {} rows of {} inputs have {}", values.size, rows,
                       *config.model.inputs, bytes);
  }
  if (batch.checksum() != 0 && batch.checksum() != net::PayloadChecksum(values.data, values.size)) {
    return "its bytes do not have the checksum that it names (net.checksum)";
  }
  for (int64_t i = 0; HasClasses(config.model) && i < rows; ++i) {
    const int32_t label = LabelAt(values, i);
    const int64_t classes = HeadOf(config.model) == ModelHead::kLogistic ? 2 : *config.model.outputs;
    if (label < 0 || label >= classes) return fmt::format("row {} has label {} of {}", i, label, classes);
  }
  return std::string();
}

Batch ReadFedBatch(const Config& config, const wire::DataBatch& batch, net::TensorView values,
                   const std::vector<int64_t>& numbers) {
  const int64_t rows = batch.rows();
  const std::byte* const features = values.data + rows * kLabelBytes;
  Batch read;
  read.rows = rows;
  read.columns = *config.model.inputs;
  if (batch.as_bytes()) {
    read.bytes.table = {reinterpret_cast<const uint8_t*>(features), rows, read.columns};
    read.bytes.rows = {numbers.data(), rows};
  } else {
    read.inputs = reinterpret_cast<const float*>(features);
  }
  if (HasClasses(config.model)) {
    read.labels = reinterpret_cast<const int32_t*>(values.data);
  } else {
    read.targets = reinterpret_cast<const float*>(values.data);
  }
  return read;
}

}  // namespace dtrain
