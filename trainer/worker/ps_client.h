// PsClient: a worker's conversations with every ps: joining, numbered requests, exchanges of a gradient for
// new weights. It alone knows that there are several ps.
// Tensors travel in blocks (model/blocks.h), a bounded number of them open at a time.
// Every wait ends: at an answer, at net.timeout_ms, or when a ps is lost (PeerLost names it).
// Owner and thread: the worker.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
#include "trainer/peer/registration.h"
#include "trainer/task/run_summary.h"
#include "trainer/worker/round_versions.h"
#include "trainer/worker/staleness.h"

namespace dtrain {

class PsClient {
 public:
  PsClient(const Config& config, TaskId self, const Layout& layout, net::Channel& channel,
           net::Transport& transport, Activity& activity, Logger& log);

  // Thrown where a ps is lost or does not know this task any more, because it or another ps was restarted:
  // to be answered by Rejoin(). After the start only where the run goes on without that ps (RecoversPs).
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
    PeerLink& link = LinkOf(ps);
    const uint64_t request = link.NextRequest();
    link.Send(request, encoder_.Finish(run_.Envelope(request), build(encoder_.Begin())));
    return AwaitAnswer(ps, patient, what);
  }

  // The same request to every ps. `take(ps, answer)` is called with each answer as it comes; a patient one.
  template <typename Build, typename Take>
  void CallAll(const char* what, Build&& build, Take&& take) {
    for (size_t ps = 0; ps < ps_count(); ++ps) {
      const uint64_t request = LinkOf(ps).NextRequest();
      LinkOf(ps).Send(request, encoder_.Finish(run_.Envelope(request), build(encoder_.Begin())));
    }
    for (size_t answers = 0; answers < ps_count();) {
      answer_ = nullptr;
      if (!ReceiveOne(Clock::now() + slice_)) OnQuiet(true, what);
      if (answer_ == nullptr) continue;
      take(answer_from_, *answer_);
      ++answers;
    }
  }

  // Values of a checkpoint, all of `values`, for elements [first, ...) of the range of a ps; `slot` 0 are its
  // weights. Waits for the answer.
  void Restore(size_t ps, uint32_t slot, uint64_t first, const net::LentBuffer& values);

  // How this worker begins, as its Start says (net/messages.fbs).
  struct Entry {
    std::vector<uint32_t> together;  // those that start with it
    uint64_t clock = 0;
    bool resume = false;
    uint64_t version = 0;
  };
  // The first weights of this worker: it takes part from here on. In sync it waits for the end of a round,
  // unless it resumes. `parameters` is the whole flat vector.
  void Enter(float* parameters, const Entry& entry);
  // All current weights into `parameters`.
  void Pull(float* parameters);

  // Sends the gradient in `buffer` (the whole flat vector) to every ps; waits for nothing. What does not fit
  // into the window goes out as answers come in; the buffer is lent until then.
  void Push(const net::LentBuffer& buffer, uint32_t examples);
  // From now on messages say where values are, a DeviceAddress for each block, instead of carrying them; a
  // gradient to push is the list of its blocks' addresses, and weights are not copied.
  void PushAddresses() { by_address_ = true; }
  // Called with each part of the weights that has arrived and was copied; may be empty.
  void set_on_weights(std::function<void(const float*, Range)> on_weights) {
    on_weights_ = std::move(on_weights);
  }
  // Exchanges pushed and not yet collected.
  int64_t open() const { return begun_ - collected_; }
  // Waits for the oldest exchange's weights from every ps; `parameters` then holds them.
  void Collect(float* parameters);
  // Takes in what has arrived already; waits for nothing.
  void CollectArrived(float* parameters);
  // For a worker that waits for something else than a ps: takes in what has arrived, and throws where the run
  // has ended or a ps is lost.
  void Attend();
  // For a worker that is busy for long: throws as Attend(), and takes nothing in.
  void CheckAllAlive();

  // Steps granted and not yet used by Push().
  int64_t steps() const { return steps_; }
  void AddSteps(int64_t steps) { steps_ += steps; }
  int64_t global_step() const { return global_step_; }
  size_t ps_count() const { return flows_.size(); }
  // Of the gradients that were answered.
  Staleness& staleness() { return staleness_; }
  // For how long ps held back an answer to the exchanges collected since the last call: the longest, in
  // microseconds.
  int64_t TakeHeld() { return std::exchange(held_us_, 0); }
  // sync: whether the latest weights are all of one version. They are not when an answer got lost while the
  // others went on without this worker; Enter() then gets whole ones.
  bool torn() const { return config_.train.mode == TrainMode::kSync && versions_.torn(); }
  // Gradients that came too late for their round (sync).
  int64_t too_late() const { return versions_.too_late(); }
  // How many workers ps 0 said last that it has; 0 before it said so.
  int workers_here() const { return heartbeat_->workers(); }
  // Which worker is the chief, and its term, as ps 0 said last; see Heartbeat.
  int chief() const { return heartbeat_->chief(); }
  uint32_t term() const { return heartbeat_->term(); }
  // Called now and then in a wait in which nothing arrives; may be empty.
  void set_on_quiet(std::function<void()> on_quiet) { on_quiet_ = std::move(on_quiet); }
  // The run has started: from now on a ps that does not know this task is lost.
  void Started() {
    running_ = started_once_ = true;
    returns_since_ = TimePoint::max();
  }

