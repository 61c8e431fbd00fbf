#include "trainer/model/batch_stage.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "trainer/config/config.h"

namespace dtrain {
namespace {

using gpu::cuda::Buffer;
using gpu::cuda::Event;
using gpu::cuda::PinnedBuffer;

constexpr int64_t kAlign = 256;
// Below this size, a copy costs about as much as the calls that would overlap it.
constexpr int64_t kSmallBytes = 16 << 10;
constexpr const char* kWhat = "batches on their way";

int64_t Aligned(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

template <typename T>
T* At(std::byte* memory) {
  return reinterpret_cast<T*>(memory);
}

const void* TableOf(const Batch& batch) {
  if (batch.bytes.table.data != nullptr) return batch.bytes.table.data;
  return batch.table.data;
}

}  // namespace

BatchStage::BatchStage(gpu::cuda::Queue& uploads, int64_t max_rows)
    : uploads_(uploads),
      max_rows_(max_rows),
      head_bytes_(Aligned(max_rows * static_cast<int64_t>(sizeof(int32_t)))) {
  for (Slot& slot : slots_) {
    slot.uploaded = Event(uploads.device());
    slot.used = Event(uploads.device());
  }
}

bool BatchStage::Keeps(const Batch& batch) const { return data_ != nullptr && data_->Has(TableOf(batch)); }

// Allocates memory for the largest batch, when the first batch shows what its rows consist of.
void BatchStage::Prepare(const Batch& batch) {
  const bool as_bytes = batch.bytes.table.data != nullptr && batch.inputs == nullptr;
  const int64_t row_bytes = Keeps(batch) ? static_cast<int64_t>(sizeof(int64_t))
                                         : batch.columns * static_cast<int64_t>(as_bytes ? 1 : sizeof(float));
  if (as_bytes && !Keeps(batch) && in_order_.data() == nullptr) {
    std::vector<int64_t> numbers(static_cast<size_t>(max_rows_));
    std::iota(numbers.begin(), numbers.end(), 0);
    in_order_ = Buffer<int64_t>(uploads_, max_rows_, kWhat);
    uploads_.Copy(in_order_.data(), numbers.data(), in_order_.bytes());
    uploads_.Wait();  // other streams use it from now on
  }
  if (row_bytes <= row_bytes_) return;
  uploads_.Wait();
  if (was_used_) uploads_.runtime().Wait(compute_);
  const int64_t bytes = head_bytes_ + max_rows_ * row_bytes;
  small_ = bytes <= kSmallBytes;
  for (int i = 0; i < (small_ ? kSlots : kSlots - 1); ++i) {
    slots_[i].pinned = PinnedBuffer<std::byte>(uploads_.runtime(), bytes, kWhat);
    slots_[i].memory = Buffer<std::byte>(uploads_, bytes, kWhat);
    slots_[i].source = nullptr;
  }
  row_bytes_ = row_bytes;
  uploads_.Wait();  // other streams use the memory from now on
}

void BatchStage::Upload(const Batch& batch) {
  DT_CHECK(batch.rows <= max_rows_, batch.rows, max_rows_);
  if (Holds(slots_[latest_], batch)) return;
  Prepare(batch);
  latest_ = (in_use_ + 1) % (small_ ? kSlots : kSlots - 1);
  Fill(&slots_[latest_], batch);
}

const DeviceBatch& BatchStage::Use(const Batch& batch, gpu::cuda::StreamHandle compute) {
  Upload(batch);
  in_use_ = latest_;
  compute_ = compute;
  was_used_ = true;
  if (!small_) slots_[in_use_].uploaded.DelayStream(compute);
  return slots_[in_use_].batch;
}

void BatchStage::CopySmall(gpu::cuda::Queue& compute) {
  const Slot& slot = slots_[in_use_];
  if (small_) compute.Copy(slot.memory.data(), slot.pinned.data(), slot.bytes);
}

void BatchStage::Used(gpu::cuda::StreamHandle compute) {
  if (!small_) slots_[in_use_].used.Record(compute);
}

void BatchStage::Fill(Slot* slot, const Batch& batch) {
  if (!small_) {
    slot->uploaded.Wait();                      // the pinned memory has been read
    slot->used.DelayStream(uploads_.stream());  // and so has the device's
  }
  slot->batch = DeviceBatch();
  slot->batch.slot = static_cast<int>(slot - slots_);
  slot->batch.rows = batch.rows;
  slot->source = batch.source;
  slot->number = batch.number;
  FillHead(slot, batch);
  slot->bytes = batch.rows == 0 ? 0 : head_bytes_ + batch.rows * FillRows(slot, batch);
  if (small_) return;
  uploads_.Copy(slot->memory.data(), slot->pinned.data(), slot->bytes);
  slot->uploaded.Record(uploads_.stream());
}

void BatchStage::FillHead(Slot* slot, const Batch& batch) const {
  const auto bytes = static_cast<size_t>(batch.rows) * sizeof(int32_t);
  if (bytes == 0) return;
  const bool labels = batch.labels != nullptr;
  std::memcpy(slot->pinned.data(), labels ? static_cast<const void*>(batch.labels) : batch.targets, bytes);
  if (labels) {
    slot->batch.labels = At<const int32_t>(slot->memory.data());
  } else {
    slot->batch.targets = At<const float>(slot->memory.data());
  }
}

// Returns the bytes of one row.
int64_t BatchStage::FillRows(Slot* slot, const Batch& batch) const {
  std::byte* const pinned = slot->pinned.data() + head_bytes_;
  std::byte* const memory = slot->memory.data() + head_bytes_;
  DeviceBatch& staged = slot->batch;
  const auto rows = static_cast<size_t>(batch.rows), columns = static_cast<size_t>(batch.columns);
  if (Keeps(batch)) {
    const bool as_bytes = batch.bytes.table.data != nullptr;
    const gpu::Span<const int64_t> numbers(At<const int64_t>(memory), batch.rows);
    std::memcpy(pinned, (as_bytes ? batch.bytes.rows : batch.table_rows).data, rows * sizeof(int64_t));
    if (as_bytes) {
      staged.bytes = {data_->bytes(), numbers};
    } else {
      staged.floats = data_->floats();
      staged.row_numbers = numbers;
    }
    return static_cast<int64_t>(sizeof(int64_t));
  }
  if (batch.inputs != nullptr) {
    std::memcpy(pinned, batch.inputs, rows * columns * sizeof(float));
    staged.floats = {At<const float>(memory), batch.rows, batch.columns};
    return batch.columns * static_cast<int64_t>(sizeof(float));
  }
  if (batch.table.data != nullptr) {
    for (size_t i = 0; i < rows; ++i) {
      std::memcpy(pinned + i * columns * sizeof(float),
                  batch.table.row(batch.table_rows[static_cast<int64_t>(i)]), columns * sizeof(float));
    }
    staged.floats = {At<const float>(memory), batch.rows, batch.columns};
    return batch.columns * static_cast<int64_t>(sizeof(float));
  }
  for (size_t i = 0; i < rows; ++i) {
    std::memcpy(pinned + i * columns, batch.bytes.table.row(batch.bytes.rows[static_cast<int64_t>(i)]),
                columns);
  }
  staged.bytes = {{At<const uint8_t>(memory), batch.rows, batch.columns}, {in_order_.data(), batch.rows}};
  return batch.columns;
}

using gpu::cuda::Buffer;

DeviceData::DeviceData(gpu::cuda::Queue& uploads, gpu::MatrixView<const uint8_t> bytes,
                       gpu::MatrixView<const float> floats)
    : source_(bytes.data != nullptr ? static_cast<const void*>(bytes.data) : floats.data),
      rows_(bytes.data != nullptr ? bytes.rows : floats.rows),
      columns_(bytes.data != nullptr ? bytes.cols : floats.cols) {
  constexpr const char* kWhat = "the training set (data.cache: device)";
  if (bytes.data != nullptr) {
    bytes_ = Buffer<uint8_t>(uploads, bytes.size(), kWhat);
    uploads.Copy(bytes_.data(), bytes.data, bytes_.bytes());
  } else {
    floats_ = Buffer<float>(uploads, floats.size(), kWhat);
    uploads.Copy(floats_.data(), floats.data, floats_.bytes());
  }
  uploads.Wait();
}

}  // namespace dtrain
