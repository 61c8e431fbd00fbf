// ClosingReport: what a worker tells the ps when it has taken its last step, and the chief of the whole run.
// Owner and thread: the worker. Messages: docs/wire.md, Done and Report.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "net/channel.h"
#include "trainer/model/layout.h"
#include "trainer/task/run_summary.h"
#include "trainer/worker/evaluate.h"
#include "trainer/worker/ps_client.h"
#include "trainer/worker/staleness.h"
#include "trainer/worker/step_times.h"
#include "trainer/worker/worker_data.h"

namespace dtrain {

// Where the time of its steps went.
WorkerFigures FiguresOf(const StepTimes& times, const Staleness& staleness);

class ClosingReport {
 public:
  ClosingReport(const Layout& layout, PsClient& client, net::Channel& channel, const WorkerData& data)
      : layout_(layout), client_(client), channel_(channel), data_(data) {}

  struct Own {
    int64_t local_steps = 0;
    double loss = 0;               // mean over its last steps
    int64_t first_step_nanos = 0;  // wall clock
    int64_t last_step_nanos = 0;
    double accuracy = std::numeric_limits<double>::quiet_NaN();  // of its own evaluation
    WorkerFigures figures;
  };
  // To every ps; each is waited for.
  void SayDone(const Own& own);
  // As the chief, after SayDone(): completes `report` by what is known of the final weights, all of them, and
  // of the traffic.
  void Report(const float* parameters, RunSummary report);

 private:
  std::vector<ModelPart> AskForChecksums(RunSummary* report);

  const Layout& layout_;
  PsClient& client_;
  net::Channel& channel_;
  const WorkerData& data_;
  net::ChannelStats told_;  // what ps 0 knows of the bytes
};

}  // namespace dtrain
