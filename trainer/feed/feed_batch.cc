#include "trainer/feed/feed_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "trainer/config/config.h"
#include "trainer/order/order.h"
#include "trainer/sets/class_weights.h"

namespace dtrain {
namespace {

constexpr int64_t kBytesAhead = 4 << 20;
// What a row has of each list beside its features: its label or target, its weight, its offset, the end of
// its features.
constexpr int64_t kItem = 4;
static_assert(sizeof(int32_t) == kItem && sizeof(uint32_t) == kItem && sizeof(float) == kItem);

template <typename Item>
Item ItemAt(const std::byte* list, int64_t index) {
  Item item;
  std::memcpy(&item, list + index * kItem, sizeof item);
  return item;
}

// FedParts: where the parts of a batch begin, in bytes from the begin of its values.
struct FedParts {
  explicit FedParts(const net::BatchHead& form)
      : weights(form.rows * kItem),
        row_offsets(weights + (form.weighted ? form.rows * kItem : 0)),
        features(row_offsets + (form.has_offsets ? form.rows * kItem : 0)),
        values(features + form.rows * kItem),
        ids(values + (form.has_values ? static_cast<int64_t>(form.features) * kItem : 0)) {}
  int64_t weights, row_offsets;
  int64_t features;     // of sparse rows `features` are the ends of rows
  int64_t values, ids;  // of sparse rows
};

net::BatchHead FormOf(const wire::DataBatch& batch) {
  net::BatchHead form;
  form.rows = batch.rows();
  form.as_bytes = batch.as_bytes();
  form.weighted = batch.weighted();
  form.weight = batch.weight();
  form.id_bytes = batch.id_bytes();
  form.features = batch.features();
  form.has_values = batch.has_values();
  form.has_offsets = batch.has_offsets();
  return form;
}

uint8_t IdBytes(uint64_t largest) {
  uint8_t bytes = 1;
  while (bytes < 8 && largest >> (8 * bytes) != 0) ++bytes;
  return bytes;
}

uint64_t IdAt(const std::byte* ids, int id_bytes, int64_t index) {
  uint64_t id = 0;
  for (int byte = 0; byte < id_bytes; ++byte) {
    id |= std::to_integer<uint64_t>(ids[index * id_bytes + byte]) << (8 * byte);
  }
  return id;
}

// The end of a row is a number of 32 bits, and each feature has a byte at least.
int64_t MaxBytes(const Config& config) {
  const int64_t max = config.net.max_message_mb << 20;
  return HasSparseRows(config.data) ? std::min<int64_t>(max, UINT32_MAX) : max;
}

void CheckBytes(const Config& config, int64_t bytes) {
  if (bytes <= MaxBytes(config)) return;
  throw UserError(
      "train.batch_size = {}; with data.split = feed the batches of a step (one for each of device.ids) are "
      "one message, of {} bytes here, and net.max_message_mb = {}. Use a smaller batch, or raise "
      "net.max_message_mb for all workers.",
      config.train.batch_size, bytes, config.net.max_message_mb);
}

bool IsWeighted(const DataConfig& data) { return HasRowWeights(data) || !data.class_weights.empty(); }

}  // namespace

int64_t BatchesAhead(int64_t bytes) {
  return std::clamp<int64_t>(kBytesAhead / std::max<int64_t>(bytes, 1), 2, kMaxBatchesAhead);
}

int64_t RowsPerStep(const Config& config) { return config.train.batch_size * config.device.towers(); }

int64_t MaxFedRows(const Config& config, std::optional<int64_t> train_rows) {
  return MaxBatchRows(config, train_rows, 0) * config.device.towers();
}

net::BatchHead FedForm(const Config& config, int64_t rows, bool as_bytes, double features) {
  net::BatchHead form;
  form.rows = static_cast<uint32_t>(rows);
  form.weighted = IsWeighted(config.data);
  form.has_offsets = !config.data.offset.empty();
  form.as_bytes = as_bytes;
  if (!HasSparseRows(config.data)) return form;
  form.as_bytes = false;
  form.id_bytes = IdBytes(static_cast<uint64_t>(*config.model.inputs) - 1);
  form.features = static_cast<uint64_t>(features * static_cast<double>(rows));
  form.has_values = config.data.train.format != DataFormat::kCriteo;
  return form;
}

int64_t FedBatchBytes(const net::BatchHead& form, int64_t inputs) {
  const FedParts parts(form);
  if (form.id_bytes > 0) return parts.ids + static_cast<int64_t>(form.features) * form.id_bytes;
  return parts.features + form.rows * inputs * (form.as_bytes ? 1 : static_cast<int64_t>(sizeof(float)));
}

void CheckFedBatch(const Config& config, int64_t rows, int64_t inputs, bool as_bytes) {
  CheckBytes(config, FedBatchBytes(FedForm(config, rows, as_bytes), inputs));
}

FedRows::FedRows(const Config& config, std::shared_ptr<const DataSet> set)
    : config_(config), set_(std::move(set)), max_rows_(MaxFedRows(config, set_->rows())) {
  const bool as_bytes = set_->bytes().data != nullptr;
  CheckFedBatch(config, max_rows_, set_->inputs(), as_bytes);
  if (HasSparseRows(config.data)) return;
  max_bytes_ = FedBatchBytes(FedForm(config, max_rows_, as_bytes), set_->inputs());
}

int64_t FedRows::Write(gpu::Span<const int64_t> rows, net::BatchHead* head, net::LentBuffer* memory) {
  rows = set_->FileRows(rows, &file_rows_);
  Describe(rows, head);
  const int64_t bytes = FedBatchBytes(*head, set_->inputs());
  CheckBytes(config_, bytes);
  max_bytes_ = std::max(max_bytes_, bytes);
  if (memory->bytes() < static_cast<size_t>(bytes)) {
    *memory = net::LentBuffer(static_cast<size_t>(max_bytes_));
  }
  auto* const values = reinterpret_cast<std::byte*>(memory->floats());
  const FedParts parts(*head);
  const auto floats_at = [&](int64_t at) { return reinterpret_cast<float*>(values + at); };
  RowsOut out;
  out.labels = reinterpret_cast<int32_t*>(values);
  out.targets = floats_at(0);
  if (head->weighted) out.weights = floats_at(parts.weights);
  if (head->has_offsets) out.row_offsets = floats_at(parts.row_offsets);
  if (head->id_bytes == 0 && !head->as_bytes) out.inputs = floats_at(parts.features);
  set_->Read(rows, out);
  if (head->weighted) head->weight = WeighRows(*set_, set_->class_weights(), rows.size, out);
  if (head->as_bytes) WriteBytes(rows, values + parts.features);
  if (head->id_bytes > 0) WriteSparse(*head, values);
  return bytes;
}

// How many features sparse rows have is known when they are read.
void FedRows::Describe(gpu::Span<const int64_t> file_rows, net::BatchHead* head) {
  head->rows = static_cast<uint32_t>(file_rows.size);
  head->weighted = set_->weighted() || set_->class_weights().size > 0;
  head->has_offsets = set_->has_offsets();
  head->as_bytes = set_->bytes().data != nullptr;
  if (!HasSparseRows(config_.data)) return;
  RowsOut out;
  out.sparse = &sparse_;
  set_->Read(file_rows, out);
  const auto largest = std::max_element(sparse_.ids.begin(), sparse_.ids.end());
  head->id_bytes = IdBytes(largest == sparse_.ids.end() ? 0 : *largest);
  head->features = sparse_.ids.size();
  head->has_values = !sparse_.values.empty();
}

void FedRows::WriteBytes(gpu::Span<const int64_t> file_rows, std::byte* features) const {
  const gpu::MatrixView<const uint8_t> table = set_->bytes();
  const auto row_bytes = static_cast<size_t>(table.cols);
  for (int64_t i = 0; i < file_rows.size; ++i) {
    std::memcpy(features + i * table.cols, table.row(file_rows[i]), row_bytes);
  }
}

void FedRows::WriteSparse(const net::BatchHead& head, std::byte* values) const {
  const FedParts parts(head);
  auto* const ends = reinterpret_cast<uint32_t*>(values + parts.features);
  for (int64_t row = 0; row < head.rows; ++row) {
    ends[row] = static_cast<uint32_t>(sparse_.offsets[static_cast<size_t>(row) + 1]);
  }
  if (head.has_values) {
    std::memcpy(values + parts.values, sparse_.values.data(), sparse_.values.size() * sizeof(float));
  }
  std::byte* to = values + parts.ids;
  for (const uint64_t id : sparse_.ids) {
    for (int byte = 0; byte < head.id_bytes; ++byte) *to++ = static_cast<std::byte>(id >> (8 * byte));
  }
}

namespace {

// What is wrong with the form of a batch; empty: its values have the right length.
std::string WhyNotForm(const Config& config, const net::BatchHead& form, size_t bytes) {
  const bool sparse = HasSparseRows(config.data);
  if (sparse != (form.id_bytes > 0) || form.id_bytes > 8 || (sparse && form.as_bytes)) {
    return fmt::format("its features have {} bytes of number, and rows are {}sparse here", form.id_bytes,
                       sparse ? "" : "not ");
  }
  if (!sparse && (form.features > 0 || form.has_values)) return "its rows are not sparse, and have features";
  if (form.weighted && !IsWeighted(config.data)) return "its rows have weights, and none are configured here";
  if (form.has_offsets == config.data.offset.empty())
    return "its rows have offsets, or have none, other than configured here (data.offset)";
  if (form.features > bytes) return fmt::format("it has {} features in {} bytes", form.features, bytes);
  const int64_t expected = FedBatchBytes(form, *config.model.inputs);
  if (bytes == static_cast<size_t>(expected)) return "";
  return sparse ? fmt::format("it has {} bytes, and {} rows of {} features in all have {}", bytes, form.rows,
                              form.features, expected)
                : fmt::format("it has {} bytes, and {} rows of {} inputs have {}", bytes, form.rows,
                              *config.model.inputs, expected);
}

std::string WhyNotSparse(const Config& config, const net::BatchHead& form, const std::byte* values) {
  const FedParts parts(form);
  uint32_t end = 0;
  for (int64_t row = 0; row < form.rows; ++row) {
    const auto next = ItemAt<uint32_t>(values + parts.features, row);
    if (next < end || next > form.features) {
      return fmt::format("row {} ends at feature {}, between {} and {}", row, next, end, form.features);
    }
    end = next;
  }
  if (end != form.features) return fmt::format("its rows have {} features of {}", end, form.features);
  const auto inputs = static_cast<uint64_t>(*config.model.inputs);
  for (int64_t i = 0; i < static_cast<int64_t>(form.features); ++i) {
    const uint64_t id = IdAt(values + parts.ids, form.id_bytes, i);
    if (id >= inputs) return fmt::format("feature {} has number {} of {}", i, id, inputs);
  }
  return "";
}

}  // namespace

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
  const net::BatchHead form = FormOf(batch);
  if (std::string why = WhyNotForm(config, form, values.size); !why.empty()) return why;
  if (batch.checksum() != 0 && batch.checksum() != net::PayloadChecksum(values.data, values.size)) {
    return "its bytes do not have the checksum that it names (net.checksum)";
  }
  for (int64_t i = 0; HasClasses(config.model) && i < rows; ++i) {
    const auto label = ItemAt<int32_t>(values.data, i);
    const int64_t classes = HeadOf(config.model) == ModelHead::kLogistic ? 2 : *config.model.outputs;
    if (label < 0 || label >= classes) return fmt::format("row {} has label {} of {}", i, label, classes);
  }
  if (!std::isfinite(form.weight) || form.weight < 0) return fmt::format("its rows weigh {}", form.weight);
  for (int64_t i = 0; form.weighted && i < rows; ++i) {
    const auto weight = ItemAt<float>(values.data + FedParts(form).weights, i);
    if (!std::isfinite(weight) || weight < 0) return fmt::format("row {} has weight {}", i, weight);
  }
  for (int64_t i = 0; form.has_offsets && i < rows; ++i) {
    const auto offset = ItemAt<float>(values.data + FedParts(form).row_offsets, i);
    if (!std::isfinite(offset)) return fmt::format("row {} has offset {}", i, offset);
  }
  return form.id_bytes > 0 ? WhyNotSparse(config, form, values.data) : "";
}

