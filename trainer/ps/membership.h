// Membership: which task of the cluster is here, under which connection, and when it was last heard.
// Every ps keeps one. Thread: the ps loop.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "net/codec.h"
#include "trainer/config/config.h"

namespace dtrain {

// One task of the spec as seen by a ps. The fields after `heard` belong to the loop and the coordinator.
struct Member {
  TaskId task;
  net::NodeId node = 0;           // of its main connection; 0 while it is not here
  uint64_t incarnation = 0;       // of the task that is here, or was last
  std::string process;            // "host, pid 123"
  std::string host;               // tells its machine from others
  int64_t at_once = 0;            // workers such as this one that its machine has processors for; 0: unknown
  milliseconds silent{0};         // as ticks have counted
  bool heard = false;             // since the last tick; spares a clock call per message
  std::string activity;           // as its last heartbeat says it
  uint64_t progress = 0;          // likewise
  milliseconds since_beat{0};     // as ticks have counted
  milliseconds stuck{0};          // that long its heartbeats have told the same
  uint64_t last_request = 0;      // numbered requests are taken in order, without gaps
  std::vector<uint32_t> granted;  // steps granted by recent answers, by request modulo size
  int64_t next_block = 0;         // of the gradient that is arriving
  int64_t taken = 0;              // whole gradients of this index taken here, over all incarnations

  bool here() const { return node != 0; }
  uint32_t& GrantOf(uint64_t request) { return granted[request % granted.size()]; }
};

class Membership {
 public:
  // Waits look around less often than the shortest failure.detect_s.
  static constexpr milliseconds kLeastStuck{1000};

  Membership(const Config& config, TaskId self);

  struct Decision {
    bool welcome = false;
    wire::Reason reason = wire::Reason::Unregistered;
    std::string text;
    std::optional<net::NodeId> replaced;  // the connection that the newcomer takes the place of
  };
  // Judges a Hello. A newcomer under an index in use is held until `closed(old)` says that the old
  // connection is gone or its heartbeat is overdue, and refused when the ticks of detect_s have passed in
  // which the old one is silent and overdue, if it is no more.
  Decision Admit(net::NodeId node, const wire::Hello& hello, const std::function<bool(net::NodeId)>& closed);

  // The member behind a main or heartbeat connection; null for a stranger.
  Member* Find(net::NodeId node);
  Member& At(TaskId task);
  // Null where the spec has no such worker.
  Member* Worker(int64_t index);
  std::vector<Member>& all() { return members_; }

  void Remove(Member& member);
  // What a heartbeat says of its sender.
  void NoteBeat(Member& member, const wire::Heartbeat& beat);
  // Notes who was heard since the last call; returns those who were silent for longer than detect_s, or whose
  // heartbeats went on that long while nothing else of them moved.
  std::vector<Member*> Tick(TimePoint now);

  int joined() const;
  int workers() const;  // of those that are here
  // cluster.min_workers.
  int64_t least_workers() const;
  // Whom the start needs and who is not here, empty when all are: "ps 1 (10.0.0.2:9001), worker 2 (...)".
  // Where fewer are needed than may come: "1 of worker 1 (...), worker 2 (...)".
  std::string Missing() const;
  // With data.split: feed worker 0: the others cannot do anything without it.
  bool FeedsOthers(const Member& member) const {
    return member.task.role == Role::kWorker && member.task.index == 0 && dtrain::FeedsOthers(config_);
  }
  // Who was refused last, and why: it may be the one that is missing. Empty: nobody.
  const std::string& last_refusal() const { return last_refusal_; }
  // "worker 1 (...) has not been heard for 1.2 s (failure.detect_s = 1)"; of one that Tick() returned.
  std::string WhyOverdue(const Member& member) const;
  bool Stuck(const Member& member) const { return member.stuck > std::max(detect_, kLeastStuck); }
  std::string NameOf(const Member& member) const;  // "worker 1 (address; host, pid 123)"

 private:
  std::optional<Decision> RefuseStranger(const wire::Hello& hello) const;

  const Config& config_;
  const TaskId self_;
  const milliseconds detect_;
  TimePoint last_tick_;
  std::vector<Member> members_;  // ps first, then workers; the ps itself is not among them
  std::unordered_map<net::NodeId, size_t> by_node_;
  std::string last_refusal_;
  std::unordered_map<net::NodeId, milliseconds>
      held_;  // newcomers under an index in use; as ticks have counted
};

}  // namespace dtrain
