// WorkerModel: the model that a worker trains, on the devices chosen for it, and the memory of its parameters
// and gradients.
// Owner and thread: the worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/log.h"
#include "gpu/cuda/queue.h"
#include "net/lent_buffer.h"
#include "trainer/config/choices.h"
#include "trainer/device/choice.h"
#include "trainer/device/device_store.h"
#include "trainer/model/layout.h"
#include "trainer/model/model.h"
#include "trainer/sets/load_data.h"
#include "trainer/sets/source.h"

namespace dtrain {

class WorkerModel {
 public:
  // `store`: the device on which the parameters stay; null: they travel. The arguments outlive this.
  WorkerModel(const Config& config, const Layout& layout, const DeviceChoice& devices, DeviceStore* store);

  // Makes the model for batches of up to `max_rows` rows on each device. Call it once.
  void Make(int64_t max_rows, const LoadedData& data, BatchSource& source, Logger& log);
  // Replaces the data; batches keep their max number of rows. Call it after Make().
  void UseData(const LoadedData& data, BatchSource& source, Logger& log);
  bool made() const { return model_ != nullptr; }
  Model& model() { return *model_; }

  // Whether messages carry device addresses instead of values.
  bool by_address() const { return store_ != nullptr; }
  // The parameters of steps and evaluations.
  const float* parameters() const { return by_address() ? store_->weights() : here_.data(); }
  // The parameters in host memory, where weights that travel arrive.
  float* here() { return here_.data(); }
  // Where the parameters of a snapshot arrive, and those parameters for an evaluation once they are here.
  float* snapshot_here();
  const float* SnapshotParameters();
  // Copies the latest parameters to host memory if they are on a device, and returns them.
  const float* Fetch();

  // Turns to the memory for the next step's gradient, of `values` float32. Returns the buffer to push: it
  // holds the gradient, or the addresses of its blocks.
  const net::LentBuffer& NextGradient(int64_t values);
  // Where the model writes that gradient.
  float* gradient() { return gradient_; }
  // The gradient of the latest step in host memory. Call it after Model::End().
  float* FetchGradient();

 private:
  // A gradient on the device, and the addresses of its blocks.
  struct DeviceGradient {
    float* values;  // owned by the store
    net::LentBuffer addresses;
  };

  void KeepData(const LoadedData& data, Logger& log);
  DeviceGradient MakeDeviceGradient();

  const Config& config_;
  const Layout& layout_;
  const DeviceChoice& devices_;
  DeviceStore* const store_;
  std::unique_ptr<gpu::cuda::Queue> queue_;  // of the store's stream
  // Declared before the model, which pins it and must be destroyed first.
  std::vector<float> here_;
  std::vector<float> gradient_here_;
  std::vector<float> snapshot_here_;  // empty until it is needed
  float* snapshot_there_ = nullptr;   // on the store's device, the same
  net::LentBuffers buffers_;          // one for each exchange that may be open, and one to write into
  std::vector<DeviceGradient> gradients_;
  size_t next_gradient_ = 0;
  float* gradient_ = nullptr;  // of the latest step; see NextGradient()
  std::unique_ptr<Model> model_;
};

}  // namespace dtrain
