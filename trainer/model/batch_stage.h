// Batches on a device: BatchStage brings them there, DeviceData keeps a whole data set there.
// Owner: the model; not longer than the device. Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "gpu/cuda/device.h"
#include "gpu/cuda/queue.h"
#include "gpu/view.h"
#include "trainer/data/batch.h"

namespace dtrain {

// DeviceData: a data set's features in a device's memory (data.cache: device), so that a batch is its row
// numbers and labels.
class DeviceData {
 public:
  // One of the two is not empty; it is recognised by its address and stays where it is. Throws UserError
  // where it does not fit. Waits until it is there.
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

// One batch in a device's memory.
struct DeviceBatch {
  int slot = 0;  // the same slot: the same addresses
  int64_t rows = 0;
  gpu::ByteRows bytes;                  // either these
  gpu::MatrixView<const float> floats;  // or these: the rows, or with `row_numbers` a table that they are of
  gpu::Span<const int64_t> row_numbers;
  const int32_t* labels = nullptr;
  const float* targets = nullptr;
};

// BatchStage: batches on their way into a device's memory. Each is copied into pinned memory at once. A large
// batch is uploaded by a stream of its own, so that it travels while the step before is computed; a small one
// is copied by the step itself, which saves the calls. Where the device keeps the data set (DeviceData), only
// labels and row numbers travel. When a batch is uploaded all steps but the last two are done.
class BatchStage {
 public:
  // `uploads`: its stream carries what is uploaded; it outlives this.
  BatchStage(gpu::cuda::Queue& uploads, int64_t max_rows);
  // What the device keeps, as long as this lives; before the first batch.
  void set_data(const DeviceData* data) { data_ = data; }

  // Begins the upload of a batch that is wanted later.
  void Upload(const Batch& batch);
  // The batch: what `compute` is given from now on, behind CopySmall(), finds it in the device's memory.
  // Uploaded now unless it was before.
  const DeviceBatch& Use(const Batch& batch, gpu::cuda::StreamHandle compute);
  // The first of a step's work, once for each time that the step is queued or captured.
  void CopySmall(gpu::cuda::Queue& compute);
  // `compute` has been given all that reads the batch last used.
  void Used(gpu::cuda::StreamHandle compute);

 private:
  // A slot holds labels or targets, then row numbers or features: all of it goes in one copy.
  struct Slot {
    gpu::cuda::PinnedBuffer<std::byte> pinned;
    gpu::cuda::Buffer<std::byte> memory;
    gpu::cuda::Event uploaded;
    gpu::cuda::Event used;
    DeviceBatch batch;
    int64_t bytes = 0;             // of the batch
    const void* source = nullptr;  // of the batch that it holds; null: of none that can be told
    uint64_t number = 0;
  };
  // A small batch's slot has no events: it waits for a third turn.
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
  bool small_ = false;                 // all batches are
  int latest_ = 0;                     // the slot last filled
  int in_use_ = 0;                     // the slot last used
  int64_t row_bytes_ = 0;              // of what travels of a row, at most
  gpu::cuda::StreamHandle compute_{};  // that has used the slots, where one has
  bool was_used_ = false;
  gpu::cuda::Buffer<int64_t> in_order_;  // 0, 1, 2, ...: the row numbers of bytes that lie in order
};

}  // namespace dtrain
