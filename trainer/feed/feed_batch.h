// How a batch lies in the values of a DataBatch (net/messages.fbs), for data.split: feed: a label (int32) or
// a target (float32) for each row, then the features, row by row, as bytes or as float32.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/data/batch.h"
#include "trainer/data/source.h"

namespace dtrain {

// A worker has this many requests open at most: small batches come often, large ones fill memory.
constexpr int64_t kMaxBatchesAhead = 8;
// How many batches a worker reads ahead where the largest has `bytes`: 2 to kMaxBatchesAhead.
int64_t BatchesAhead(int64_t bytes);

// Of a step: one batch for each device, all in one message.
int64_t RowsPerStep(const Config& config);
// The most rows of one message. `train_rows` are all of data.train, unset: without end.
int64_t MaxFedRows(const Config& config, std::optional<int64_t> train_rows);

int64_t FedBatchBytes(int64_t rows, int64_t inputs, bool as_bytes);
// UserError where a batch of so many rows is larger than a message may be.
void CheckFedBatch(const Config& config, int64_t rows, int64_t inputs, bool as_bytes);

// Writes rows of `set` to `values`, aligned for float32 and FedBatchBytes() long. Each row is copied once.
void WriteFedBatch(const DataSet& set, gpu::Span<const int64_t> rows, std::byte* values);

// What `batch` with its `values` breaks of what `config` (with its model's shape) promises; empty where a
// model may read it.
std::string WhyNotFedBatch(const Config& config, const wire::DataBatch& batch, net::TensorView values);
// The batch in `values`, which WhyNotFedBatch() has passed and which begin at a multiple of 4. `numbers`: 0,
// 1,
// ... for at least as many rows.
Batch ReadFedBatch(const Config& config, const wire::DataBatch& batch, net::TensorView values,
                   const std::vector<int64_t>& numbers);

}  // namespace dtrain
