// TaskTable: one record per task of the cluster, as this ps sees it: its connection, when it was last heard,
// and its requests. On ps 0 the record also has the leader's fields: whether the task is ready, takes part,
// is lost or done, which of its requests wait, and what it has done.
// Owner: PsServer. Thread: the ps loop.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "net/codec.h"
#include "trainer/config/cluster_config.h"
#include "trainer/config/dump.h"
#include "trainer/peer/heartbeat.h"
#include "trainer/peer/run_id.h"
#include "trainer/ps/worker_result.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

// What a ps has taken of the gradients of one process of a worker: what its weights have, or are sure to get.
struct TakenOfProcess {
  uint64_t incarnation = 0;
  uint64_t gradients = 0;  // whole ones, in the order of its steps; dropped ones count
  uint64_t blocks = 0;     // of the one behind them, in the order in which they are sent
  bool dropped = false;    // sync: nothing came behind the last one, and that was too late for its round

  template <typename Archive>
  void State(Archive& archive) {
    archive(incarnation, gradients, blocks, dropped);
  }
};

// One task of the spec. Durations are counted in ticks of the loop.
struct Member {
  TaskId task;

  // The connection.
  net::NodeId node = 0;            // of its main connection; 0: not connected
  uint32_t key = 0;                // net::Message::key of its Hello
  uint64_t incarnation = 0;        // of the latest process
  std::string process;             // "host, pid 123"
  std::string host;                // identifies its machine
  std::optional<TimePoint> asked;  // when it was last asked whether its connection is open, for a newcomer
  int64_t at_once = 0;             // workers like this one that its machine has processors for; 0: unknown
  milliseconds silent{0};          // since it was last heard
  bool heard = false;              // since the last tick; spares a clock call per message
  std::string activity;            // of its last heartbeat
  uint64_t progress = 0;           // of its last heartbeat
  milliseconds since_beat{0};      // since its last heartbeat
  milliseconds stuck{0};           // how long its heartbeats have not changed

  // A worker's exchanges.
  uint64_t last_request = 0;         // requests are taken in order, without gaps; 0: none was
  uint64_t first_request = 0;        // the first one to take; 0: whichever comes
  std::vector<uint32_t> granted;     // steps granted by recent answers, by request modulo size
  int64_t blocks_come = 0;           // of the gradient that is arriving
  uint64_t settled = 0;              // the latest request that needs nothing more: the parameters have it
  int64_t settled_blocks = 0;        // blocks_come, as of that
  int64_t taken = 0;                 // whole gradients taken here, over all incarnations
  TakenOfProcess of_process;         // the latest that had a gradient taken; it may have left
  std::vector<TakenOfProcess> gone;  // those of which nothing more is taken, with what was
  std::optional<TimePoint> turn;     // ssp: when it was answered; it computes since (HasSlot)

  // The fields below are the leader's. A request is 0 when none waits.
  bool ready = false;
  bool sees_directory = false;  // a ps that itself reads and writes the leader's checkpoint.dir
  int64_t devices = 1;          // of a worker, each of which takes a batch in a step
  bool takes_part = false;      // a worker that was told to start and has not left since
  bool lost = false;            // it took part and left before it was done
  TimePoint lost_at;
  bool done = false;
  bool evaluates = false;  // it has rows of data.test or held-out ones
  bool told = false;       // it has said Bye, or left after the end
  uint64_t ready_request = 0;
  uint64_t step_request = 0;
  bool step_paused = false;  // with that, nobody waits for the worker
  uint64_t end_request = 0;
  uint64_t next_round = 0;       // sync: the round that a ps asks for with its end_request; 0: none
  uint64_t oldest_round = 0;     // sync: the first that it, or its replica, may lack; 0: not known
  bool waits_for_scale = false;  // sync: the ps asks for the scale of the round before first
  bool kept = false;             // a ps that has its snapshot for the current checkpoint
  bool never_back = false;       // a ps that was lost, and whose parent does not start it again
  bool fills = false;      // a ps that was lost and fills itself from its replica, or will when it is back
  int64_t open_steps = 0;  // granted, neither applied nor given back
  WorkerResult result;     // of a worker

