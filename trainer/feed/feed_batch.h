// The layout of a batch in the values of a DataBatch (net/messages.fbs), for data.split: feed: labels or
// targets, weights and offsets where rows have them, and the features: bytes, float32 or sparse rows.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/codec.h"
#include "net/lent_buffer.h"
#include "trainer/batch/batch.h"
#include "trainer/batch/sparse_rows.h"
#include "trainer/config/choices.h"
#include "trainer/sets/source.h"

namespace dtrain {

// The max number of requests that a worker has open: small batches come often, large ones fill memory.
constexpr int64_t kMaxBatchesAhead = 8;
// The number of batches that a worker reads ahead: 2 to kMaxBatchesAhead. `bytes`: of the largest one.
int64_t BatchesAhead(int64_t bytes);

// The rows of a step: one batch for each device, all in one message.
int64_t RowsPerStep(const Config& config);
// The max number of rows in one message. `train_rows`: of data.train; unset: endless.
int64_t MaxFedRows(const Config& config, std::optional<int64_t> train_rows);

// Describes a batch of `rows` rows of data.train. model.inputs is set. `as_bytes`: of dense rows, how they
// are kept. `features`: of a sparse row, in the mean.
net::BatchHead FedForm(const Config& config, int64_t rows, bool as_bytes, double features = 0);
// The bytes of the values that `form` describes.
int64_t FedBatchBytes(const net::BatchHead& form, int64_t inputs);
// Throws UserError when a batch of `rows` rows is larger than a message may be. How large sparse rows are is
// known when they are read.
void CheckFedBatch(const Config& config, int64_t rows, int64_t inputs, bool as_bytes);

// FedRows: the rows of a data set as values of messages. Owner: FeedServer. Thread: its.
class FedRows {
 public:
  // `set` has rows that can be gathered. Throws UserError as CheckFedBatch().
  FedRows(const Config& config, std::shared_ptr<const DataSet> set);

  const DataSet& set() const { return *set_; }
  // From now on rows are these, which are the same with another scale.
  void UseSet(std::shared_ptr<const DataSet> set) { set_ = std::move(set); }
  // The max number of rows in a batch.
  int64_t max_rows() const { return max_rows_; }
  // The bytes of the largest batch; of sparse rows, of those that were written so far.
  int64_t max_bytes() const { return max_bytes_; }
  // Writes `rows` to `memory`, which is not lent and grows if it is too small, and describes them in `head`.
  // Returns the bytes. Throws UserError for a batch that is larger than a message may be, and what the set
  // throws.
  int64_t Write(gpu::Span<const int64_t> rows, net::BatchHead* head, net::LentBuffer* memory);

 private:
  void Describe(gpu::Span<const int64_t> file_rows, net::BatchHead* head);
  void WriteBytes(gpu::Span<const int64_t> file_rows, std::byte* features) const;
  void WriteSparse(const net::BatchHead& head, std::byte* values) const;

  const Config& config_;
  std::shared_ptr<const DataSet> set_;
  const int64_t max_rows_;
  int64_t max_bytes_ = 0;
  std::vector<int64_t> file_rows_;  // of the batch that is written
  SparseBuffer sparse_;
};

// What is wrong with `batch` and its `values` by `config` (with its model's shape); empty: it is readable.
std::string WhyNotFedBatch(const Config& config, const wire::DataBatch& batch, net::TensorView values);

// FedReader: reads batches that have passed WhyNotFedBatch(). Owner: FeedSource. Thread: its.
class FedReader {
 public:
  explicit FedReader(const Config& config) : config_(config) {}

  // Returns the batch in `values`, which begin at a multiple of 4 and stay where they are; valid until the
  // next call.
  Batch Read(const wire::DataBatch& batch, net::TensorView values);

 private:
  void ReadSparse(const wire::DataBatch& batch, const std::byte* values, Batch* read);

  const Config& config_;
  std::vector<int64_t> numbers_;  // 0, 1, 2 and so on
  std::vector<int64_t> offsets_;  // of sparse rows
  std::vector<uint64_t> ids_;
  std::vector<float> dense_;  // sparse rows for a model that takes all features of a row
};

}  // namespace dtrain
