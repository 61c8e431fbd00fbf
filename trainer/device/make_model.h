// Making the model of a task on its chosen devices, and the GPU memory for the parameters of a run. Thread:
// any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "trainer/config/choices.h"
#include "trainer/device/choice.h"
#include "trainer/device/device_store.h"
#include "trainer/model/layout.h"
#include "trainer/model/model.h"
#include "trainer/model/sparse_model.h"

namespace dtrain {

// Returns the model of a task; with several devices, one tower for each. `max_rows` is the size of the
// largest batch of one device. `store`, which outlives the model, holds the parameters on the device; null:
// they are in this machine's memory. Throws UserError if a device has too little memory.
std::unique_ptr<Model> MakeModelOn(const DeviceChoice& devices, const Config& config, const Layout& layout,
                                   int64_t max_rows, DeviceStore* store);

// Returns the model of a layout that has a table. It computes on the processor.
std::unique_ptr<SparseModel> MakeSparseModel(const ModelConfig& config, const Layout& layout,
                                             int64_t max_rows, Reduce reduce = Reduce::kMean);

// If ps and workers are threads of one process, the parameters stay on the workers' GPU, so that no step
// copies them. Returns the key that prevents this although there is a GPU, with the reason; empty if they
// stay there, or if there is no GPU.
std::string WhyParametersAreSent(const Config& config, const DeviceChoice& devices);

// Returns the memory for `size` parameters of workers that compute on devices.gpus[0]. Throws UserError if
// the GPU has too little memory.
std::unique_ptr<DeviceStore> MakeDeviceStore(const Config& config, const DeviceChoice& devices, int64_t size);

}  // namespace dtrain
