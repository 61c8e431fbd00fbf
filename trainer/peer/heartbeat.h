// Heartbeat: tells every ps that this task is alive, and notices when a ps is not. It has its own connections
// and thread, so a long step delays neither. It counts silence in beats, not in time, so a task that was
// itself stopped does not blame its peers.
#pragma once

#include <signal.h>

#include <array>
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

// The activity of a task that waits for others; such a task never counts as hung.
constexpr char kJoining[] = "join";
// That of a task that reads its data before it takes part.
constexpr char kLoading[] = "load";

// Traffic: the headers and payloads that a task has moved so far.
struct Traffic {
  uint64_t sent = 0;
  uint64_t received = 0;
  uint64_t saved = 0;  // by net.compress and packed keys in what was sent
};

// Activity: what a task is doing, for its heartbeats. Thread: the main thread writes it, the heartbeat thread
// reads it.
struct Activity {
  explicit Activity(const StopRequest* stop_request = nullptr, bool leaves_alone = false)
      : stop(stop_request), leaves(leaves_alone) {}

  std::atomic<const char*> what{"start"};  // a literal: start, join, load, wait, step, eval
  // Changes when the main thread does something, and with each look around while it waits.
  std::atomic<uint64_t> turns{0};
  std::atomic<uint64_t> local_step{0};  // a worker's
  std::atomic<int64_t> global_step{0};  // as a worker, or a ps by its range, knows it
  // A worker's: the steps since it was started, and where their time went in nanoseconds: data, compute,
  // hooks, wait, network.
  std::atomic<uint64_t> steps{0};
  std::array<std::atomic<uint64_t>, 5> part_nanos{};
  std::atomic<uint64_t> staleness_sum{0};  // over its applied gradients
  std::atomic<uint64_t> staleness_count{0};
  std::atomic<uint64_t> bytes_sent{0}, bytes_received{0}, bytes_saved{0};  // as in Traffic
  const StopRequest* const stop;  // null: nobody asks this task to stop
  const bool leaves;              // SIGTERM and SIGHUP make only this task leave (failure.on_sigterm)

  // Thread: the main thread.
  void Turn() { turns.store(turns.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }
  // Thread: the main thread.
  void Tell(const Traffic& traffic) {
    bytes_sent.store(traffic.sent, std::memory_order_relaxed);
    bytes_received.store(traffic.received, std::memory_order_relaxed);
    bytes_saved.store(traffic.saved, std::memory_order_relaxed);
  }
  Traffic traffic() const { return {bytes_sent.load(), bytes_received.load(), bytes_saved.load()}; }
  // The signal that asks the run to stop; 0: none.
  int stop_signal() const { return stop == nullptr || leaving() ? 0 : stop->signal(); }
  bool leaving() const {
    const int signal = leaves && stop != nullptr ? stop->signal() : 0;
    return signal != 0 && signal != SIGINT;
  }
};

class Heartbeat {
 public:
  struct Target {
    net::NodeId node = 0;  // the main connection; the heartbeat uses node | 1
    std::string address;
  };
  Heartbeat(net::Transport& transport, const std::vector<Target>& targets, double detect_s,
            const Activity& activity);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  // The target has let this task in to `run`, which heartbeats to it name from now on.
  void InRun(size_t target, RunId run);
  // Every ps has let this task in to `run`, or, without one, the target has been heard: counts its silence
  // from now on, with some extra time at first, because this connection may still wait for its next attempt.
  // Takes the checkpoints that ps 0 reports for `run`.
  void Watch(size_t target, RunId run = {});
  // The task of another address has taken the target's place: watches that one.
  void Move(size_t target, const std::string& address);
  // Thread: any. Seconds since the target was last heard or watched, in whole beats.
  double SilentSeconds(size_t target) const { return Seconds(silent_beats_[target].load()); }
  // Thread: any. Whether that is above detect_s, after the extra time of Watch(). Call it after Watch().
  bool Lost(size_t target) const { return Seconds(counted_beats_[target].load()) > detect_s_; }
  // Thread: any. The target that was heard least recently. When several are lost it is the cause: a ps that
  // ends because it lost another is heard until it ends.
  size_t SilentLongest() const;
  // What ps 0 last said about missing tasks; empty once the run has started.
  std::string status() const;
  // Thread: any. The number of workers that ps 0 last reported; 0: none yet.
  int workers() const { return workers_.load(std::memory_order_relaxed); }
  // Thread: any. The newest checkpoint that ps 0 has reported for the watched run.
  KnownCheckpoint checkpoint() const;
  // Whether the target has said since Watch() that it is not, or no longer, in `run`: it was restarted, or
  // has gone back to a checkpoint. Its notice on the main connection may be lost.
  bool Left(size_t target, RunId run) const;
  // Thread: any. Whether the target has not answered the last two beats, or has refused the latest one: it
  // does not know this task now.
  bool IsAway(size_t target) const { return silent_beats_[target].load() > 1 || refuses_[target].load(); }
  // The Abort of ps 0; empty: none. It comes here too, since the main connection may close before a busy task
  // reads.
  net::Message TakeAbort();
  // Called once by the thread, with the exit code for this task and why, when an Abort comes; may be empty.
  // Set it before ps 0 can know of this task.
  void set_on_abort(std::function<void(ExitCode, const std::string& why)> on_abort) {
    std::lock_guard<std::mutex> hold(mutex_);
    on_abort_ = std::move(on_abort);
  }

  // The time between two beats.
  static milliseconds Interval(double detect_s);

 private:
  void Run();
  double Seconds(int beats) const { return beats * 1e-3 * static_cast<double>(interval_.count()); }
  uint64_t Progress() const;
  void CarryOutMoves();
  void SendBeats(int signal, bool due);
  uint64_t Connections() const;
  void Drain();
  void Take(size_t target, const wire::Envelope& envelope, net::Message& message);
  void KeepAbort(const wire::Abort& abort, net::Message& message);

  const double detect_s_;
  const milliseconds interval_;
  const Activity& activity_;
  std::unique_ptr<net::Channel> channel_;  // used by the thread
  std::vector<net::NodeId> nodes_;
  std::vector<std::atomic<int>> silent_beats_;   // since the target was last heard
  std::vector<std::atomic<int>> counted_beats_;  // likewise; below 0: the extra time of Watch()
  std::vector<std::atomic<bool>> refuses_;       // the target has refused the latest beat
  mutable std::mutex mutex_;
  std::condition_variable stop_changed_;
  bool stop_ = false;
  std::string status_;
  KnownCheckpoint checkpoint_;
  net::Message abort_;
  std::function<void(ExitCode, const std::string& why)> on_abort_;
  std::vector<std::pair<net::NodeId, std::string>> moves_;  // to carry out
  std::vector<RunId> runs_;                                 // by target: the run that heartbeats to it name
  std::vector<RunId> refused_;                              // by target: the run that it said not to be in
  std::atomic<int> workers_{0};
  std::thread thread_;
};

}  // namespace dtrain
