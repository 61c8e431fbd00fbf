// Conversations: the conversations of a task with the ps of its run. The task says Hello until every ps has
// welcomed it for the same run; then heartbeats watch every ps. Every wait has a deadline, and an error names
// the ps with role, index and address, and a remedy.
// With failure.replicas only ps 0 decides what the loss of another ps means, and all wait for a lost ps 0. A
// task waits for a ps that is silent or does not know it, and sends what is open again when that ps, or
// another process in its place, says Welcome. If a ps does not come back, the holder of its replica may stand
// in for it: what is open is sent there. Owner and thread: the task's main loop; heartbeats have a thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
#include "trainer/config/cluster_config.h"
#include "trainer/config/dump.h"
#include "trainer/peer/conversation.h"
#include "trainer/peer/heartbeat.h"
#include "trainer/peer/run_id.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

// "gives up at 23:59:59 with exit 4": for who has waited since `since` and waits for `limit_s`.
std::string GivesUpText(const Config& config, TimePoint since, double limit_s);
// "; gives up in 80 s": the same for people whose clock may be another.
std::string GivesUpInText(TimePoint since, double limit_s, TimePoint now);

// What is lost with a ps after so many steps (0: not known), and what to do, in sentences. `saved`: the step
// of the newest checkpoint; unset: the run keeps none.
std::string LostStepsText(const Config& config, int64_t steps, std::optional<int64_t> saved);

// Warns that the task joins the run anew. `next`: what it does now.
void LogRollback(const RolledBack& rolled_back, const char* next, Logger& log);

// WaitPace: when a task that waits tells so: after 1 s, 5 s later, and then after 10, 20, 40 and each 60 s.
class WaitPace {
 public:
  explicit WaitPace(TimePoint since) : next_(since + milliseconds(1000)) {}
  // Whether it is time; if so, the next time is later.
  bool IsDue(TimePoint now) {
    if (now < next_) return false;
    pause_ = std::min<milliseconds>(2 * pause_, milliseconds(60000));
    next_ = now + pause_;
    return true;
  }

 private:
  TimePoint next_;
  milliseconds pause_{2500};  // before the latest one
};

class Conversations {
 public:
  // Starts to connect to the first ps of the cluster, one for each element of `max_open` (see Conversation).
  // `was_in_run`: the task returns to a run that it was in.
  Conversations(const Config& config, TaskId self, const std::vector<size_t>& max_open, net::Channel& channel,
                net::Transport& transport, const Activity& activity, Logger& log, bool was_in_run = false);

  size_t size() const { return peers_.size(); }
  Conversation& operator[](size_t ps) { return *peers_[ps].conversation; }
  const Conversation& operator[](size_t ps) const { return *peers_[ps].conversation; }
  std::vector<Conversation*> all() const;
  // The ps with this connection; size(): none.
  size_t IndexOf(net::NodeId node) const;

  // Every ps has welcomed this task, all for the same run.
  bool joined() const { return joined_; }
  // The last joined run.
  RunId run() const { return run_; }
  // ps 0 has a checkpoint.dir, so the run can go back to a checkpoint.
  bool saves() const { return saves_; }
  // From ps 0: with it worker 0 answers (data.split: feed); 0: none.
  uint64_t feed_token() const { return feed_token_; }
  // From ps 0 to a ps that takes the place of a lost one: the epoch of the replica from which it fills
  // itself; 0: it does not.
  uint64_t replica() const { return replica_; }
  // From ps 0: of its process; 0: it has no replica.
  uint64_t leader_incarnation() const { return leader_incarnation_; }
  // Call this until joined(): it says Hello when due and logs now and then which ps are missing. Returns the
  // latest time for the next call. Throws PeerLost at failure.startup_timeout_s (failure.wait_s for a task
  // that returns), and RunStopped when the task is to stop and ps 0 does not let it in.
  TimePoint SayHello(TimePoint now);
  // The task has its Start: from now on a ps that does not know this task is lost.
  void Started();
  // The task has started before, and joins again.
  bool returning() const { return started_once_; }
  // Drops the open requests and joins again under a new incarnation.
  void BeginAnew();

  // Handles the messages that a ps may send to any task at any time; false: it is another message. Throws
  // RunEnded or RunStopped when the run is over, RolledBack or PeerLost when the ps no longer knows this
  // task, and UserError when it refuses the task for good.
  bool Take(size_t ps, const wire::Envelope& envelope);
  // Throws when the heartbeats show that the run is over, or that a ps is lost or belongs to another run:
  // PeerLost if that ends the run, RolledBack if the run goes back to a checkpoint or has not begun. Throws
  // RunStopped when the task is to stop and nothing listens any more at the address of ps 0.
  void CheckAlive();
  // Nothing came for a while: calls CheckAlive() and repeats requests. `what`: the name of a request that may
  // take net.timeout_ms; null: it may wait for as long as the ps is heard.
  void OnQuiet(TimePoint now, const char* what);

