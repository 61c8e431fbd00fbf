// Heartbeat: tells every ps that this task is alive and notices when one of them is not, on connections
// and a thread of its own, so that a long step delays neither.
// Silence is counted in beats, not in time: a task that was stopped itself does not blame its peers.
#pragma once

#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/signals.h"
#include "net/channel.h"
#include "trainer/peer/run_id.h"

namespace dtrain {

// What a task does that nobody takes for hung, however long it does nothing: it waits for others, by itself.
constexpr char kJoining[] = "join";

// Activity: what a task is doing, for its heartbeats. Written by the task's main thread, read by the
// heartbeat thread.
struct Activity {
  explicit Activity(const StopRequest* stop_request = nullptr, bool leaves_alone = false)
      : stop(stop_request), leaves(leaves_alone) {}

  std::atomic<const char*> what{"start"};  // a literal: start, join, load, wait, step, eval
  // Moves when the main thread did something, and with each look around while it waits.
  std::atomic<uint64_t> turns{0};
  std::atomic<uint64_t> local_step{0};  // of a worker
  // Of a worker: the steps it has taken since it was started, and the nanoseconds that it spent in them
  // itself.
  std::atomic<uint64_t> steps{0};
  std::atomic<uint64_t> own_nanos{0};
  const StopRequest* const stop;  // null: nobody asks this task to stop
  const bool leaves;              // SIGTERM and SIGHUP: only this task goes (failure.on_sigterm)

  // Thread: the task's main one.
  void Turn() { turns.store(turns.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  // The signal by which the run is asked to stop; 0: none.
  int stop_signal() const { return stop == nullptr || leaving() ? 0 : stop->signal(); }
  bool leaving() const {
    const int signal = leaves && stop != nullptr ? stop->signal() : 0;
    return signal != 0 && signal != SIGINT;
  }
};

class Heartbeat {
 public:
  struct Target {
    net::NodeId node = 0;  // of the main connection; the heartbeat's is node | 1
    std::string address;
  };
  Heartbeat(net::Transport& transport, const std::vector<Target>& targets, double detect_s,
            const Activity& activity);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // The target has let this task in: silence counts from now on. A little more is granted at first, because
  // this connection may still be waiting for its next attempt.
  // What ps 0 says of checkpoints counts where it is of `run`.
  void Watch(size_t target, RunId run = {});
  // Thread: any. Seconds since the target was heard last, or watched anew, to the beat.
  double SilentSeconds(size_t target) const { return Seconds(silent_beats_[target].load()); }
  // Thread: any. Whether that is above detect_s, and what Watch() granted is used up. Meant after Watch().
  bool Lost(size_t target) const { return Seconds(counted_beats_[target].load()) > detect_s_; }
  // Thread: any. The target that was heard least recently. Where several are lost it is the cause: one that
  // goes because it lost another is heard until it does.
  size_t SilentLongest() const;
  // What ps 0 said last of who is missing; empty once the run has started.
  std::string status() const;
  // How many workers ps 0 said last that it has; 0 before it said so. Thread: any.
  int workers() const { return workers_.load(std::memory_order_relaxed); }
  // The newest checkpoint that ps 0 has told of in the run that is watched. Thread: any.
  KnownCheckpoint checkpoint() const;
  // Whether the target has said since Watch() that it is of another run than `run`, or has gone back to a
  // checkpoint. Its notice on the main connection may have been lost.
  bool Left(size_t target, RunId run) const;
  // The Abort that ps 0 has sent, as a message; empty: none. It comes here too, since the main connection may
  // close before a busy task reads it.
  net::Message TakeAbort();
  // Called by the thread when that has come, with the exit code that it gives this task; may be empty. Set
  // before ps 0 can know of this task.
  void set_on_abort(std::function<void(ExitCode)> on_abort) {
    std::lock_guard<std::mutex> hold(mutex_);
    on_abort_ = std::move(on_abort);
  }

  // How often a beat goes out, for a given detect_s.
  static milliseconds Interval(double detect_s);

 private:
  void Run();
  double Seconds(int beats) const { return beats * 1e-3 * static_cast<double>(interval_.count()); }
  uint64_t Progress() const;
  void SendBeats(int signal);
  void Drain();
  void Take(size_t target, const wire::Envelope& envelope, net::Message& message);
  void KeepAbort(const wire::Abort& abort, net::Message& message);

  const double detect_s_;
  const milliseconds interval_;
  const Activity& activity_;
  std::unique_ptr<net::Channel> channel_;  // the thread's
  std::vector<net::NodeId> nodes_;
  std::vector<std::atomic<int>> silent_beats_;   // since the target was heard
  std::vector<std::atomic<int>> counted_beats_;  // of these; below 0: what is granted at first
  mutable std::mutex mutex_;
  std::condition_variable stop_changed_;
  bool stop_ = false;
  std::string status_;
  KnownCheckpoint checkpoint_;
  net::Message abort_;
  std::function<void(ExitCode)> on_abort_;
  std::vector<RunId> refused_;  // by target: the run in which it did not know this task
  RunId run_;                   // that ps 0 is watched in
  std::atomic<int> workers_{0};
  std::thread thread_;
};

}  // namespace dtrain
