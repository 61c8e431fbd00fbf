// TaskTable: one record for each task of the cluster as one ps sees it: its connection and when it was last
// heard, its requests, and on ps 0 also what the leader keeps of it: whether it is ready, takes part, is lost
// or done, which of its requests wait for an answer, and what it has done. Owner: PsServer. Thread: the ps
// loop.
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
#include "trainer/ps/worker_result.h"

namespace dtrain {

// One task of the spec. Times are what ticks of the loop have counted.
struct Member {
  TaskId task;

  // The connection.
  net::NodeId node = 0;        // of its main connection; 0 while it is not here
  uint64_t incarnation = 0;    // of the task that is here, or was last
  std::string process;         // "host, pid 123"
  std::string host;            // tells its machine from others
  int64_t at_once = 0;         // workers such as this one that its machine has processors for; 0: unknown
  milliseconds silent{0};      // not heard for so long
  bool heard = false;          // since the last tick; spares a clock call for each message
  std::string activity;        // as its last heartbeat says it
  uint64_t progress = 0;       // likewise
  milliseconds since_beat{0};  // since its last heartbeat
  milliseconds stuck{0};       // its heartbeats have told the same for so long

  // A worker's exchanges.
  uint64_t last_request = 0;      // numbered requests are taken in order, without gaps
  std::vector<uint32_t> granted;  // steps granted by recent answers, by request modulo size
  int64_t next_block = 0;         // of the gradient that is arriving
  int64_t taken = 0;              // whole gradients of this index taken here, over all incarnations
  std::optional<TimePoint> turn;  // ssp: it was answered then, and computes (host_slots.h)

  // What follows is the leader's. Requests are 0 when none waits.
  bool ready = false;
  bool sees_directory = false;  // a ps that reads and writes in the leader's checkpoint.dir itself
  bool takes_part = false;      // a worker that was told to start, and has not left since
  bool lost = false;            // it took part and left before it was done
  TimePoint lost_at;
  bool done = false;
  bool evaluates = false;  // it has the rows that eval.on names
  bool told = false;       // it has said Bye, or left after the end
  uint64_t ready_request = 0;
  uint64_t step_request = 0;
  uint64_t end_request = 0;
  uint64_t next_round = 0;  // sync: the round that a ps asks for with its end_request; 0: it has not asked
  bool waits_for_scale = false;  // sync: the ps asks for the scale of the round before that first
  bool kept = false;             // a ps that has its snapshot for the checkpoint in hand
  int64_t open_steps = 0;        // granted, neither applied nor given back
  WorkerResult result;           // of a worker

  bool here() const { return node != 0; }
  bool is_ready() const { return here() && ready; }
  bool is_worker() const { return task.role == Role::kWorker; }
  uint32_t& GrantOf(uint64_t request) { return granted[request % granted.size()]; }
  // It has left: nothing that it asked is answered.
  void Leave();
};

class TaskTable {
 public:
  // Waits look around less often than the shortest failure.detect_s.
  static constexpr milliseconds kMinStuck{1000};

  TaskTable(const Config& config, TaskId self);

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
  // Another ps than ps 0; on ps 0 only.
  Member& Ps(size_t index) { return At({Role::kPs, static_cast<int>(index)}); }
  std::vector<Member>& all() { return members_; }
  const std::vector<Member>& all() const { return members_; }

  void Remove(Member& member);
  // What a heartbeat says of its sender.
  void NoteBeat(Member& member, const wire::Heartbeat& beat);
  // Notes who was heard since the last call; returns those who were silent for longer than detect_s, or whose
  // heartbeats went on that long while nothing else of them moved.
  std::vector<Member*> Tick(TimePoint now);

  int joined() const;
  int workers() const;  // of those that are here
  // cluster.min_workers.
  int64_t min_workers() const;
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
  bool Stuck(const Member& member) const { return member.stuck > std::max(detect_, kMinStuck); }
  std::string NameOf(const Member& member) const;  // "worker 1 (address; host, pid 123)"

  // What follows is the leader's.
  // The worker is lost, and the run waits until it is back (failure.worker_lost: wait).
  bool IsAwaited(const Member& member) const {
    return member.lost && config_.failure.worker_lost == WorkerLost::kWait;
  }
  // The workers that take part or are waited for.
  std::vector<uint32_t> Expected() const;
  // By worker: whether it takes part, is about to, or is waited for.
  std::vector<bool> WorkersNow() const;
  // No worker that takes part, or is waited for, has still something to do.
  bool AllDone() const;
  // A worker that was lost before it was done is here again or, where lost tasks are started again, may still
  // come: nobody needs it, but its steps are not to be given up.
  bool MayReturn(TimePoint now) const;
  // Every task that is here knows that the run is over.
  bool AllTold() const;
  // Throws PeerLost where a worker that is waited for was lost more than failure.wait_s ago.
  void CheckAwaited(TimePoint now) const;

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
