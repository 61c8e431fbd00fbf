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
#include "trainer/config/choices.h"

namespace dtrain {

class MetricsPort;

class RunMonitor {
 public:
  static constexpr char kStatus[] = "status.json";
  static constexpr char kToken[] = "status.token";

  // `directory`: of the run; empty: it has none. If that is not on this host or cannot be written, nothing is
  // kept there, and token() is empty. Throws UserError when the port or its password cannot be used.
  RunMonitor(const Config& config, const std::string& directory, Logger& log);
  ~RunMonitor();  // hands on what was put last
  RunMonitor(const RunMonitor&) = delete;
  RunMonitor& operator=(const RunMonitor&) = delete;

  // Whoever knows it may ask the run itself (dtrain status).
  const std::string& token() const { return token_; }
  // Where the metrics are told, "127.0.0.1:8901"; empty: there is no port.
  std::string address() const;
  // Takes the newest status; never waits.
  void Put(std::string json);

 private:
  void OpenPort();
  void Run();
  void HandOn(const std::string& json);
  std::string MetricsOnPort();

  const Config& config_;
  const std::string directory_;
  Logger& log_;
  std::string token_;
  std::unique_ptr<MetricsPort> port_;
  bool file_failed_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string next_;     // empty: the newest is handed on
  std::string metrics_;  // the text of the newest
  bool over_ = false;
  std::thread thread_;
};

// Throws the UserError of a run whose port for metrics, or its password, cannot be used. For ps 0's machine.
void CheckMetrics(const Config& config);

}  // namespace dtrain
