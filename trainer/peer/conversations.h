// Conversations: those of a task with the ps of its run. They begin with Hello, said until every ps has
// welcomed the task for the same run; heartbeats then watch every ps. Every wait has a deadline, and an error
// names the ps with its role, index and address, and what can be done.
// Owner and thread: the task's main loop, but for the heartbeats, which have a thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "net/channel.h"
#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/peer/conversation.h"
#include "trainer/peer/heartbeat.h"
#include "trainer/peer/run_id.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

class Conversations {
 public:
  // With the first ps of the cluster, one for each element of `max_open` (Conversation). Begins to connect.
  // `was_in_run`: the task was in the run before and returns to it.
  Conversations(const Config& config, TaskId self, const std::vector<size_t>& max_open, net::Channel& channel,
                net::Transport& transport, const Activity& activity, Logger& log, bool was_in_run = false);

  size_t size() const { return peers_.size(); }
  Conversation& operator[](size_t ps) { return *peers_[ps].conversation; }
  const Conversation& operator[](size_t ps) const { return *peers_[ps].conversation; }
  std::vector<Conversation*> all() const;
  // Which ps has that connection; size(): none.
  size_t IndexOf(net::NodeId node) const;

  // Every ps has welcomed this task, all for the same run.
  bool joined() const { return joined_; }
  // The run that was joined last.
  RunId run() const { return run_; }
  // ps 0 has a checkpoint.dir, so that the run can go back to a checkpoint.
  bool saves() const { return saves_; }
  // Until joined(): says Hello where it is time to, and every 5 s on the log for whom it waits. Returns when
  // it wants to be called again, at the latest. Throws PeerLost at failure.startup_timeout_s, or
  // failure.wait_s where the task returns; RunStopped where the task is to stop and ps 0 does not let it in.
  TimePoint SayHello(TimePoint now);
  // The task has its Start: from now on a ps that does not know it is lost.
  void Started();
  // The task had started before it joined, or joins, again.
  bool returning() const { return started_once_; }
  // Drops what was asked, and joins anew, as another task.
  void BeginAnew();

  // Takes in what a ps may say to any task at any time; false: it is something else. Throws RunEnded or
  // RunStopped where the run is over, RolledBack or PeerLost where the ps does not know this task any more,
  // UserError where it refuses it for good.
  bool Take(size_t ps, const wire::Envelope& envelope);
  // Throws where the run is over by what the heartbeats have heard, or a ps is lost or of another run:
  // PeerLost where that ends the run, RolledBack where it goes back to a checkpoint or has not begun.
  void CheckAlive();
  // Nothing came for a while: CheckAlive(), and requests are repeated. `what`: what was asked for, which may
  // take net.timeout_ms; null: for ever, as long as the ps is heard.
  void OnQuiet(TimePoint now, const char* what);

  Heartbeat& heartbeat() { return *heartbeat_; }
  const Heartbeat& heartbeat() const { return *heartbeat_; }
  // Called when ps 0 is given up; may be empty.
  void set_on_lost(std::function<void(TaskId)> on_lost) { on_lost_ = std::move(on_lost); }

  // Tells ps 0 that this task failed; the others then hear it from there.
  void Abort(int exit_code, const std::string& text, const RunSummary* summary = nullptr);
  void SayBye();

 private:
  struct Peer {
    std::unique_ptr<Conversation> conversation;
    bool welcomed = false;
    RunId run;
    std::string refusal;  // the latest for a reason that may pass
    TimePoint refused;
  };

  // A lost ps takes the run back to a checkpoint.
  bool RunRecovers() const { return config_.failure.ps_lost == PsLost::kWait && saves_; }
  void SayHelloTo(size_t ps);
  std::string Missing() const;
  std::string WhyMissing(const Peer& peer) const;
  bool StatusIsDue(TimePoint now);
  void OnWelcome(size_t ps, RunId run, bool saves);
  void OnRefuse(Peer& peer, const wire::Refuse& refuse);
  [[noreturn]] void OnForgotten(const Peer& peer, const std::string& why);
  [[noreturn]] void OnAbort(const wire::Abort& abort);
  void CheckAlive(size_t ps);
  [[noreturn]] void OnLost(size_t ps);
  void CheckStop(TimePoint now);

  const Config& config_;
  const TaskId self_;
  const Activity& activity_;
  Logger& log_;
  std::vector<Peer> peers_;
  std::unique_ptr<Heartbeat> heartbeat_;
  std::function<void(TaskId)> on_lost_;
  uint64_t incarnation_;  // the same to every ps, and another one for each joining
  RunId run_;
  bool saves_ = false;
  bool joined_ = false;
  bool running_ = false;  // joined and started
  bool started_once_;
  TimePoint begun_;       // when the first Hello was said; unset: not yet
  TimePoint lost_since_;  // when a started task lost a ps; unset: it has not
  TimePoint next_hello_;
  TimePoint next_status_;
  TimePoint stop_asked_;  // unset: nobody has asked
};

}  // namespace dtrain
