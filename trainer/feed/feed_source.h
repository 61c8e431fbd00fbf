// FeedSource: the batches of a worker i > 0 with data.split: feed. It asks worker 0 for each batch by its
// local step, a few ahead: the next one is usually here in time, and memory stays flat. A wait ends with a
// batch, at failure.startup_timeout_s or net.timeout_ms, when worker 0 is lost (PeerLost names it), or when
// `attend` throws.
// Owner and thread: the worker; heartbeats have their own thread.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "net/channel.h"
#include "net/codec.h"
#include "trainer/config/choices.h"
#include "trainer/feed/feed_batch.h"
#include "trainer/peer/conversation.h"
#include "trainer/peer/heartbeat.h"
#include "trainer/sets/source.h"

namespace dtrain {

class FeedSource : public BatchSource {
 public:
  // Starts to connect to worker 0. `config`: with the shape of its model. `attend`: called now and then
  // during a wait, to serve the ps.
  FeedSource(const Config& config, int worker, net::Transport& transport, const Activity& activity,
             std::function<void()> attend);

  // The task has joined this run, whose `token` ps 0 has given it: asks anew, and waits for worker 0's first
  // answer. Call it first.
  void Join(uint64_t run_id, uint64_t token);
  // The task has its Start; Follow() is done. Asks anew, since earlier answers may have another scale or
  // order if worker 0 was restarted.
  void Start();
  // The max number of rows in a training batch of the run, at least 1. Valid after the first Join(), and
  // never changes then: a batch with more is refused.
  int64_t max_rows() const { return max_rows_; }
  net::ChannelStats stats() const { return channel_->stats(); }

  bool Next(Batch* batch) override;
  void ReadAhead() override;
  int64_t TakeWaitedNanos() override;
  void Seek(int64_t local_step) override;
  // Call it before Start().
  void Follow(const DataPlan& plan) override;
  const DataPlan& plan() const override { return plan_; }
  int64_t epoch() const override { return epoch_; }
  int64_t batch_in_epoch() const override { return batch_in_epoch_; }
  int64_t batches_per_epoch() const override { return batches_per_epoch_; }

 private:
  // An answer. `batch` points into `message`; null: none.
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
  Conversation feeder_;  // to worker 0
  Heartbeat heartbeat_;
  uint64_t run_id_ = 0;
  uint64_t token_ = 0;
  DataPlan plan_;
  bool started_ = false;  // since Join()
  TimePoint begun_;
  bool heard_ = false;     // worker 0 has answered
  std::string refusal_;    // its last refusal
  int64_t ahead_ = 1;      // the max number of batches asked for and not yet returned by Next()
  int64_t next_ = 0;       // the local step of the next batch
  int64_t arrived_ = 0;    // the local step of the oldest open request
  int64_t asked_ = 0;      // the first local step that is not asked for
  bool end_seen_ = false;  // of the worker's last epoch
  std::array<Arrived, kMaxBatchesAhead> slots_;  // of the steps [next_, asked_), by local step modulo size
  Arrived current_;                              // the batch that Next() returned
  std::vector<int32_t> aligned_;                 // its values, if they came at an unaligned address
  FedReader reader_;
  int64_t max_rows_ = 0;      // 0: nothing was heard of worker 0 yet
  int64_t max_bytes_ = 0;     // of a batch of max_rows_, as those that were here lead to expect
  Clock::duration waited_{};  // since the last TakeWaitedNanos()
  int64_t epoch_ = 0;
  int64_t batch_in_epoch_ = 0;
  int64_t batches_per_epoch_ = 0;
};

}  // namespace dtrain
