// PsClient: a worker's waits for its ps: it joins the run, asks and gets answers (conversations.h), and
// exchanges gradients for weights (exchanges.h). A wait ends with the answer, at net.timeout_ms, when a ps is
// lost (PeerLost names it), or with RolledBack; call Rejoin() then. After the start RolledBack comes only if
// the run goes on without the lost ps.
// Owner and thread: the worker.
#pragma once

#include <functional>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "net/channel.h"
#include "net/codec.h"
#include "trainer/config/cluster_config.h"
#include "trainer/model/layout.h"
#include "trainer/peer/conversations.h"
#include "trainer/worker/exchanges.h"

namespace dtrain {

class PsClient {
 public:
  PsClient(const Config& config, TaskId self, const Layout& layout, net::Channel& channel,
           net::Transport& transport, Activity& activity, Logger& log);

  // Says Hello to every ps until all have welcomed this task (Conversations::SayHello).
  void Join();
  // Drops open requests and granted steps, and joins again.
  void Rejoin();

  // Sends a request to a ps and waits for the answer, which is valid until the next call. `build(builder)`
  // returns the body's offset. `patient`: the answer depends on other tasks; it may take as long as the ps is
  // heard.
  template <typename Build>
  const wire::Envelope& Call(size_t ps, bool patient, const char* what, Build&& build) {
    peers_[ps].Ask(peers_.run(), std::forward<Build>(build));
    answer_ = nullptr;
    while (answer_ == nullptr || answer_from_ != ps) Wait(patient ? nullptr : what);
    return *answer_;
  }

  // Gets the worker's first weights; it takes part from now on. In sync this waits for the end of a round,
  // unless the worker resumes. `rows`: of a table, those of its first batch; null: it has none.
  void Enter(const Exchanges::Entry& entry, KeyedBatch* rows = nullptr);
  // Gets the weights of the rows of a batch, for an evaluation: the current ones, or those of a snapshot;
  // without rows the flat vector of the snapshot, into `into`. No exchange may be open. False: the snapshot
  // is gone.
  bool Read(KeyedBatch* rows, uint64_t snapshot = 0, float* into = nullptr);
  // Gets all current weights.
  void Pull();
  // Tells every ps that nobody needs to wait for this worker until it enters again.
  void Leave();
  // Waits until every ps has answered the oldest exchange; its weights are then copied.
  void Collect();
  // Takes the messages that have arrived. Does not wait.
  void CollectArrived();
  // For a worker that waits for something other than a ps: takes the messages that have arrived, and throws
  // when the run has ended or a ps is lost.
  void Attend();
  // For a worker that is busy for long: throws like Attend(), but takes no messages.
  void CheckAllAlive();

  // Called now and then during each wait for a ps; may throw.
  void set_on_quiet(std::function<void()> on_quiet) { on_quiet_ = std::move(on_quiet); }

  // For calls that need not wait.
  Conversations& peers() { return peers_; }
  Exchanges& exchanges() { return exchanges_; }

 private:
  void Wait(const char* what);
  bool ReceiveOne(TimePoint deadline);
  void TakeArrived();
  void OnAnswer(size_t ps, const wire::Envelope& envelope);

  const Config& config_;
  net::Channel& channel_;
  Activity& activity_;
  Logger& log_;
  Conversations peers_;  // by ps
  Exchanges exchanges_;
  const milliseconds slice_;  // how often a wait checks heartbeats, repeats, and room in a queue
  std::function<void()> on_quiet_;
  int in_a_row_ = 0;      // messages that Wait() has taken without a look at the clock
  net::Message message_;  // the last one received
  const wire::Envelope* answer_ = nullptr;
  size_t answer_from_ = 0;
};

}  // namespace dtrain
