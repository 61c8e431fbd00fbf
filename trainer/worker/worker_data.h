// WorkerData: where a worker's batches come from: its own part of the data, or worker 0, which has a server
// for the others then (data.split: feed).
// Owner and thread: the worker.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "net/channel.h"
#include "trainer/config/config.h"
#include "trainer/data/data_plan.h"
#include "trainer/data/load_data.h"
#include "trainer/data/source.h"
#include "trainer/feed/feed_server.h"
#include "trainer/feed/feed_source.h"
#include "trainer/peer/form_message.h"
#include "trainer/peer/heartbeat.h"

namespace dtrain {

class WorkerData {
 public:
  // `attend`: called now and then while this waits for worker 0, to look after the ps.
  WorkerData(const Config& config, int worker, net::Transport& transport, const Activity& activity,
             std::function<void()> attend, Logger& log);

  // Worker 0, with data.split: feed: it serves the others through `channel`, which is bound.
  void FeedOthersThrough(std::unique_ptr<net::Channel> channel) { feed_channel_ = std::move(channel); }
  // After every joining: what was loaded stays, and batches are dealt within one run.
  void Join(uint64_t run_id);

  // After Join():
  BatchSource& source() { return *source_; }
  const LoadedData& loaded() const { return loaded_; }
  // What ps 0 has to hear of the data; unset: nothing, another worker feeds this one.
  std::optional<DataFacts> Facts();
  // Of the largest batch of one device, of training or of an evaluation.
  int64_t MaxRows() const;
  // The data goes on as ps 0 says: dealt as before, and scaled as the weights were trained with it. True:
  // loaded() and source() are new.
  bool TakeUp(const wire::Start& start);

  // Of worker 0 that feeds the others; else nothing happens.
  void CheckFeeder() const {
    if (feeder_) feeder_->CheckAlive();
  }
  // What has gone through the channels of its own.
  net::ChannelStats fed_stats() const { return fed_ != nullptr ? fed_->stats() : net::ChannelStats(); }
  net::ChannelStats feeding_stats() const { return feeder_ ? feeder_->stats() : net::ChannelStats(); }

 private:
  void Open(uint64_t run_id);
  bool UseScale(const FittedScale& scale);
  void CompareRows(const DataFingerprint& chief);

  const Config& config_;
  const int worker_;
  net::Transport& transport_;
  const Activity& activity_;
  const std::function<void()> attend_;
  Logger& log_;
  LoadedData loaded_;
  DataFingerprint fingerprint_;
  bool told_other_rows_ = false;
  bool told_too_long_ = false;
  std::unique_ptr<BatchSource> source_;
  FeedSource* fed_ = nullptr;                   // source_, where worker 0 deals out the batches
  std::unique_ptr<net::Channel> feed_channel_;  // of worker 0, where it does so
  std::unique_ptr<Feeder> feeder_;
};

}  // namespace dtrain
