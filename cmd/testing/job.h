// Jobs for tests of the real binary: free ports, config files and data files in the test's own directory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/testing/files.h"
#include "cmd/testing/process.h"

namespace dtrain::testing {

// A port at 127.0.0.1 that is kept from others until this object is gone, while dtrain may listen at it:
// bound but not listening, with SO_REUSEADDR on both sides.
class ReservedPort {
 public:
  ReservedPort();
  ~ReservedPort();
  ReservedPort(const ReservedPort&) = delete;
  ReservedPort& operator=(const ReservedPort&) = delete;
  const std::string& address() const { return address_; }  // "127.0.0.1:40001"
  // From now on the port listens and never answers.
  void Listen() const;

 private:
  int fd_ = -1;
  std::string address_;
};

// PortBlock: ports that follow each other, kept from others while dtrain may listen at them.
class PortBlock {
 public:
  // `count` ports from one of first, first + step, ... on, at every one of `hosts`, which are 127.x.y.z.
  // `tries`: how many of these blocks there are.
  PortBlock(const std::vector<std::string>& hosts, int count, int first, int step, int tries);
  ~PortBlock();
  PortBlock(const PortBlock&) = delete;
  PortBlock& operator=(const PortBlock&) = delete;

  int first() const { return first_; }

 private:
  bool Take(const std::vector<std::string>& hosts, int count);
  void Free();

  int first_ = 0;
  std::vector<int> sockets_;  // bound, not listening, with SO_REUSEADDR as dtrain's
};

void WriteFile(const std::string& path, const std::string& content);
// What `--result` wrote; null when there is no file, or not JSON.
Json ReadResult(const std::string& path);

// The folder of the data set a9a; empty, with the running case skipped, where it is not there.
std::string A9a();

// Runs `dtrain local --config CONFIG MORE...` to its end. Its result; null, and its log on standard output,
// where it does not exit with 0.
Json RunLocal(const std::string& config, const std::vector<std::string>& more);

// What `dtrain keygen --config CONFIG MORE...` has made: a new directory of keys.
std::string NewKeys(const std::string& config, const std::vector<std::string>& more = {});
// A copy of such a directory in which the task `thief`, "worker-1", has the key of `owner`. Its own list says
// that the key is the thief's: their keys change places there.
std::string StealKey(const std::string& keys, const std::string& thief, const std::string& owner);

// An endless linear job that ends at `steps`; small, without files.
std::string LinearJob(int64_t steps);
// One that only a signal or a failure ends, with a log line for every hundred steps.
std::string EndlessJob();
// One whose steps take about a millisecond each, with a log line for every ten: what is started or killed in
// its middle is so before its end. `train`: of the section, beside the size of a batch.
std::string LongJob(const std::string& train);
// One on drawn digits. `model` and `train`: of the sections; rows for training and for testing.
std::string DigitsJob(const std::string& model, int64_t rows, int64_t test_rows, const std::string& train);

// The failure.detect_s of jobs that lose a task.
constexpr std::chrono::seconds kDetect{2};
// One of its tasks ends with 4 in time, says `lost`, and so does its --result.
void CheckSurvivor(Process& survivor, const std::string& lost, const std::string& result);

// A cluster on ports of its own whose tasks are started one by one, each in a process.
class Cluster {
 public:
  // `job`: the YAML without the cluster section.
  Cluster(int ps, int workers, const std::string& job);
  ~Cluster();  // checks that nobody listens any more and no file was left unfinished
  Cluster(Cluster&&) = delete;
  Cluster& operator=(Cluster&&) = delete;

  // Starts a task; `more` are further arguments.
  std::unique_ptr<Process> Start(const std::string& role, int index,
                                 const std::vector<std::string>& more = {}) const;
  // With another config file.
  std::unique_ptr<Process> StartWith(const std::string& config, const std::string& role, int index,
                                     const std::vector<std::string>& more = {}) const;
  // The job's file again with `job` in place of its own, for the same cluster.
  std::string WriteConfig(const std::string& name, const std::string& job) const;

  const std::string& directory() const { return directory_; }
  const std::string& config() const { return config_; }
  std::string address(const std::string& role, int index) const;

 private:
  std::string directory_;
  std::string config_;
  std::vector<std::unique_ptr<ReservedPort>> ps_;
  int workers_;
};

// LocalJob: a job of `dtrain local` in a directory of its own.
struct LocalJob {
  std::string directory = NewDirectory();
  std::string config = directory + "/job.yaml";
  std::string result = directory + "/result.json";

  explicit LocalJob(const std::string& job) { WriteFile(config, job); }
  ~LocalJob();  // checks that no file was left unfinished
  LocalJob(const LocalJob&) = delete;
  LocalJob& operator=(const LocalJob&) = delete;
  // With --result.
  std::unique_ptr<Process> Start(const std::vector<std::string>& more = {}) const;
};

// The child of `parent` that is this task; -1 when there is none.
pid_t ChildOf(const Process& parent, const std::string& role, int index);

}  // namespace dtrain::testing
