// The model of a task on the devices that were chosen for it.
#pragma once

#include <cstdint>
#include <memory>

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

}  // namespace dtrain
