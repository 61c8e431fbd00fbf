// WatchedCluster: runs the tasks of a RandomCase on threads of this process and watches the workers step by
// step. One of them is lost, restarted or late, as the case says. All waits are the product's, with its
// deadlines, except that of worker 0 for a late worker, which has its own.
#pragma once

#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "net/codec.h"
#include "net/inproc_transport.h"
#include "trainer/task/random_case_test_util.h"
#include "trainer/task/run_task.h"

namespace dtrain {

// Thrown to make a worker vanish like a killed process. It is not a std::exception, so no goodbye is sent.
struct Vanished {};

// How one incarnation of a worker talks to its ps. Thread: the worker's.
struct Wire {
  int64_t repeat_every = 0;       // every n-th request; 0: none
  int64_t blocks_until_end = -1;  // gradient blocks still to send before the worker vanishes; -1: it does not
  std::function<void()> on_start;  // called when the worker is told to start

  int64_t requests = 0;
  std::map<std::string, int64_t> torn;  // by ps: the blocks that it was sent of the gradient before that
  std::map<std::string, std::vector<uint64_t>> final_versions;  // by ps: of its blocks, after the last step
  bool all_done = false;
};

class WatchedChannel : public net::Channel {
 public:
  WatchedChannel(std::unique_ptr<net::Channel> channel, Wire& wire)
      : channel_(std::move(channel)), wire_(wire) {}

  std::string Bind(const std::string& address) override { return channel_->Bind(address); }
  std::string BindDescriptor(int fd) override { return channel_->BindDescriptor(fd); }
  void Connect(net::NodeId id, const std::string& address) override {
    addresses_[id] = address;
    channel_->Connect(id, address);
  }
  void Disconnect(net::NodeId id) override { channel_->Disconnect(id); }
  net::SendResult Send(net::NodeId peer, net::Message& message) override {
    const wire::Envelope* envelope = net::Decode(message);
    if (envelope->body_as_Push() != nullptr && wire_.blocks_until_end >= 0) {
      if (wire_.blocks_until_end-- == 0) throw Vanished();
      ++wire_.torn[addresses_[peer]];
    }
    const bool request = envelope->request() != 0 && wire_.repeat_every > 0;
    net::Message again;
    if (request && ++wire_.requests % wire_.repeat_every == 0) {
      again.header = message.header.Share();
      if (!message.payload.empty()) again.payload = message.payload.Share();
    }
    const net::SendResult result = channel_->Send(peer, message);
    if (!again.header.empty()) channel_->Send(peer, again);
    return result;
  }
  net::ReceiveResult Receive(TimePoint deadline, net::NodeId* from, net::Message* message) override {
    const net::ReceiveResult result = channel_->Receive(deadline, from, message);
    if (result != net::ReceiveResult::kMessage) return result;
    const wire::Envelope* envelope = net::Decode(*message);
    if (envelope->body_as_Start() != nullptr && wire_.on_start) wire_.on_start();
    const wire::Grant* grant = envelope->body_as_Grant();
    if (grant != nullptr && grant->evaluate()) wire_.all_done = true;
    const wire::Weights* weights = envelope->body_as_Weights();
    if (weights != nullptr && wire_.all_done) {
      wire_.final_versions[addresses_[*from]].push_back(weights->version());
    }
    return result;
  }
  net::ChannelStats stats() const override { return channel_->stats(); }
  uint64_t Connections(net::NodeId id) const override { return channel_->Connections(id); }

 private:
  const std::unique_ptr<net::Channel> channel_;
  Wire& wire_;
  std::map<net::NodeId, std::string> addresses_;
};

// Watches the first channel of a task, the one to its ps.
class WatchedTransport : public net::Transport {
 public:
  WatchedTransport(net::Transport& transport, Wire& wire) : transport_(transport), wire_(wire) {}
  std::unique_ptr<net::Channel> NewChannel() override {
    std::unique_ptr<net::Channel> channel = transport_.NewChannel();
    if (std::exchange(made_, true)) return channel;
    return std::make_unique<WatchedChannel>(std::move(channel), wire_);
  }

