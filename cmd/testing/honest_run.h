// HonestRun: a run of the real binary that goes on while a test attacks it: every ps of the spec and worker
// 0, by hand. Worker 1 of the spec is not started, so that its index is free. Owner: the test. Thread: the
// test's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/testing/files.h"
#include "cmd/testing/attacker.h"
#include "cmd/testing/job.h"
#include "cmd/testing/process.h"
#include "trainer/config/config.h"
#include "trainer/config/load.h"

namespace dtrain::testing {

// An endless job with a log line for each `log_every` steps. `model` and `data` are YAML.
struct HonestJob {
  std::string model = "model: {kind: linear, inputs: 2, outputs: 1}\n";
  std::string data = "data: {train: {format: synthetic, name: linear}}\n";
  int log_every = 200;
  std::string more;               // further sections
  std::vector<std::string> sets;  // of --set, for both tasks
};

class HonestRun {
 public:
  // Starts both tasks and waits for the first steps. `shell_before_ps`: commands of the shell that becomes
  // ps 0; empty: none.
  explicit HonestRun(const HonestJob& job = {}, const std::string& shell_before_ps = "");
  HonestRun(const HonestRun&) = delete;
  HonestRun& operator=(const HonestRun&) = delete;

  Process& ps() { return *ps_; }
  Process& worker() { return *worker_; }
  const Cluster& cluster() const { return cluster_; }
  const std::string& address() const { return address_; }  // of ps 0
  const Config& config() const { return config_; }
  RunId run() const { return run_; }  // as the log of ps 0 says

  // A Hello as dtrain would say it as worker 1.
  HelloWords Words() const;

  // The worker takes further steps, and both tasks are alive.
  void CheckGoesOn();
  // What ps 0 has grown by since the first steps, at its largest, is within the promise for so many
  // connections; what it has grown by.
  void CheckMemory(int connections);
  int64_t GrownMib() const;  // 0 with a sanitizer, which keeps freed memory
  // SIGTERM: the run is saved and ends, and nothing of it is lost.
  void CheckEnds();

 private:
  int64_t LocalStep();

  const std::string checkpoints_ = NewDirectory() + "/ckpt";
  const int log_every_;
  Cluster cluster_;
  const std::string address_;
  const Config config_;
  std::unique_ptr<Process> ps_;
  std::unique_ptr<Process> worker_;
  RunId run_;
  int64_t undisturbed_kib_ = 0;
};

// What a ps may grow by for so many connections.
int64_t PromisedMib(int connections);

// `dtrain inspect` verifies the checkpoint that the text names last behind `before`; false: none is named.
bool NamesGoodCheckpoint(const std::string& text, const std::string& before);

// How often a text has the part.
int Count(const std::string& text, const std::string& part);

}  // namespace dtrain::testing
