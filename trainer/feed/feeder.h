// Feeder: the thread of worker 0 that serves the other workers their batches (feed_server.h), so that worker
// 0's own long steps do not delay them. Owner: worker 0. It serves until it is destroyed.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "trainer/feed/feed_server.h"

namespace dtrain {

class Feeder {
 public:
  // As for FeedServer. It serves at once, and workers that were faster have asked already: `run_id` is the
  // run that worker 0 has joined.
  Feeder(const Config& config, std::shared_ptr<const DataSet> train, std::unique_ptr<net::Channel> channel,
         uint64_t run_id, Logger& log);
  ~Feeder();
  Feeder(const Feeder&) = delete;
  Feeder& operator=(const Feeder&) = delete;

  void set_run_id(uint64_t run_id) { server_.set_run_id(run_id); }
  // As FeedServer's.
  void Follow(const DataPlan& plan) { server_.Follow(plan); }
  void UseRows(std::shared_ptr<const DataSet> train) { server_.UseRows(std::move(train)); }
  void Start() { server_.Start(); }
  // Throws where the thread has ended by an error: the others get no batches any more.
  void CheckAlive() const;
  // What has gone through the channel up to the last answer.
  net::ChannelStats stats() const;

 private:
  void Run();

  const std::unique_ptr<net::Channel> channel_;
  Logger& log_;
  FeedServer server_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> dead_{false};
  std::atomic<uint64_t> bytes_sent_{0};
  std::atomic<uint64_t> bytes_received_{0};
  std::thread thread_;
};

}  // namespace dtrain
