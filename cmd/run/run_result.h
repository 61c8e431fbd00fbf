// What a run that is done shows to people: its result on standard output, and on standard error a table with
// a row for each worker. Thread: any, one at a time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cmd/common/report.h"
#include "trainer/config/choices.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

// Returns the result in at most 14 lines, without their ends.
std::vector<std::string> ResultLines(const Config& config, const RunSummary& summary);

// Returns a header and a row for each worker that took steps: its steps and pace, the share of its time in
// each part of them, and the staleness of its gradients and its own accuracy if it has any. `only`: one
// worker. Empty: there is none. The lines fit into 80 columns unless a count has more than 8 digits.
std::vector<std::string> WorkerTable(const RunSummary& summary, std::optional<int> only = std::nullopt);

// Both do nothing with -q (`errors`). The table is left out with log.format json, which has it as records,
// and with a log.level above info.
void ShowTable(const Config& config, const RunSummary& summary, std::optional<int> only,
               const ErrorLines& errors);
// If the JSON of `result` goes to standard output, it is alone there. Returns false, and prints why, if the
// result cannot be printed, as on a full disk; a reader that has gone, or was never there, does not count.
[[nodiscard]] bool ShowResult(const Config& config, const RunSummary& summary, const ErrorLines& errors,
                              const ResultFile& result);

}  // namespace dtrain
