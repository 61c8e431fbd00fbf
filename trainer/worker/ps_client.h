// PsClient: a worker's side of its conversations with every ps: it joins the run, asks, exchanges gradients
// for weights (exchanges.h), and waits for the answers. Every wait ends: at an answer, at net.timeout_ms,
// when a ps is lost (PeerLost names it), or by RolledBack, which Rejoin() answers; after the start that comes
// only where the run goes on without the lost ps. Owner and thread: the worker.
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

  // Says Hello to every ps until all have answered (Conversations::SayHello).
  void Join();
  // Drops what was asked and granted, and joins again.
  void Rejoin();
  // Whether this task had started before it joined again.
  bool returning() const { return peers_.returning(); }
  // Called when ps 0 is given up; may be empty.
  void set_on_lost(std::function<void(TaskId)> on_lost) { peers_.set_on_lost(std::move(on_lost)); }
  // Called by another thread when the run has failed or was stopped; may be empty. Before Join().
  void set_on_abort(std::function<void(ExitCode)> on_abort) {
    peers_.heartbeat().set_on_abort(std::move(on_abort));
  }
  // The run that this task has joined.
  RunId run() const { return peers_.run(); }

  // One request to one ps, and the wait for its answer. `build(builder)` returns the body's offset.
  // The answer is valid until the next call. A `patient` request may take for ever, as long as the ps
  // is heard: it is answered when others have done something.
  template <typename Build>
  const wire::Envelope& Call(size_t ps, bool patient, const char* what, Build&& build) {
    peers_[ps].Ask(run(), std::forward<Build>(build));
    answer_ = nullptr;
    while (answer_ == nullptr || answer_from_ != ps) Wait(patient ? nullptr : what);
    return *answer_;
  }

  // The first weights of this worker: it takes part from here on. In sync it waits for the end of a round,
  // unless it resumes. `parameters` is the whole flat vector.
  void Enter(float* parameters, const Exchanges::Entry& entry);
  // All current weights into `parameters`.
  void Pull(float* parameters);

  // Those of this worker: what needs no wait is asked of them.
  Exchanges& exchanges() { return exchanges_; }
  // Waits for the oldest exchange's weights from every ps; `parameters` then holds them.
  void Collect(float* parameters);
  // Takes in what has arrived already; waits for nothing.
  void CollectArrived(float* parameters);
  // For a worker that waits for something else than a ps: takes in what has arrived, and throws where the run
  // has ended or a ps is lost.
  void Attend();
  // For a worker that is busy for long: throws as Attend(), and takes nothing in.
  void CheckAllAlive();

  size_t ps_count() const { return peers_.size(); }
  // How many workers ps 0 said last that it has; 0 before it said so.
  int workers_here() const { return peers_.heartbeat().workers(); }
  // The newest checkpoint that ps 0 has told of.
  KnownCheckpoint checkpoint() const { return peers_.heartbeat().checkpoint(); }
  // The run has started: from now on a ps that does not know this task is lost.
  void Started() { peers_.Started(); }

  // Tells ps 0 that this task failed; the others then hear it from there.
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
  const milliseconds slice_;  // how often a wait looks at heartbeats, repeats, and room in a queue
  net::Message message_;      // the last received
  const wire::Envelope* answer_ = nullptr;
  size_t answer_from_ = 0;
};

}  // namespace dtrain
