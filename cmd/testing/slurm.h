// SlurmCluster: Slurm on this machine, with one controller, two nodes (127.0.0.2 and 127.0.0.3) and munge,
// all with directories, ports and a key of their own. Nothing of it is left when it is gone, whatever its
// jobs were doing. Owner: the test. Thread: the test's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cmd/testing/job.h"
#include "cmd/testing/process.h"

namespace dtrain::testing {

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

// Why there can be no SlurmCluster here; empty where there can.
std::string WhyNoSlurm();

class SlurmCluster {
 public:
  SlurmCluster();  // has a controller that takes jobs
  ~SlurmCluster();
  SlurmCluster(const SlurmCluster&) = delete;
  SlurmCluster& operator=(const SlurmCluster&) = delete;

  // `sbatch arguments...` in directory(), with dtrain in PATH. Returns the job's number; empty where it is
  // refused.
  std::string Submit(const std::string& arguments) const;
  // What a command of Slurm prints on standard output.
  std::string Run(const std::string& command) const;
  // Shows the log of a job on its standard error, as it grows. The file need not be there yet.
  std::unique_ptr<Process> Follow(const std::string& path) const;
  // Waits until a job is back in the queue, where it would stay for a while, and lets it start soon.
  void StartAgain(const std::string& job) const;
  // What the daemons have said, for a test that fails.
  std::string Said() const;
  const std::string& directory() const { return directory_; }

 private:
  std::unique_ptr<Process> StartDaemon(const std::string& path,
                                       const std::vector<std::string>& arguments) const;
  void ExpectOfLast(const std::string& text) const;
  void WriteConfig() const;

  const std::string directory_;
  const std::string mark_;  // in the environment of all daemons and jobs
  const PortBlock job_ports_;
  std::vector<std::unique_ptr<ReservedPort>> ports_;  // of the controller, then of the nodes
  std::vector<std::unique_ptr<Process>> daemons_;
};

}  // namespace dtrain::testing
