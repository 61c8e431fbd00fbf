// RunMonitor: hands the status of a run (leader/status_report.h) on to those who watch it: status.json in the
// run's directory, a text file of metrics, and the HTTP port for Prometheus. Threads of its own do all that,
// so that neither a slow disk nor a slow reader holds the run. Owner: RunTask of ps 0. Thread: any.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/log.h"
#include "trainer/config/config.h"

namespace prometheus {
class Exposer;
}

namespace dtrain {

class RunMetrics;

class RunMonitor {
 public:
  static constexpr char kStatus[] = "status.json";
  static constexpr char kToken[] = "status.token";

  // Throws UserError when the port, its password or the file of metrics cannot be used. If the run's
  // directory is not on this host or cannot be written, nothing is kept there, and token() is empty.
  RunMonitor(const Config& config, Logger& log);
  ~RunMonitor();  // hands on what was put last
  RunMonitor(const RunMonitor&) = delete;
  RunMonitor& operator=(const RunMonitor&) = delete;

  // Whoever knows it may ask the run itself (dtrain status).
  const std::string& token() const { return token_; }
  // The port of the metrics; 0: there is none.
  int port() const;
  // Takes the newest status; never waits.
  void Put(std::string json);

 private:
  void OpenPort();
  void Run();
  void HandOn(const std::string& json);

  const Config& config_;
  Logger& log_;
  std::string token_;
  std::shared_ptr<RunMetrics> metrics_;
  std::unique_ptr<prometheus::Exposer> port_;
  bool file_failed_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string next_;  // empty: the newest is handed on
  bool over_ = false;
  std::thread thread_;
};

}  // namespace dtrain
