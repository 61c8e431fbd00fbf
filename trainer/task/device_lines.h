// The lines of a task's start about devices: what it computes on, and with placement.log what of a training
// step runs where.
#pragma once

#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/device/choice.h"
#include "trainer/model/layout.h"

namespace dtrain {

// "device /job:worker/task:0/gpu:0: NVIDIA H100 80GB HBM3, ...", one for each GPU; of several devices also
// how they divide a step. Of a ps `choice` is empty.
std::vector<std::string> DeviceLines(const Config& config, TaskId task, const DeviceChoice& choice);
// "tower 0 -> /job:worker/task:0/gpu:0", where a worker has several.
std::vector<std::string> TowerLines(const Config& config, TaskId task, const DeviceChoice& choice);
// "layer 1 matmul, bias, sigmoid -> /job:worker/task:0/gpu:0", ...: the operations of a step, of worker 0 and
// of every ps, whose parameters lie on its device `parameters`: "cpu:0".
std::vector<std::string> OperationLines(const Config& config, const Layout& layout,
                                        const DeviceChoice& choice, const std::string& parameters);

}  // namespace dtrain