Batch FedReader::Read(const wire::DataBatch& batch, net::TensorView values) {
  const net::BatchHead form = FormOf(batch);
  const FedParts parts(form);
  Batch read;
  read.rows = form.rows;
  read.columns = *config_.model.inputs;
  if (HasClasses(config_.model)) {
    read.labels = reinterpret_cast<const int32_t*>(values.data);
  } else {
    read.targets = reinterpret_cast<const float*>(values.data);
  }
  const auto floats_at = [&](int64_t at) { return reinterpret_cast<const float*>(values.data + at); };
  if (form.weighted) {
    read.weights = floats_at(parts.weights);
    read.weight = form.weight;
  }
  if (form.has_offsets) read.row_offsets = floats_at(parts.row_offsets);
  if (form.id_bytes > 0) {
    ReadSparse(batch, values.data, &read);
  } else if (form.as_bytes) {
    for (auto next = static_cast<int64_t>(numbers_.size()); next < read.rows; ++next)
      numbers_.push_back(next);
    read.bytes.table = {reinterpret_cast<const uint8_t*>(values.data + parts.features), read.rows,
                        read.columns};
    read.bytes.rows = {numbers_.data(), read.rows};
  } else {
    read.inputs = reinterpret_cast<const float*>(values.data + parts.features);
  }
  return read;
}

void FedReader::ReadSparse(const wire::DataBatch& batch, const std::byte* values, Batch* read) {
  const net::BatchHead form = FormOf(batch);
  const FedParts parts(form);
  offsets_.assign(1, 0);
  for (int64_t row = 0; row < read->rows; ++row) {
    offsets_.push_back(ItemAt<uint32_t>(values + parts.features, row));
  }
  ids_.resize(form.features);
  for (size_t i = 0; i < ids_.size(); ++i) {
    ids_[i] = IdAt(values + parts.ids, form.id_bytes, static_cast<int64_t>(i));
  }
  const auto* const of_features = reinterpret_cast<const float*>(values + parts.values);
  const SparseRows rows{offsets_.data(), ids_.data(), form.has_values ? of_features : nullptr};
  if (UsesTable(config_)) {
    read->sparse = rows;
    return;
  }
  dense_.resize(static_cast<size_t>(std::max<int64_t>(1, read->rows) * read->columns));
  WriteDense(rows, {dense_.data(), read->rows, read->columns});
  read->inputs = dense_.data();
}

}  // namespace dtrain
