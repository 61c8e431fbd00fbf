// RunMetrics: the status of a run (leader/status_report.h) as metrics of Prometheus, for its text format and
// for the HTTP port. docs/watching.md lists them. Thread: any.
#pragma once

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "base/json.h"

namespace dtrain {

// What this host knows beside the status.
struct HostFacts {
  std::string run;         // the name of the run, a label of all metrics; empty: none
  int64_t disk_free = -1;  // bytes where checkpoints go; -1: not known
  int64_t wall_nanos = 0;  // when the status was made
};
// A field that is missing, or of another type, has no metric.
std::vector<prometheus::MetricFamily> MetricsOf(const Json& status, const HostFacts& facts);

// The text of Prometheus's exposition format.
std::string MetricsText(const std::vector<prometheus::MetricFamily>& metrics);

class RunMetrics : public prometheus::Collectable {
 public:
  void Set(std::vector<prometheus::MetricFamily> metrics);
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  mutable std::mutex mutex_;
  std::vector<prometheus::MetricFamily> metrics_;
};

}  // namespace dtrain
