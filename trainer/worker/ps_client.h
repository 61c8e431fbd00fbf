// PsClient: a worker's side of the conversations with every ps: it joins the run, sends requests, exchanges
// gradients for weights (exchanges.h), and waits for the answers. A wait ends with the answer, at
// net.timeout_ms, when a ps is lost (PeerLost names it), or with RolledBack; call Rejoin() then. After the
// start RolledBack comes only if the run goes on without the lost ps.
// Owner and thread: the worker.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "net/channel.h"
#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"
#include "trainer/peer/conversations.h"
#include "trainer/result/run_summary.h"
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
  // Whether this task had started before it joined again.
  bool returning() const { return peers_.returning(); }
  // Called when ps 0 is given up; may be empty.
  void set_on_lost(std::function<void(TaskId)> on_lost) { peers_.set_on_lost(std::move(on_lost)); }
  // Called by another thread when the run has failed or was stopped; may be empty. Set it before Join().
  void set_on_abort(std::function<void(ExitCode)> on_abort) {
    peers_.heartbeat().set_on_abort(std::move(on_abort));
  }
  RunId run() const { return peers_.run(); }

  // Sends a request to a ps and waits for the answer, which is valid until the next call. `build(builder)`
  // returns the body's offset. `patient`: the answer depends on other tasks; it may take as long as the ps is
  // heard.
  template <typename Build>
  const wire::Envelope& Call(size_t ps, bool patient, const char* what, Build&& build) {
    peers_[ps].Ask(run(), std::forward<Build>(build));
    answer_ = nullptr;
    while (answer_ == nullptr || answer_from_ != ps) Wait(patient ? nullptr : what);
    return *answer_;
  }

  // Gets the worker's first weights; it takes part from now on. In sync this waits for the end of a round,
  // unless the worker resumes. `parameters`: the whole flat vector.
  void Enter(float* parameters, const Exchanges::Entry& entry);
  // Gets all current weights.
  void Pull(float* parameters);

  // For calls that need not wait.
  Exchanges& exchanges() { return exchanges_; }
  // Waits until every ps has answered the oldest exchange; its weights are then in `parameters`.
  void Collect(float* parameters);
  // Takes the messages that have arrived. Does not wait.
  void CollectArrived(float* parameters);
  // For a worker that waits for something other than a ps: takes the messages that have arrived, and throws
  // when the run has ended or a ps is lost.
  void Attend();
  // For a worker that is busy for long: throws like Attend(), but takes no messages.
  void CheckAllAlive();

  size_t ps_count() const { return peers_.size(); }
  // The number of workers that ps 0 last reported; 0: none yet.
  int workers_here() const { return peers_.heartbeat().workers(); }
  // The newest checkpoint that ps 0 has reported.
  KnownCheckpoint checkpoint() const { return peers_.heartbeat().checkpoint(); }
  // The run has started: from now on a ps that does not know this task is lost.
  void Started() { peers_.Started(); }

  // Tells ps 0, which tells the others, that this task has failed.
  void Abort(int exit_code, const std::string& text, const RunSummary* summary) {
    peers_.Abort(exit_code, text, summary);
  }
  void SayBye() { peers_.SayBye(); }

 private:
  void Wait(const char* what);
  bool ReceiveOne(TimePoint deadline);
  void OnAnswer(size_t ps, const wire::Envelope& envelope);

  const Config& config_;
  net::Channel& channel_;
  Activity& activity_;
  Logger& log_;
  Conversations peers_;  // by ps
  Exchanges exchanges_;
  const milliseconds slice_;  // how often a wait checks heartbeats, repeats, and room in a queue
  net::Message message_;      // the last one received
  const wire::Envelope* answer_ = nullptr;
  size_t answer_from_ = 0;
};

}  // namespace dtrain
