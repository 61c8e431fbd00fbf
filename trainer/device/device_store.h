// DeviceStore: all parameters of a model on one GPU, for ps and workers that are threads of one process. The
// ps update them there and the workers read them there, in the order of one stream; messages carry addresses
// instead of values. Owner: RunClusterInProcess; it outlives its tasks. Thread: any; values are written in
// the stream only.
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
  // Allocates `size` parameters. Throws UserError if the device has too little memory.
  DeviceStore(std::shared_ptr<gpu::cuda::Device> device, int64_t size)
      : device_(std::move(device)), queue_(*device_), weights_(Zeroed(size, "the weights")) {}

  const std::shared_ptr<gpu::cuda::Device>& device() const { return device_; }
  const std::shared_ptr<gpu::cuda::SharedStream>& stream() const { return queue_.shared_stream(); }
  float* weights() const { return weights_.data(); }
  // Returns memory for a gradient, or other values of all parameters, that lives as long as this: a ps may
  // apply a gradient whose worker has ended.
  float* NewGradient() {
    const std::lock_guard lock(mutex_);
    return gradients_.emplace_back(Zeroed(weights_.size(), "a gradient")).data();
  }

 private:
  // Nothing writes what lies between variables.
  gpu::cuda::Buffer<float> Zeroed(int64_t size, const char* what) {
    gpu::cuda::Buffer<float> made(queue_, size, what);
    queue_.Fill(made.data(), 0, size * static_cast<int64_t>(sizeof(float)));
    return made;
  }

  const std::shared_ptr<gpu::cuda::Device> device_;  // shared with the workers' models
  gpu::cuda::Queue queue_;
  gpu::cuda::Buffer<float> weights_;
  std::mutex mutex_;
  std::vector<gpu::cuda::Buffer<float>> gradients_;
};

// DeviceAddress: what a message carries in place of values: their address in the device's memory.
using DeviceAddress = const float*;

inline DeviceAddress AddressIn(net::TensorView tensor) {
  DeviceAddress address;
  std::memcpy(&address, tensor.data, sizeof address);
  return address;
}

}  // namespace dtrain
