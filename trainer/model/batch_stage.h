// Batches on a device: BatchStage copies them there, DeviceData keeps a whole data set there. Owner: the
// model; the device outlives them. Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "gpu/cuda/device.h"
#include "gpu/cuda/queue.h"
#include "gpu/view.h"
#include "trainer/batch/batch.h"

namespace dtrain {

// DeviceData: a data set's features in a device's memory (data.cache: device). A batch then consists of row
// numbers and labels.
class DeviceData {
 public:
  // One of the two views is not empty. The set is identified by its address, so it must not move. Throws
  // UserError if it does not fit. Waits until the copy is done.
  DeviceData(gpu::cuda::Queue& uploads, gpu::MatrixView<const uint8_t> bytes,
             gpu::MatrixView<const float> floats);

  bool Has(const void* table) const { return table == source_; }
  gpu::MatrixView<const uint8_t> bytes() const { return {bytes_.data(), rows_, columns_}; }
  gpu::MatrixView<const float> floats() const { return {floats_.data(), rows_, columns_}; }
  int64_t size_bytes() const { return bytes_.bytes() + floats_.bytes(); }

 private:
  const void* const source_;
  const int64_t rows_;
  const int64_t columns_;
  gpu::cuda::Buffer<uint8_t> bytes_;
  gpu::cuda::Buffer<float> floats_;
};

// DeviceBatch: one batch in a device's memory.
struct DeviceBatch {
  int slot = 0;  // batches in the same slot have the same addresses
  int64_t rows = 0;
  gpu::ByteRows bytes;                  // either these
  gpu::MatrixView<const float> floats;  // or these: the rows, or the table that `row_numbers` refers to
  gpu::Span<const int64_t> row_numbers;
  const int32_t* labels = nullptr;
  const float* targets = nullptr;
};

// BatchStage: copies batches into a device's memory. Each is first copied into pinned memory. A large batch
// is uploaded in a stream of its own, while the step before is computed; a small one is copied by the step
// itself, which saves calls. If the device keeps the data set (DeviceData), only labels and row numbers are
// copied. A batch may be uploaded once all steps but the last two are done.
class BatchStage {
 public:
  // Uploads go through the stream of `uploads`, which outlives this.
  BatchStage(gpu::cuda::Queue& uploads, int64_t max_rows);
  // Sets what the device keeps; it outlives this. Call it before the first batch.
  void set_data(const DeviceData* data) { data_ = data; }

  // Begins the upload of a batch that will be used later.
  void Upload(const Batch& batch);
  // Returns the batch, for work that is queued in `compute` after CopySmall(). Uploads it now unless that was
  // done before.
  const DeviceBatch& Use(const Batch& batch, gpu::cuda::StreamHandle compute);
  // Queues the copy of a small batch. Call it first in a step's work, each time the step is queued or
  // captured.
  void CopySmall(gpu::cuda::Queue& compute);
  // Call it when `compute` has been given all work that reads the last used batch.
  void Used(gpu::cuda::StreamHandle compute);

 private:
  // Slot: holds labels or targets, then row numbers or features, in one piece that one copy transfers.
  struct Slot {
    gpu::cuda::PinnedBuffer<std::byte> pinned;
    gpu::cuda::Buffer<std::byte> memory;
    gpu::cuda::Event uploaded;
    gpu::cuda::Event used;
    DeviceBatch batch;
    int64_t bytes = 0;             // of the batch
    const void* source = nullptr;  // of the batch in the slot; null: it has no identity
    uint64_t number = 0;
  };
  // The slot of a small batch has no events; three slots keep it unchanged long enough.
  static constexpr int kSlots = 3;

  void Prepare(const Batch& batch);
  void Fill(Slot* slot, const Batch& batch);
  void FillHead(Slot* slot, const Batch& batch) const;
  int64_t FillRows(Slot* slot, const Batch& batch) const;
  bool Keeps(const Batch& batch) const;
  bool Holds(const Slot& slot, const Batch& batch) const {
    return batch.source != nullptr && slot.source == batch.source && slot.number == batch.number &&
           slot.batch.rows == batch.rows;
  }

  gpu::cuda::Queue& uploads_;
  const int64_t max_rows_;
  const int64_t head_bytes_;  // of labels or targets
  const DeviceData* data_ = nullptr;
  Slot slots_[kSlots];
  bool small_ = false;                 // all batches are small
  int latest_ = 0;                     // the slot filled last
  int in_use_ = 0;                     // the slot used last
  int64_t row_bytes_ = 0;              // the most bytes that are copied per row
  gpu::cuda::StreamHandle compute_{};  // the stream that has used the slots, if any
  bool was_used_ = false;
  gpu::cuda::Buffer<int64_t> in_order_;  // 0, 1, 2, ...: the row numbers of bytes in order
};

}  // namespace dtrain