 private:
  net::Transport& transport_;
  Wire& wire_;
  bool made_ = false;
};

struct SeenStep {
  int64_t local_step = 0;
  int64_t rows = 0;
  int64_t global_step = -1;  // after the step; -1: the worker was lost before
};

// One start of a worker.
struct Incarnation {
  Wire wire;
  bool began = false;
  int64_t begin = 0;  // local steps taken before
  int64_t end = -1;   // local steps at its end; -1: it did not get there
  bool lost = false;
  std::vector<SeenStep> steps;
};

struct CaseOutcome {
  std::vector<RunSummary> summaries;                               // of the tasks that succeeded, ps first
  std::vector<std::vector<std::unique_ptr<Incarnation>>> workers;  // by index
  std::vector<std::string> problems;                               // seen during the run
};

class WatchedCluster {
 public:
  WatchedCluster(const RandomCase& of, const LogOptions& log)
      : case_(of), log_(log), taken_(static_cast<size_t>(of.workers())) {
    outcome_.workers.resize(static_cast<size_t>(of.workers()));
    if (of.late_worker >= 0) Uncount(of.late_worker);
  }
  CaseOutcome Run() {
    std::vector<std::thread> threads;
    for (int i = 0; i < case_.ps(); ++i) {
      threads.emplace_back([this, i] { RunGuarded({Role::kPs, i}, transport_, {}, nullptr); });
    }
    for (int i = 0; i < case_.workers(); ++i) {
      threads.emplace_back([this, i] { RunWorker(i); });
    }
    for (std::thread& thread : threads) thread.join();
    return std::move(outcome_);
  }

 private:
  class Watch;

  void Problem(const std::string& text) {
    const std::lock_guard<std::mutex> hold(mutex_);
    outcome_.problems.push_back(text);
  }
  void RunWorker(int index) {
    auto& incarnations = outcome_.workers[static_cast<size_t>(index)];
    if (index == case_.late_worker) Await(late_may_come_);
    do {
      incarnations.push_back(std::make_unique<Incarnation>());
      RunIncarnation(index, *incarnations.back());
    } while (incarnations.back()->lost && case_.loss.returns);
    if (index == 0) Open(late_may_come_);  // it failed
    if (index == case_.late_worker) Open(late_is_there_);
  }
  void RunIncarnation(int index, Incarnation& incarnation);
  // `lost`: whether the test made it fail; null: it did not.
  void RunGuarded(TaskId task, net::Transport& transport, const TaskOptions& options, const bool* lost) {
    Logger log(TaskName(task), log_);
    try {
      RunSummary summary = RunTask(case_.config, task, transport, log, options);
      const std::lock_guard<std::mutex> hold(mutex_);
      outcome_.summaries.push_back(std::move(summary));
    } catch (const std::exception& error) {
      if (lost != nullptr && *lost) return;
      log.Error("{}", FailureText(error));
      Problem(TaskName(task) + " failed: " + FailureText(error));
    }
  }

  // ssp: each worker's progress when it last sent a gradient. One that does not count is far ahead.
  void Uncount(int worker) { Taken(worker) = kUnbounded; }
  std::atomic<int64_t>& Taken(int worker) { return taken_[static_cast<size_t>(worker)]; }

  void Open(bool& gate) {
    const std::lock_guard<std::mutex> hold(mutex_);
    gate = true;
    opened_.notify_all();
  }
  void Await(bool& gate) {
    std::unique_lock<std::mutex> hold(mutex_);
    if (opened_.wait_for(hold, std::chrono::seconds(60), [&] { return gate; })) return;
    outcome_.problems.push_back("the chief and the late worker did not meet");
  }

