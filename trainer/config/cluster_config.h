// The tasks of a cluster, and how they reach, trust and lose each other: cluster, failure, net and security
// of the YAML file; names and addresses of tasks. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/compress.h"
#include "trainer/config/choices.h"

namespace dtrain {

struct ClusterConfig {
  std::vector<std::string> ps;         // addresses, "host:port"
  std::vector<std::string> worker;     // worker 0 is the chief
  std::optional<int64_t> min_workers;  // unset: all
};

// Which task of the cluster this process is.
struct TaskId {
  Role role = Role::kWorker;
  int index = 0;
};

// The longest of the growing pauses before a task is started again.
constexpr int64_t kMaxRestartPauseS = 16;

struct FailureConfig {
  double detect_s = 10;
  double startup_timeout_s = 120;
  WorkerLost worker_lost = WorkerLost::kContinue;
  PsLost ps_lost = PsLost::kWait;
  double wait_s = 300;
  int64_t restarts = 0;  // of one child of `dtrain local`
  OnSigterm on_sigterm = OnSigterm::kSaveAndEnd;
  double grace_s = 30;
  int64_t peer_lost_exit = 4;
  int64_t replicas = 0;        // of each ps but ps 0, in the memory of the next ps
  int64_t replica_check = 60;  // pieces of a replica that are compared, a minute
};

// In which form the values of tensors travel. `pull` is never kTopk.
struct CompressConfig {
  net::Compression push = net::Compression::kNone;  // of gradients
  net::Compression pull = net::Compression::kNone;  // of the weights that steps are taken with
};

struct NetConfig {
  std::string bind;  // empty: the spec's address
  int64_t timeout_ms = 30000;
  int64_t max_message_mb = 1024;
  bool checksum = false;
  CompressConfig compress;
};

// The value of security.keys with which the parent of the tasks makes their keys.
constexpr char kAutoKeys[] = "auto";

struct SecurityConfig {
  bool insecure = false;
  std::string keys;  // the directory of key files, or "auto"; empty: no keys
};

// "worker 1".
std::string TaskName(TaskId task);
// "worker 1 (10.0.0.4:9002)", from the spec.
std::string TaskNameAndAddress(const ClusterConfig& cluster, TaskId task);
// "10.0.0.3:9002"; "10.0.0.3" where the port is 0, since nobody connects there; empty where that leaves only
// this machine itself, as for the workers of `dtrain local`. The task is one of the cluster.
std::string KnownAddress(const ClusterConfig& cluster, TaskId task);
// "2 workers 10.0.0.3:9002 10.0.0.4:9002" of cluster.worker; "-" stands for a worker without a known address,
// and the addresses are left out where no worker has one.
std::string WorkersText(const ClusterConfig& cluster);

// What the config demands of an address, on top of net/address.h.

// Empty for a good "host:port"; otherwise rule and remedy: "an address needs a port. Write ...".
std::string AddressProblem(const std::string& text);

// The same text for two spellings of one address; empty where the system chooses the port, since two such
// are never one. The address is a good one.
std::string AddressIdentity(const std::string& address);

// "10.0.0.1" of "10.0.0.1:9001"; IPv6 without brackets. The address is a good one.
std::string HostOf(const std::string& address);

// Whether a host, as HostOf() gives it, means every machine itself: 127.0.0.0/8, ::1, localhost.
bool IsLoopbackHost(const std::string& host);

// Whether others can connect to it: 0.0.0.0 and [::] are for listening only. The address is a good one.
bool CanConnect(const std::string& address);

}  // namespace dtrain
