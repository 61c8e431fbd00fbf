// What is made on the devices that were chosen: the model of a task, and the memory in which the parameters
// of a run stay on a GPU.
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

// The model of a task: with several devices a tower for each. `max_rows`: of the largest batch that one of
// them is given. `store`: where the parameters stay on the device, which outlives the model; null: in this
// machine's memory. Throws UserError where a device has too little memory.
std::unique_ptr<Model> MakeModelOn(const DeviceChoice& devices, const Config& config, const Layout& layout,
                                   int64_t max_rows, DeviceStore* store);

// Where ps and workers are threads of one process, the parameters stay on the workers' GPU if they can, so
// that no step copies them. Returns the key because of which they cannot though there is a GPU, with the
// reason; empty: they stay there, or there is no GPU.
std::string WhyParametersTravel(const Config& config, const DeviceChoice& devices);

// The memory for `size` parameters of workers that compute on devices.gpus[0]. Throws UserError where it has
// too little memory.
std::unique_ptr<DeviceStore> MakeDeviceStore(const Config& config, const DeviceChoice& devices, int64_t size);

}  // namespace dtrain
