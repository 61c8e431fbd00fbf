// WorkerData: the source of a worker's batches: its own part of the data or, with data.split: feed, worker 0,
// which then runs a server for the others.
// Owner and thread: the worker.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "net/channel.h"
#include "trainer/config/choices.h"
#include "trainer/feed/feed_server.h"
#include "trainer/feed/feed_source.h"
#include "trainer/model/layout.h"
#include "trainer/order/data_plan.h"
#include "trainer/order/lease.h"
#include "trainer/peer/form_message.h"
#include "trainer/peer/heartbeat.h"
#include "trainer/sets/load_data.h"
#include "trainer/sets/source.h"
#include "trainer/worker/keyed_source.h"

namespace dtrain {

class WorkerData {
 public:
  // Batches are numbered by the rows of `layout`'s table, if it has one. It outlives this.
  // `attend`: called now and then during a wait for worker 0, to serve the ps.
  WorkerData(const Config& config, int worker, const Layout& layout, net::Transport& transport,
             const Activity& activity, std::function<void()> attend, Logger& log);

  // The columns of data.train as they were fitted before (DataShape::form), so that it is not read for them
  // again.
  void UseColumns(InputForm form) { columns_ = std::move(form); }
  // From now on a thread reads batches of sparse rows ahead, where they come neither from a pipe nor from
  // worker 0. Call it before Join().
  void ReadOnThread() { reads_on_thread_ = true; }
  // Takes rows from what the tasks of this process share.
  void Share(SharedData* shared) { shared_ = shared; }
  // Makes worker 0 serve the other workers through `channel`, which is bound (data.split: feed).
  void FeedOthersThrough(std::unique_ptr<net::Channel> channel) { feed_channel_ = std::move(channel); }
  // Call this after each joining. Loaded data stays; batches are dealt within one run. `feed_token`: from the
  // Welcome of ps 0.
  void Join(uint64_t run_id, uint64_t feed_token);

  // Valid after Join().
  BatchSource& source() { return *source_; }
  // The same with a table; else null.
  KeyedSource* keyed() { return keyed_; }
  const LoadedData& loaded() const { return *loaded_; }
  // How batches are numbered by the rows of a table.
  BatchForm batch_form() const;
  // With data.split: dynamic: the batches from lease.step on are of this lease. One that is known is nothing
  // new.
  void Take(const Lease& lease);
  // Whether the batch of a local step is known, or may be without a lease.
  bool HasBatch(int64_t local_step) const {
    return !leased_ || (!leases_.empty() && local_step < EndOf(leases_.back()));
  }
  // By ps: so many blocks of the gradient of a local step are in the weights already; empty: none.
  const std::vector<uint32_t>& TakenOf(int64_t local_step);
  // The rows of data.train that were left out. Call it at the end of the run: worker 0 warns of those that it
  // has not told when the data was loaded.
  SkippedRows Skipped();
  // What ps 0 must know about the data; unset: another worker feeds this one.
  std::optional<DataFacts> Facts();
  // The max number of rows in a batch of one device, in training or evaluation.
  int64_t MaxRows() const;
  // Takes up the data as ps 0 says: with the batches dealt as before, and the scale and form of columns
  // that the weights were trained with. True: loaded() and source() are new.
  bool TakeUp(const wire::Start& start);

  // Throws when the feeder of worker 0 has failed.
  void CheckFeeder() const {
    if (feeder_) feeder_->CheckAlive();
  }
  // The bytes of the channels that only data uses.
  net::ChannelStats fed_stats() const { return fed_ != nullptr ? fed_->stats() : net::ChannelStats(); }
  net::ChannelStats feeding_stats() const { return feeder_ ? feeder_->stats() : net::ChannelStats(); }

 private:
  int64_t EndOf(const Lease& lease) const { return lease.step + lease.Steps(devices_); }
  void Open(uint64_t run_id, uint64_t feed_token);
  void MakeSource();
  void Key();
  void TakeScale(const std::optional<InputForm>& form);
  std::vector<std::string> Environment() const;
  bool UseFit(const InputForm& fit);
  void CompareRows(const DataFingerprint& chief);

  const Config& config_;
  const int worker_;
  const Layout& layout_;
  net::Transport& transport_;
  const Activity& activity_;
  const std::function<void()> attend_;
  Logger& log_;
  InputForm columns_;
  bool reads_on_thread_ = false;
  SharedData own_;
  SharedData* shared_ = &own_;
  std::shared_ptr<const LoadedData> loaded_ = std::make_shared<const LoadedData>();  // fed: nothing
  DataFingerprint fingerprint_;
  bool told_other_rows_ = false;
  bool told_too_long_ = false;
  const bool leased_;
  const int64_t devices_;
  std::deque<Lease> leases_;  // with data.split: dynamic, the oldest first
  std::unique_ptr<BatchSource> source_;
  KeyedSource* keyed_ = nullptr;                // source_, with a table
  FeedSource* fed_ = nullptr;                   // in source_, when worker 0 deals out the batches
  std::unique_ptr<net::Channel> feed_channel_;  // of worker 0 until it makes the feeder
  std::unique_ptr<Feeder> feeder_;
};

}  // namespace dtrain
