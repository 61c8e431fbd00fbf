// DeviceStore: all parameters of a model on one GPU, where ps and workers are threads of one process: the ps
// update them there, and the workers read them there, in the order of one stream. Messages then say where
// values are instead of carrying them. Owner: RunClusterInProcess, longer than its tasks. Thread: any; values
// are written in the stream alone.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "gpu/cuda/queue.h"
#include "net/channel.h"

namespace dtrain {

class DeviceStore {
 public:
  // For `size` parameters. Throws UserError where the device has too little memory.
  DeviceStore(std::shared_ptr<gpu::cuda::Device> device, int64_t size)
      : device_(std::move(device)), queue_(*device_), weights_(queue_, size, "the weights") {}

  const std::shared_ptr<gpu::cuda::Device>& device() const { return device_; }
  const std::shared_ptr<gpu::cuda::SharedStream>& stream() const { return queue_.shared_stream(); }
  float* weights() const { return weights_.data(); }
  // Memory for a gradient, as long as this: the ps may apply one whose worker has ended.
  float* NewGradient() {
    const std::lock_guard lock(mutex_);
    return gradients_.emplace_back(queue_, weights_.size(), "a gradient").data();
  }

 private:
  const std::shared_ptr<gpu::cuda::Device> device_;  // shared with the models of the workers
  gpu::cuda::Queue queue_;
  gpu::cuda::Buffer<float> weights_;
  std::mutex mutex_;
  std::vector<gpu::cuda::Buffer<float>> gradients_;
};

// What a message carries in place of values: where they begin in the device's memory.
using DeviceAddress = const float*;

inline DeviceAddress AddressIn(net::TensorView tensor) {
  DeviceAddress address;
  std::memcpy(&address, tensor.data, sizeof address);
  return address;
}

}  // namespace dtrain
