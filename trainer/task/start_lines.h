// What a task logs when it starts: where it belongs, what it runs on, what lies where.
#pragma once

#include <string>

#include "base/log.h"
#include "trainer/config/config.h"
#include "trainer/device/choice.h"
#include "trainer/model/layout.h"

namespace dtrain {

// Cluster map, model, device (of a ps `choice` is empty); with placement.log also where each variable lies
// and each operation runs; of the chief and ps 0 where checkpoints go. `parameters`: the device of each ps
// where they lie, "cpu:0".
void LogStart(const Config& config, TaskId task, const Layout& layout, const DeviceChoice& choice,
              const std::string& parameters, Logger& log);

}  // namespace dtrain