  bool here() const { return node != 0; }
  bool is_ready() const { return here() && ready; }
  bool is_worker() const { return task.role == Role::kWorker; }
  uint32_t& GrantOf(uint64_t request) { return granted[request % granted.size()]; }
  // Requests are taken in the order of their numbers. False: one before it was lost; its sender repeats it.
  bool TakeRequest(uint64_t request, bool* repeated);
  // A process of a worker, which has left, is never let in again. Returns what was taken of it, the same each
  // time, so that a later process changes nothing.
  TakenOfProcess TakeNoMoreOf(uint64_t its_incarnation);
  bool IsGone(uint64_t its_incarnation) const;
  // What the leader of a run that goes on has to know of it, and from which request on it is asked again.
  template <typename Archive>
  void State(Archive& archive) {
    archive(key, incarnation, process, host, at_once, first_request, granted, settled, settled_blocks, taken,
            of_process, gone, ready, sees_directory, devices, takes_part, lost, lost_at, done, evaluates,
            told, ready_request, step_request, step_paused, end_request, next_round, oldest_round,
            waits_for_scale, never_back, open_steps, result);
    if (!archive.reads()) return;
    last_request = settled;
    blocks_come = settled_blocks;
  }
  // The task has left: it is not ready, takes no part, and what it asked is not answered.
  void Leave();
};

// What becomes of the rows of a process that was given up, for its people: "; its rows go to the others ...";
// empty: they wait for it.
std::string RowsOfGoneText(const Config& config);

class TaskTable;
// The run as ps 0 knows it.
RunIdentity IdentityOf(const RunId& run, const TaskTable& members);

// The task that says this Hello, which may be none of the spec.
TaskId TaskOf(const wire::Hello& hello);

class TaskTable {
 public:
  // A task that waits moves its progress less often than the shortest failure.detect_s.
  static constexpr milliseconds kMinStuck{1000};
  // Limits on what newcomers cost, however many there are. A list of settings takes long to compare, and a
  // difference tells what is set here: so many are told with both values, and after that the key alone.
  static constexpr milliseconds kAskClosedEvery{100};
  static constexpr milliseconds kCompareEvery{100};
  static constexpr int kValuesTold = 20;
  static constexpr size_t kMaxHeld = 64;
  // A newcomer that is held for longer is told of: the connection of a task that has ended closes sooner.
  static constexpr milliseconds kHeldSilently{1000};

  // `blocks`: of the range of this ps.
  TaskTable(const Config& config, TaskId self, int64_t blocks = 1);
  ~TaskTable();
  TaskTable(const TaskTable&) = delete;
  TaskTable& operator=(const TaskTable&) = delete;

  struct Decision {
    bool welcome = false;
    wire::Reason reason = wire::Reason::Unregistered;
    std::string text;
    std::optional<net::NodeId> replaced;  // the connection that the newcomer replaces
    bool tells = false;                   // a newcomer is held that the log is to name, once
  };
  // Judges a Hello, cheapest checks first. A newcomer with an index in use is held until the old connection
  // is closed (`closed(old)`, asked once in kAskClosedEvery however many newcomers there are) or silent for
  // detect_s; when detect_s has passed and the old one is still heard, the newcomer is refused. A Hello with
  // another hash of settings and no list of them is refused with Reason::Config and no text.
  Decision Admit(net::NodeId node, const wire::Hello& hello, const std::function<bool(net::NodeId)>& closed);

