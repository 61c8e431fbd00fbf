// The run's log: what a task says when it starts and when it ends. The texts are pure functions of the config
// and of the results; LogStart, LogEnd and LogRunEnd write them.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"
#include "trainer/config/config.h"
#include "trainer/device/choice.h"
#include "trainer/model/layout.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

// What a task says of checkpoints when it starts: whoever trains without any should know it before hours have
// passed.

// "checkpoints: run/ckpt every 600 s, the newest 5 are kept".
std::string CheckpointLine(const Config& config);

// The lines of a task's start about devices: what it computes on, and with placement.log what of a training
// step runs where.

// "device /job:worker/task:0/gpu:0: NVIDIA H100 80GB HBM3, ...", one for each GPU; of several devices also
// how they divide a step. Of a ps `choice` is empty.
std::vector<std::string> DeviceLines(const Config& config, TaskId task, const DeviceChoice& choice);
// "tower 0 -> /job:worker/task:0/gpu:0", where a worker has several.
std::vector<std::string> TowerLines(const Config& config, TaskId task, const DeviceChoice& choice);
// "layer 1 matmul, bias, sigmoid -> /job:worker/task:0/gpu:0", ...: the operations of a step, of worker 0 and
// of every ps, whose parameters lie on its device `parameters`: "cpu:0".
std::vector<std::string> OperationLines(const Config& config, const Layout& layout,
                                        const DeviceChoice& choice, const std::string& parameters);

// What a task logs when it starts: where it belongs, what it runs on, what lies where.

// Cluster map, model, device (of a ps `choice` is empty); with placement.log also where each variable lies
// and each operation runs; of the chief and ps 0 where checkpoints go. `parameters`: the device of each ps
// where they lie, "cpu:0".
void LogStart(const Config& config, TaskId task, const Layout& layout, const DeviceChoice& choice,
              const std::string& parameters, Logger& log);

// What a task logs at its end of how the run went: pure functions of its results.

// Whether `task` tells what need be told once: of the workers that were here to the end it is the first.
bool TellsForAll(TaskId task, const RunSummary& summary);
// Why there is no accuracy, or for model.kind linear no test loss, and what to set; empty: there is one, or
// none was asked for.
std::string NoTestLine(const Config& config, const RunSummary& summary);
// That the loss has risen far above that of the first steps, and what to set; empty: it has not, or is not
// known.
std::string RisenLossLine(const RunSummary& summary);
// "done", or "done, but worker 2 was lost", of those that did not come back.
std::string DoneLine(const RunSummary& summary);

// What a task logs at its end of where the workers' time went.

// "worker 2: waited 31 % for others; of 12.34 s in 5000 steps (p50 and p95 of a step in ms): data 0.05 s
// (0.010, 0.020), compute 1.20 s (0.240, 0.260), hooks ..., wait ..., network ..."
std::string TimesLine(int worker, const WorkerFigures& figures);
// "worker 2: staleness 1.9 in the mean, p50 2, p95 3, at most 7".
std::string StalenessLine(int worker, const StalenessSpread& staleness);

// Both of each worker at the chief, and of itself at any other worker.
void LogWorkers(TaskId task, const RunSummary& summary, Logger& log);

// What is logged when a run is done: what came out, who was not there to the end, where the time went, and
// `done`.

// For a task's own log: a worker's has its own accuracy.
void LogEnd(const Config& config, TaskId task, const RunSummary& summary, Logger& log);

// For the log of the whole run, once for all tasks: with every worker's accuracy.
void LogRunEnd(const Config& config, const RunSummary& summary, Logger& log);

}  // namespace dtrain
