// RunMetrics: the status of a run (leader/status_report.h) as metrics of Prometheus, for its text format and
// for the HTTP port. docs/watching.md lists them. Thread: any.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"

namespace dtrain {

// What this host knows beside the status.
struct HostFacts {
  std::string run;         // the name of the run, a label of all metrics; empty: none
  int64_t disk_free = -1;  // bytes where checkpoints go; -1: not known
  int64_t wall_nanos = 0;  // when the status was made
};
// Returns the text of Prometheus's exposition format. A field that is missing, or of another type, has no
// metric.
std::string MetricsText(const Json& status, const HostFacts& facts);

}  // namespace dtrain
