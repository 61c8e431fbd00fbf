// DeviceData: a data set's features in a device's memory (data.cache: device), so that a batch is its row
// numbers and labels. Owner: the model, or who makes it; not longer than the device. Thread: one at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "gpu/cuda/buffer.h"
#include "gpu/cuda/queue.h"
#include "gpu/view.h"

namespace dtrain {

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

}  // namespace dtrain
