// FeedSource: the batches of a worker i > 0 with data.split: feed. It asks worker 0 for each by its local
// step, a few ahead, so that the next one is normally here before it is needed and memory stays flat. Every
// wait ends: with a batch, at failure.startup_timeout_s or net.timeout_ms, when worker 0 is lost (PeerLost
// names it), or when `attend` throws.
// Owner and thread: the worker. Heartbeats have their own thread.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "net/channel.h"
#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/data/source.h"
#include "trainer/feed/feed_batch.h"
#include "trainer/peer/conversation.h"
#include "trainer/peer/heartbeat.h"

namespace dtrain {

class FeedSource : public BatchSource {
 public:
  // Begins to connect to worker 0. `config`: with its model's shape. `attend` is called now and then during a
  // wait, to look after the ps.
  FeedSource(const Config& config, int worker, net::Transport& transport, const Activity& activity,
             std::function<void()> attend);

  // This task has joined that run: asks anew, and waits for worker 0's first answer. Nothing else before.
  void Join(uint64_t run_id);
  // This task has its Start, and with that Follow() is done. Asks anew: what worker 0 has answered before may
  // be scaled or dealt in another way, if it was restarted.
  void Start();
  // Rows of the run's largest training batch. After Join().
  int64_t max_rows() const { return max_rows_; }
  net::ChannelStats stats() const { return channel_->stats(); }

  bool Next(Batch* batch) override;
  void ReadAhead() override;
  int64_t TakeWaitedNanos() override;
  void Seek(int64_t local_step) override;
  // Before Start().
  void Follow(const DataPlan& plan) override;
  const DataPlan& plan() const override { return plan_; }
  int64_t epoch() const override { return epoch_; }
  int64_t batch_in_epoch() const override { return batch_in_epoch_; }
  int64_t batches_per_epoch() const override { return batches_per_epoch_; }

 private:
  // An answer; `batch` points into `message`, and is null where there is none.
  struct Arrived {
    net::Message message;
    const wire::DataBatch* batch = nullptr;
  };

  void BeginAt(int64_t local_step);
  void Ask();
  void AwaitNext();
  bool ReceiveOne(TimePoint deadline);
  void OnBatch(const wire::Envelope& envelope, const wire::DataBatch& batch, net::Message message);
  void TakeIn(const wire::DataBatch& batch, net::Message message);
  void OnRefuse(const wire::Refuse& refuse);
  void CheckAlive(TimePoint now) const;
  std::string Hints() const;
  net::TensorView AlignedValues(const Arrived& arrived);
  Arrived& SlotOf(int64_t local_step) { return slots_[static_cast<size_t>(local_step) % slots_.size()]; }

  const Config& config_;
  const int worker_;
  const std::function<void()> attend_;
  const std::unique_ptr<net::Channel> channel_;
  Conversation feeder_;  // with worker 0
  Heartbeat heartbeat_;
  uint64_t run_id_ = 0;
  DataPlan plan_;
  bool started_ = false;  // since Join()
  TimePoint begun_;
  bool heard_ = false;                           // worker 0 has answered
  std::string refusal_;                          // its latest words why not
  int64_t ahead_ = 1;                            // batches asked for and not yet returned by Next(), at most
  int64_t next_ = 0;                             // local step of the next batch
  int64_t arrived_ = 0;                          // the step of the oldest open request
  int64_t asked_ = 0;                            // of the first that is not asked for
  bool end_seen_ = false;                        // of the worker's epochs
  std::array<Arrived, kMaxBatchesAhead> slots_;  // of [next_, asked_), by local step
  Arrived current_;                              // what Next() returned
  std::vector<int32_t> aligned_;                 // its values, where they arrived at an odd address
  std::vector<int64_t> numbers_;                 // 0, 1, ... max_rows_ - 1
  int64_t max_rows_ = 0;
  Clock::duration waited_{};  // since it was told last
  int64_t epoch_ = 0;
  int64_t batch_in_epoch_ = 0;
  int64_t batches_per_epoch_ = 0;
};

}  // namespace dtrain
