// The log of a run: what a task logs when it starts and when it ends. The texts are pure functions of the
// config and of the results; LogStart, LogEnd and LogRunEnd log them.
#pragma once

#include <string>
#include <vector>

#include "base/log.h"
#include "trainer/config/cluster_config.h"
#include "trainer/device/choice.h"
#include "trainer/model/layout.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

// The line about checkpoints at the start of a task: a user who trains without any should know it early.

// "checkpoints: run/ckpt every 600 s, the newest 5 are kept".
std::string CheckpointLine(const Config& config);

// The lines about devices at the start of a task: what it computes on and, with placement.log, where each
// part of a step runs.

// "device /job:worker/task:0/gpu:0: NVIDIA H100 80GB HBM3, ...", one for each GPU; with several devices also
// how they divide a step. `choice`: empty for a ps.
std::vector<std::string> DeviceLines(const Config& config, TaskId task, const DeviceChoice& choice);
// "tower 0 -> /job:worker/task:0/gpu:0", for a worker with several.
std::vector<std::string> TowerLines(const Config& config, TaskId task, const DeviceChoice& choice);
// "layer 1 matmul, bias, sigmoid -> /job:worker/task:0/gpu:0", ...: the operations of a step, of worker 0 and
// of every ps. `parameters`: the device that holds a ps's parameters: "cpu:0".
std::vector<std::string> OperationLines(const Config& config, const Layout& layout,
                                        const DeviceChoice& choice, const std::string& parameters);

// Logs the cluster map, the model and the device (`choice`: empty for a ps); with placement.log also where
// each variable lies and each operation runs; on worker 0 and ps 0 where checkpoints go. `parameters`: the
// device that holds a ps's parameters: "cpu:0".
void LogStart(const Config& config, TaskId task, const Layout& layout, const DeviceChoice& choice,
              const std::string& parameters, Logger& log);

// The lines about the results at the end of a task.

// Whether `task` logs what is logged once per run: it is the first of the workers that stayed to the end.
bool TellsForAll(TaskId task, const RunSummary& summary);
// Why there is no accuracy (real targets: no test loss), and what to set; empty: there is one, or none
// was wanted.
std::string NoTestLine(const Config& config, const RunSummary& summary);
// A warning that the loss has risen far above the first ones, and what to set; empty: it has not, or is
// unknown.
std::string RisenLossLine(const Config& config, const RunSummary& summary);
// A warning that the outputs of a model of classes have blown up, although each of its losses is finite and
// may even be 0; empty: they have not.
std::string SaturatedLine(const Config& config, const RunSummary& summary);
// The share of a worker's time in which it waited for others.
double WaitedPercent(const WorkerFigures& figures);
// "already done: run/ckpt/step-000000020 has the last step, 20, accuracy 0.9000, model crc 12ab34cd".
std::string AlreadyDoneLine(const RunSummary& summary);
// "done", or "done, but worker 2 was lost", with the workers that did not come back.
std::string DoneLine(const RunSummary& summary);

// The lines about the workers' time at the end of a task.

// "worker 2: waited 31 % for others; of 12.34 s in 5000 steps (p50 and p95 of a step in ms): data 0.05 s
// (0.010, 0.020), compute 1.20 s (0.240, 0.260), hooks ..., wait ..., network ..."
std::string TimesLine(int worker, const WorkerFigures& figures);
// "worker 2: staleness 1.9 in the mean, p50 2, p95 3, at most 7".
std::string StalenessLine(int worker, const StalenessSpread& staleness);

// Logs both lines: of every worker on worker 0, of itself on any other worker.
void LogWorkers(TaskId task, const RunSummary& summary, Logger& log);

// The end of a run: the results, the workers that were missing at the end, the time, and the line `done`.

// For a task's own log; a worker's has its own accuracy.
void LogEnd(const Config& config, TaskId task, const RunSummary& summary, Logger& log);

// For the log of the whole run, once for all tasks; it has every worker's accuracy.
void LogRunEnd(const Config& config, const RunSummary& summary, Logger& log);

}  // namespace dtrain