  // Of the run-scope keys here, as tasks say it.
  uint64_t settings_hash() const { return settings_hash_; }
  // The member of a main or heartbeat connection; null: not registered.
  Member* Find(net::NodeId node);
  Member& At(TaskId task);
  // Null where the spec has no such worker.
  Member* Worker(int64_t index);
  // A ps other than ps 0. Only on ps 0.
  Member& Ps(size_t index) { return At({Role::kPs, static_cast<int>(index)}); }
  std::vector<Member>& all() { return members_; }
  const std::vector<Member>& all() const { return members_; }

  void Remove(Member& member);
  // The member is here, over this conversation: as the ps knew it in whose place this one came.
  void Restore(Member& member, net::NodeId node);
  // Called with each conversation that becomes one of a member, and when it no longer is; may be empty.
  void set_on_known(std::function<void(net::NodeId, bool known)> on_known) {
    on_known_ = std::move(on_known);
  }
  void NoteBeat(Member& member, const wire::Heartbeat& beat);
  // Counts the time since the last call. Returns the members that were silent for longer than detect_s, and
  // those whose heartbeats have not changed for that long.
  std::vector<Member*> Tick(TimePoint now);

  int joined() const;
  int workers() const;  // connected workers
  int64_t max_workers() const;
  // cluster.min_workers, or all workers.
  int64_t min_workers() const;
  // The missing tasks where all ps and so many workers are needed: "ps 1 (10.0.0.2:9001), worker 2 (...)";
  // with fewer workers needed than missing: "1 of worker 1 (...), worker 2 (...)". Empty: none.
  std::string Missing(int64_t workers) const;
  // Whether it is worker 0 with data.split: feed, without which no other worker can do anything.
  bool FeedsOthers(const Member& member) const;
  // The last refused task and why: it may be the missing one. Empty: none.
  const std::string& last_refusal() const { return last_refusal_; }
  // "worker 1 (...) has not been heard for 1.2 s (failure.detect_s = 1)"; for a member that Tick() returned.
  std::string WhyOverdue(const Member& member) const;
  bool Stuck(const Member& member) const { return member.stuck > MaxStuck(member); }
  std::string NameOf(const Member& member) const;  // "worker 1 (address; host, pid 123)"

  // The functions below are the leader's.

  // The worker is lost, and the run waits for it (failure.worker_lost: wait).
  bool IsAwaited(const Member& member) const;
  // The workers that take part or are waited for.
  std::vector<uint32_t> Expected() const;
  // By worker: whether it takes part, is about to, or is waited for.
  std::vector<bool> WorkersNow() const;
  // No worker that takes part or is waited for has steps left to do.
  bool AllDone() const;
  // Every connected task knows that the run is over.
  bool AllTold() const;

 private:
  // A task that reads its data may wait long for the first byte: of a command, a queue, or a slow disk.
  milliseconds MaxStuck(const Member& member) const {
    return member.activity == kLoading ? std::max(detect_, startup_) : std::max(detect_, kMinStuck);
  }
  std::optional<Decision> RefuseStranger(const wire::Hello& hello);
  std::optional<Decision> CompareSettings(const wire::Hello& hello);
  bool IsClosed(Member& member, const std::function<bool(net::NodeId)>& closed);
  Decision Hold(net::NodeId node, const Member& old, const wire::Hello& hello);
  void Register(const Member& member, net::NodeId node);

  const Config& config_;
  const Settings settings_;
  const uint64_t settings_hash_;
  const TaskId self_;
  const milliseconds detect_;
  const milliseconds startup_;
  TimePoint last_tick_;
  std::vector<Member> members_;  // ps first, then workers, without this ps
  std::unordered_map<net::NodeId, size_t> by_node_;
  std::function<void(net::NodeId, bool)> on_known_;
  std::optional<TimePoint> compared_;  // when a list of settings was compared, by last_tick_
  int values_told_ = 0;
  std::string last_refusal_;
  struct Held {
    milliseconds time{0};  // counted in ticks
    bool told = false;
  };
  std::unordered_map<net::NodeId, Held> held_;  // newcomers with an index in use
};

}  // namespace dtrain
