// The layout of a batch in the values of a DataBatch (net/messages.fbs), for data.split: feed: one label
// (int32) or target (float32) per row, then the features, row by row, as bytes or as float32.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/codec.h"
#include "trainer/batch/batch.h"
#include "trainer/config/config.h"
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

int64_t FedBatchBytes(int64_t rows, int64_t inputs, bool as_bytes);
// Throws UserError when a batch of `rows` rows is larger than a message may be.
void CheckFedBatch(const Config& config, int64_t rows, int64_t inputs, bool as_bytes);

// Writes the rows of `set` to `values`, FedBatchBytes() long and aligned for float32. Copies each row once.
void WriteFedBatch(const DataSet& set, gpu::Span<const int64_t> rows, std::byte* values);

// What is wrong with `batch` and its `values` by `config` (with its model's shape); empty: it is readable.
std::string WhyNotFedBatch(const Config& config, const wire::DataBatch& batch, net::TensorView values);
// The batch in `values`, which has passed WhyNotFedBatch() and begins at a multiple of 4. `numbers`: 0, 1, 2
// and so on, for at least as many rows.
Batch ReadFedBatch(const Config& config, const wire::DataBatch& batch, net::TensorView values,
                   const std::vector<int64_t>& numbers);

}  // namespace dtrain
