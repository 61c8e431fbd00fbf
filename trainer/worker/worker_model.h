// WorkerModel: the model that a worker trains, on the devices that were chosen for it, and the memory in
// which its parameters and gradients lie. Owner and thread: the worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/log.h"
#include "gpu/cuda/queue.h"
#include "net/lent_buffer.h"
#include "trainer/config/config.h"
#include "trainer/data/load_data.h"
#include "trainer/data/source.h"
#include "trainer/device/choice.h"
#include "trainer/device/device_store.h"
#include "trainer/model/layout.h"
#include "trainer/model/model.h"

namespace dtrain {

// GradientBuffers: memory for gradients, one for each exchange that may be open and one to write into; each
// is written only while nobody reads it.
class GradientBuffers {
 public:
  // Of `bytes` each.
  GradientBuffers(size_t bytes, int64_t max_open);
  // One that is not lent. It stays where it is: an open exchange points to its gradient.
  const net::LentBuffer& Free();
  size_t count() const { return buffers_.size(); }

 private:
  const size_t bytes_;
  std::deque<net::LentBuffer> buffers_;
  size_t next_ = 0;
};

class WorkerModel {
 public:
  // `store`: where the parameters stay on a device; null: they travel. All outlive this.
  WorkerModel(const Config& config, const Layout& layout, const DeviceChoice& devices, DeviceStore* store);

  // For batches of up to so many rows for each device, of this data. Once.
  void Make(int64_t max_rows, const LoadedData& data, BatchSource& source, Logger& log);
  // These in place of those before, of as many rows: after Make().
  void UseData(const LoadedData& data, BatchSource& source, Logger& log);
  bool made() const { return model_ != nullptr; }
  Model& model() { return *model_; }

  // Whether messages say where on a device values are, instead of carrying them.
  bool by_address() const { return store_ != nullptr; }
  // What steps and evaluations take for parameters.
  const float* parameters() const { return by_address() ? store_->weights() : here_.data(); }
  // In this machine's memory: where weights that travel arrive.
  float* here() { return here_.data(); }
  // The same with the latest values, wherever those are.
  const float* Fetch();
  void Arrived(const float* parameters, Range elements) { model_->Arrived(parameters, elements); }

  // Begins a step. The gradient, or where it is, will be in what is returned: to be pushed.
  const net::LentBuffer& Begin(const Batch& batch, bool count_correct);
  StepResult End() { return model_->End(); }
  // The latest step's, behind End(), in this machine's memory.
  float* FetchGradient();

 private:
  // One on the device, and its blocks' addresses.
  struct DeviceGradient {
    float* values;  // the store's
    net::LentBuffer addresses;
  };

  void KeepData(const LoadedData& data, Logger& log);
  DeviceGradient MakeDeviceGradient();

  const Config& config_;
  const Layout& layout_;
  const DeviceChoice& devices_;
  DeviceStore* const store_;
  std::unique_ptr<gpu::cuda::Queue> queue_;  // in the store's stream
  // What the model pins goes behind it.
  std::vector<float> here_;
  std::vector<float> gradient_here_;
  GradientBuffers buffers_;
  std::vector<DeviceGradient> gradients_;
  size_t next_gradient_ = 0;
  float* gradient_ = nullptr;  // of the latest step
  std::unique_ptr<Model> model_;
};

}  // namespace dtrain
