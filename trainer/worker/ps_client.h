// PsClient: a worker's conversations with every ps: joining, numbered requests, and the waits for their
// answers and for those to its exchanges (exchanges.h).
// Every wait ends: at an answer, at net.timeout_ms, or when a ps is lost (PeerLost names it).
// Owner and thread: the worker.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "net/channel.h"
#include "net/codec.h"
#include "net/lent_buffer.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"
#include "trainer/peer/abort.h"
#include "trainer/peer/activity.h"
#include "trainer/peer/heartbeat.h"
#include "trainer/peer/run_id.h"
#include "trainer/result/run_summary.h"
#include "trainer/worker/exchanges.h"
#include "trainer/worker/registrations.h"

namespace dtrain {

class PsClient {
 public:
  PsClient(const Config& config, TaskId self, const Layout& layout, net::Channel& channel,
           net::Transport& transport, Activity& activity, Logger& log);

  // Thrown where a ps is lost or does not know this task any more, because it or another ps was restarted:
  // to be answered by Rejoin(). After the start only where the run goes on without that ps (RunRecovers).
  struct Restarted {
    std::string why;
  };

  // Says Hello to every ps until all have answered; a status line every 5 s. Throws PeerLost at
  // failure.startup_timeout_s, after a start failure.wait_s; UserError when a ps refuses this task.
  void Join();
  // Drops what was asked and granted, and joins again.
  void Rejoin();
  // Whether this task had started before it joined again.
  bool returning() const { return started_once_; }
  // Called when ps 0 is given up; may be empty.
  void set_on_lost(std::function<void(TaskId)> on_lost) { on_lost_ = std::move(on_lost); }
  // Called by another thread when the run has failed or was stopped; may be empty. Before Join().
  void set_on_abort(std::function<void(ExitCode)> on_abort) { heartbeat_->set_on_abort(std::move(on_abort)); }
  // The run that this task has joined.
  RunId run() const { return run_; }

  // One request to one ps, and the wait for its answer. `build(builder)` returns the body's offset.
  // The answer is valid until the next call. A `patient` request may take for ever, as long as the ps
  // is heard: it is answered when others have done something.
  template <typename Build>
  const wire::Envelope& Call(size_t ps, bool patient, const char* what, Build&& build) {
    PeerLink& link = registrations_.link(ps);
    const uint64_t request = link.NextRequest();
    link.Send(request, encoder_.Finish(run_.Envelope(request), build(encoder_.Begin())));
    return AwaitAnswer(ps, patient, what);
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

  size_t ps_count() const { return registrations_.size(); }
  // How many workers ps 0 said last that it has; 0 before it said so.
  int workers_here() const { return heartbeat_->workers(); }
  // The newest checkpoint that ps 0 has told of.
  KnownCheckpoint checkpoint() const { return heartbeat_->checkpoint(); }
  // The run has started: from now on a ps that does not know this task is lost.
  void Started() {
    running_ = started_once_ = true;
    returns_since_ = TimePoint::max();
  }

  // Tells ps 0 that this task failed; the others then hear it from there.
  void Abort(int exit_code, const std::string& text, const RunSummary* summary);
  void SayBye();

 private:
  // A lost ps takes the run back to a checkpoint.
  bool RunRecovers() const { return config_.failure.ps_lost == PsLost::kWait && registrations_.saves(); }
  const wire::Envelope& AwaitAnswer(size_t ps, bool patient, const char* what);
  bool ReceiveOne(TimePoint deadline);
  void Handle(size_t ps, const wire::Envelope& envelope);
  void OnQuiet(bool patient, const char* what);
  void CheckAlive(size_t ps);
  [[noreturn]] void OnLost(size_t ps);
  void ThrowIfAborted();
  void OnRefuse(size_t ps, const wire::Envelope& envelope);

  const Config& config_;
  const TaskId self_;
  net::Channel& channel_;
  Activity& activity_;
  Logger& log_;
  const milliseconds slice_;  // how often a wait looks at heartbeats, repeats, and room in a queue
  net::Encoder encoder_;
  Registrations registrations_;
  Exchanges exchanges_;
  std::unique_ptr<Heartbeat> heartbeat_;
  RunId run_;
  net::Message message_;  // the last received
  const wire::Envelope* answer_ = nullptr;
  size_t answer_from_ = 0;
  StopBeforeJoining stop_;
  bool joined_ = false;
  bool running_ = false;  // started: a ps that does not know us any more is lost
  bool started_once_ = false;
  TimePoint returns_since_ = TimePoint::max();  // when a started task lost a ps; otherwise the far future
  std::function<void(TaskId)> on_lost_;
  TimePoint next_status_;
};

}  // namespace dtrain
