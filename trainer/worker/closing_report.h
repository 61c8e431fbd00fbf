// ClosingReport: what a worker tells the ps when it has taken its last step, and what it has sent since.
// Owner and thread: the worker. Messages: docs/wire.md, Done.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "net/channel.h"
#include "trainer/hooks/step_stats.h"
#include "trainer/result/run_summary.h"
#include "trainer/worker/ps_client.h"
#include "trainer/worker/worker_data.h"

namespace dtrain {

// Where the time of its steps went.
WorkerFigures FiguresOf(const StepTimes& times, const Staleness& staleness);

class ClosingReport {
 public:
  ClosingReport(PsClient& client, net::Channel& channel, const WorkerData& data)
      : client_(client), channel_(channel), data_(data) {}

  struct Own {
    int64_t local_steps = 0;
    double loss = 0;               // mean over its last steps
    int64_t first_step_nanos = 0;  // wall clock
    int64_t last_step_nanos = 0;
    double accuracy = std::numeric_limits<double>::quiet_NaN();  // of its own evaluation
    WorkerFigures figures;
    std::string device;
    double first_loss = std::numeric_limits<double>::quiet_NaN();  // see Done
  };
  // To every ps; each is waited for.
  void SayDone(const Own& own);
  // Headers and payloads that SayDone() has not told of, those of the batches that it fed to others among
  // them.
  net::ChannelStats SinceDone() const;

 private:
  PsClient& client_;
  net::Channel& channel_;
  const WorkerData& data_;
  net::ChannelStats told_;  // what ps 0 knows of the bytes
};

}  // namespace dtrain
