#include "trainer/feed/feeder.h"

#include <utility>

#include "base/error.h"

namespace dtrain {
namespace {

// How long the end of a run may wait for this thread.
constexpr milliseconds kTick{20};

}  // namespace

Feeder::Feeder(const Config& config, std::shared_ptr<const DataSet> train,
               std::unique_ptr<net::Channel> channel, uint64_t run_id, Logger& log)
    : channel_(std::move(channel)), log_(log), server_(config, std::move(train), *channel_, log) {
  server_.set_run_id(run_id);
  thread_ = std::thread([this] { Run(); });
}

Feeder::~Feeder() {
  stop_ = true;
  thread_.join();
}

net::ChannelStats Feeder::stats() const { return {bytes_sent_, bytes_received_, 0}; }

// Where it cannot go on, the others miss its heartbeats and end by the name of worker 0.
void Feeder::Run() {
  try {
    while (!stop_) {
      server_.Serve(Clock::now() + kTick);
      const net::ChannelStats stats = channel_->stats();
      bytes_sent_.store(stats.bytes_sent, std::memory_order_relaxed);
      bytes_received_.store(stats.bytes_received, std::memory_order_relaxed);
    }
  } catch (const std::exception& error) {
    log_.Error("the other workers get no batches any more: {}", FailureText(error));
  }
}

}  // namespace dtrain
