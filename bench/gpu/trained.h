// Trained: a model with its parameters, its data and their updates on one device, as in a run whose ps and
// worker are threads of one process (trainer/device/device_store.h), but without any messages.
// Owner and thread: one case.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/gpu/gpu.h"
#include "trainer/config/config.h"
#include "trainer/model/device_model.h"

namespace dtrain::bench {

class Trained {
 public:
  // On `images` random rows of bytes. The batch takes the next rows in a shuffled order.
  Trained(Gpu& gpu, const ModelConfig& model, int64_t images, int64_t batch);

  // One step: the gradient of a batch, its loss on this machine, the update of sgd.
  void Step();
  // In which all of a step's ends are.
  gpu::cuda::StreamHandle stream() const { return updates_.stream(); }
  // The products of a step, in places of their own.
  std::vector<gpu::cuda::Product> Products();

 private:
  Batch Next();

  Gpu& gpu_;
  const ModelConfig config_;
  const Layout layout_;
  const int64_t images_, batch_;
  const std::vector<uint8_t> table_;
  std::vector<int64_t> order_;
  std::vector<int32_t> labels_;
  gpu::cuda::Queue updates_;
  gpu::Stream update_stream_;
  gpu::cuda::Buffer<float> weights_, gradient_;
  DeviceModel model_;
  Batch staged_;
  uint64_t number_ = 0;
  int64_t next_ = 0;
  std::vector<gpu::cuda::Buffer<float>> places_;  // of Products()
};

// With a small first weight everywhere and relu between layers.
ModelConfig NetOf(int64_t inputs, const std::vector<int64_t>& hidden, int64_t outputs);

}  // namespace dtrain::bench