  const RandomCase& case_;
  const LogOptions log_;
  net::InprocTransport transport_;
  std::vector<std::atomic<int64_t>> taken_;  // by worker
  std::mutex mutex_;
  std::condition_variable opened_;
  bool late_may_come_ = false;
  bool late_is_there_ = false;
  CaseOutcome outcome_;
};

// Records what one incarnation sees, and loses it at its time.
class WatchedCluster::Watch : public Hook {
 public:
  Watch(WatchedCluster& cluster, Incarnation& incarnation, int worker, bool first)
      : cluster_(cluster), case_(cluster.case_), incarnation_(incarnation), worker_(worker), first_(first) {}

  void Begin(const StepView& view) override {
    incarnation_.began = true;
    incarnation_.begin = view.local_step;
  }
  // Nothing of the step's gradient has been sent.
  void BeforeStep(const StepView& view, HookRequests*) override {
    incarnation_.steps.push_back({view.local_step, view.rows, -1});
    if (case_.config.train.mode == TrainMode::kSsp) CheckBound(view.local_step);
    if (worker_ == 0 && view.local_step >= case_.late_at) MeetLate();
    const LostTask& loss = case_.loss;
    const bool now = first_ && loss.kind != LossKind::kNone && worker_ == loss.worker;
    if (now && view.local_step == loss.step) Lose();
  }
  void AfterStep(const StepView& view, HookRequests*) override {
    incarnation_.steps.back().global_step = view.global_step;
    if (!std::isfinite(view.loss)) cluster_.Problem(TaskName(view.self) + " has a loss that is not finite");
  }
  void End(const StepView& view) override {
    incarnation_.end = view.local_step;
    cluster_.Uncount(worker_);  // before ps 0 learns of it
    for (int64_t i = 0; i < view.layout.size; ++i) {
      if (std::isfinite(view.weights[i])) continue;
      return cluster_.Problem(TaskName(view.self) + " ends with weights that are not finite");
    }
    if (worker_ == 0) MeetLate();
  }

 private:
  // Step s - 1 was answered when every other worker had sent the gradient of s - 1 - staleness.
  void CheckBound(int64_t local_step) {
    const bool counts = cluster_.Taken(worker_) < kUnbounded;
    if (!counts) return;
    cluster_.Taken(worker_) = std::max<int64_t>(cluster_.Taken(worker_), local_step);
    for (int other = 0; other < case_.workers(); ++other) {
      if (cluster_.Taken(other) >= local_step - 1 - case_.config.train.staleness) continue;
      cluster_.Problem(fmt::format("ssp: worker {} takes step {} when worker {} is at step {}", worker_,
                                   local_step, other, cluster_.Taken(other).load()));
    }
  }
  // Both may still take part at this point, whatever the others do.
  void MeetLate() {
    if (case_.late_worker < 0 || std::exchange(met_, true)) return;
    cluster_.Open(cluster_.late_may_come_);
    cluster_.Await(cluster_.late_is_there_);
  }
  void Lose() {
    incarnation_.lost = true;
    if (!case_.waits()) cluster_.Uncount(worker_);
    if (case_.loss.kind == LossKind::kError) throw Failure(ExitCode::kInternal, "lost by the test");
    if (case_.loss.kind == LossKind::kGone) throw Vanished();
    incarnation_.wire.blocks_until_end = case_.loss.blocks;
  }

  WatchedCluster& cluster_;
  const RandomCase& case_;
  Incarnation& incarnation_;
  const int worker_;
  const bool first_;
  bool met_ = false;
};

inline void WatchedCluster::RunIncarnation(int index, Incarnation& incarnation) {
  incarnation.wire.repeat_every = case_.repeat_every;
  if (index == case_.late_worker) incarnation.wire.on_start = [this] { Open(late_is_there_); };
  WatchedTransport transport(transport_, incarnation.wire);
  const bool first = outcome_.workers[static_cast<size_t>(index)].size() == 1;
  TaskOptions options;
  options.more_hooks = [&](TaskId) {
    HookList hooks;
    hooks.push_back(std::make_unique<Watch>(*this, incarnation, index, first));
    return hooks;
  };
  try {
    RunGuarded({Role::kWorker, index}, transport, options, &incarnation.lost);
  } catch (const Vanished&) {
  }
}

}  // namespace dtrain