  // Tells ps 0 that this task failed; the others then hear it from there.
  void Abort(int exit_code, const std::string& text, const RunSummary* summary);
  void SayBye();

 private:
  // One round trip of the whole flat vector: gradients there, or nothing, and weights back.
  struct Exchange {
    const net::LentBuffer* gradient = nullptr;  // null: a pull
    net::LentBuffer::Hold hold;                 // keeps the gradient from being written until all is sent
    uint32_t examples = 0;
    std::optional<Entry> entry;  // of a pull with which it enters
  };
  // How far a ps has come: blocks that have been sent to it, and that it has answered.
  struct Flow {
    std::unique_ptr<Registration> registration;
    Range range;
    int64_t blocks = 1;
    int64_t first_block = 0;  // among those of all ps
    int64_t window = 1;       // blocks that may be open
    int64_t sent = 0;
    int64_t answered = 0;
  };

  // Of what a gradient to push consists of.
  struct Bytes {
    size_t offset = 0;
    size_t size = 0;
  };

  void PullAll(float* parameters, Exchange pull);
  void Begin(Exchange exchange);
  void SendBlocks(size_t ps);
  void SendBlock(size_t ps, const Exchange& exchange, int64_t block);
  Bytes PartOf(const Flow& flow, int64_t block) const;
  void TakeIn(const PeerLink& link, Range block, const wire::Weights& weights);
  void DropSent();
  Exchange& ExchangeOf(int64_t number) { return exchanges_[static_cast<size_t>(number) % exchanges_.size()]; }

  const wire::Envelope& AwaitAnswer(size_t ps, bool patient, const char* what);
  bool ReceiveOne(TimePoint deadline);
  void Handle(size_t ps, const wire::Envelope& envelope);
  void OnWeights(size_t ps, const wire::Envelope& envelope);
  void CountStaleness(int64_t exchange, const wire::Weights& weights);
  bool async() const { return config_.train.mode == TrainMode::kAsync; }
  void OnQuiet(bool patient, const char* what);
  void CheckAlive(size_t ps);
  void ThrowIfAborted();
  void OnRefuse(size_t ps, const wire::Envelope& envelope);
  bool EveryPsAnswered(int64_t exchanges) const;
  bool AllWelcomed() const;
  void ForgetOtherRuns();
  size_t IndexOf(net::NodeId node) const;
  PeerLink& LinkOf(size_t ps) { return flows_[ps].registration->link(); }

  const Config& config_;
  const TaskId self_;
  const Layout& layout_;
  net::Channel& channel_;
  Activity& activity_;
  Logger& log_;
  milliseconds slice_;  // how often a wait looks at heartbeats, repeats, and room in a queue
  net::Encoder encoder_;
  std::vector<Flow> flows_;          // by ps
  std::vector<Exchange> exchanges_;  // a ring: those that are open
  std::unique_ptr<Heartbeat> heartbeat_;
  RunId run_;
  int64_t begun_ = 0;      // exchanges
  int64_t sent_ = 0;       // of which every block is on its way
  int64_t collected_ = 0;  // and has been answered
  int64_t steps_ = 0;
  int64_t global_step_ = 0;
  Staleness staleness_;
  RoundVersions versions_;       // sync
  int64_t held_us_ = 0;          // the longest since TakeHeld()
  float* parameters_ = nullptr;  // where weights that arrive are copied to
  net::Message message_;         // the last received
  const wire::Envelope* answer_ = nullptr;
  size_t answer_from_ = 0;
  StopBeforeJoining stop_;
  bool joined_ = false;
  bool running_ = false;  // started: a ps that does not know us any more is lost
  bool started_once_ = false;
  TimePoint returns_since_ = TimePoint::max();  // when a started task lost a ps; otherwise the far future
  std::function<void(TaskId)> on_lost_;
  std::function<void()> on_quiet_;
  std::function<void(const float*, Range)> on_weights_;
  bool by_address_ = false;
  TimePoint next_status_;
};

}  // namespace dtrain