  Heartbeat& heartbeat() { return *heartbeat_; }
  const Heartbeat& heartbeat() const { return *heartbeat_; }
  // Called when ps 0 is given up; may be empty.
  void set_on_lost(std::function<void(TaskId, const std::string& why)> on_lost) {
    on_lost_ = std::move(on_lost);
  }

  // ps 0 was killed, and nobody starts it again. Then, or if it is not back after failure.wait_s, ps 1 leads
  // the run to its end: other tasks talk to that.
  void LoseLeader(const std::string& how) { leader_gone_ = how; }
  // Why ps 1 has to lead; empty: it has not. `sought`: another task has come to it for that. Without one it
  // may be ps 1 alone that is cut off.
  std::string why_leads(bool sought) const { return sought || !leader_gone_.empty() ? why_leads_ : ""; }
  // The leader is in this process from now on.
  void MoveLeaderHere(std::function<void(net::Message)> take);

  // Tells ps 0, which tells the others, that this task has failed.
  void Abort(int exit_code, const std::string& text, const RunSummary* summary = nullptr);
  void SayBye();

 private:
  struct Peer {
    std::unique_ptr<Conversation> conversation;
    bool welcomed = false;
    bool wants_settings = false;  // it has asked for them, since their hash is another there
    RunId run;
    std::string refusal;  // the latest one whose reason may pass
    bool held = false;    // its reason: whether the task whose index this one has is alive will show
    TimePoint refused;
    // With failure.replicas, of a ps that is silent or does not know this task.
    struct Away {
      TimePoint since;
      WaitPace tells;
    };
    std::optional<Away> away;
    bool moved = false;      // another ps stands in for it
    bool told_lost = false;  // for ps 0: the parent of this task was told that it is lost
    TimePoint
        unknown_since;  // since when it says that it knows the run, but not this task; unset: it does not
  };

  // A lost ps takes the run back to a checkpoint.
  bool RunRecovers() const;
  void SayHelloTo(size_t ps);
  std::string Missing() const;
  std::string WhyMissing(const Peer& peer) const;
  void OnWelcome(size_t ps, RunId run, const wire::Welcome& welcome);
  void TellSettings(size_t ps);
  void OnRefuse(size_t ps, const wire::Refuse& refuse);
  [[noreturn]] void OnForgotten(const Peer& peer, const std::string& why);
  [[noreturn]] void OnAbort(const wire::Abort& abort);
  void CheckAlive(size_t ps, TimePoint now);
  [[noreturn]] void OnLost(size_t ps);
  // Whether only the leader decides what the loss of this ps means: ps 0, or the next one in its place.
  bool LeaderDecides() const;
  bool IsPs1() const { return self_.role == Role::kPs && self_.index == 1; }
  void CheckAway(size_t ps, TimePoint now);
  void CheckLeaderAway(TimePoint now);
  void MoveLeader();
  void OnUnknown(size_t ps, const wire::Refuse& refuse, const std::string& why);
  void OnBack(size_t ps);
  void OnStandIn(size_t ps, size_t of);
  bool IsOverdue(size_t ps, TimePoint now);
  std::string WhatIsLost() const;  // with a ps, and what to do: a sentence
  void CheckStop(TimePoint now);
  void CheckStopWithoutLeader(TimePoint now);
  [[noreturn]] void StopAlone(int signal, const std::string& when) const;

  const Config& config_;
  const TaskId self_;
  const Settings settings_;
  const uint64_t settings_hash_;
  const Activity& activity_;
  Logger& log_;
  std::vector<Peer> peers_;
  std::unique_ptr<Heartbeat> heartbeat_;
  std::function<void(TaskId, const std::string& why)> on_lost_;
  uint64_t incarnation_;  // the same to every ps; a new one for each joining
  RunId run_;
  bool saves_ = false;
  uint64_t feed_token_ = 0;
  uint64_t replica_ = 0;
  uint64_t leader_incarnation_ = 0;
  bool joined_ = false;
  bool running_ = false;  // joined and started
  bool started_once_;
  TimePoint begun_;       // when the first Hello was said; unset: not yet
  TimePoint lost_since_;  // when a started task lost a ps; unset: none is lost
  TimePoint next_hello_;
  WaitPace tells_;
  TimePoint stop_asked_;     // unset: the task need not stop
  TimePoint next_probe_;     // of a ps 0 that is silent while the task is to stop
  bool told_wait_ = false;   // for it
  std::string leader_gone_;  // how ps 0 was killed, if it does not come back
  std::string why_leads_;
};

}  // namespace dtrain
