// The model of a task on the devices that were chosen for it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "trainer/config/config.h"
#include "trainer/device/choice.h"
#include "trainer/device/device_store.h"
#include "trainer/model/layout.h"
#include "trainer/model/model.h"

namespace dtrain {

// With several devices a tower for each. `max_rows`: of the largest batch that one of them is given. `store`:
// where the parameters stay on the device, which outlives the model; null: in this machine's memory. Throws
// UserError where a device has too little memory.
std::unique_ptr<Model> MakeModelOn(const DeviceChoice& devices, const Config& config, const Layout& layout,
                                   int64_t max_rows, DeviceStore* store);

// Where the parameters of a run lie whose ps and workers are threads of one process: on the workers' GPU
// where that can be, so that nothing of them is copied in a step.

// The key because of which they lie in this machine's memory though workers compute on a GPU, with the
// reason; empty: they stay on the GPU, or there is none.
std::string WhyParametersTravel(const Config& config, const DeviceChoice& devices);

// For `size` parameters of workers that compute on devices.gpus[0]. Throws UserError where it has too little
// memory.
std::unique_ptr<DeviceStore> MakeDeviceStore(const Config& config, const DeviceChoice& devices, int64_t size);

}  // namespace dtrain
