// A real ps in a process of its own, and workers' conversations with it without their steps: parameters go
// there and back, and no model is computed. Owner and thread: a benchmark's, see each.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "net/channel.h"
#include "net/lent_buffer.h"
#include "trainer/config/cluster_config.h"
#include "trainer/keys/run_keys.h"
#include "trainer/peer/heartbeat.h"
#include "trainer/worker/ps_client.h"

namespace dtrain::bench {

// Returns a config with one layer of that many weights, a bias among them, on the ps at `address`.
Config StreamConfig(int64_t parameters, const std::string& address, int64_t workers);

// Returns a logger of warnings.
std::unique_ptr<Logger> WarningsOf(TaskId task);

// Returns the transport of one task. `keys`: null: it has none.
std::unique_ptr<net::Transport> StreamTransport(const Config& config, TaskId task, const RunKeys* keys);

// Runs ps 0 until the run ends, on the caller's thread. `listening_fd`: -1: it binds the config's address.
void RunStreamPs(const Config& config, net::Transport& transport, int listening_fd);

// Starts a process that does so on a socket that listens, which it takes over. Returns its id. Call this
// before there are threads. The process ends at the latest with the caller's.
pid_t StartStreamPs(const Config& config, int listening_fd, const RunKeys* keys);

// StreamWorker: a worker's conversation without its steps. Thread: one.
class StreamWorker {
 public:
  StreamWorker(const Config& config, int index, net::Transport& transport, Logger& log);

  // Returns when ps 0 has told all workers to start.
  void Begin();
  // Pushes a gradient and waits for the weights. Takes one of the run's steps.
  void Exchange();
  void Pull() { client_.Pull(); }
  // Returns when the run has ended everywhere.
  void End();
  net::ChannelStats stats() const { return channel_->stats(); }

 private:
  Activity activity_;
  const Layout layout_;
  const std::unique_ptr<net::Channel> channel_;
  PsClient client_;
  const net::LentBuffer gradient_;
  std::vector<float> parameters_;
};

}  // namespace dtrain::bench
