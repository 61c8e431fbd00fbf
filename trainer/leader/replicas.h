// Replicas: the leader's part in failure.replicas. It names the epoch of each replica to its ps, notes which
// replicas count (replica_protocol.h), and decides whether the run can wait for a ps that is lost, which then
// fills itself from its replica. That of ps i is on ps (i + 1) mod n, its holder; the epochs of its own ps 0
// names to itself. One ps at a time can be recovered. Owner: LocalLeader. Thread: the ps loop. docs/wire.md:
// Order, Report, Welcome.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "net/codec.h"
#include "trainer/config/choices.h"
#include "trainer/peer/conversations.h"
#include "trainer/peer/replica_protocol.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/replica_link.h"
#include "trainer/ps/task_table.h"

namespace dtrain {

// ReplicaFigures: what ps 0 knows of the replica of a ps.
struct ReplicaFigures {
  std::string on;  // "ps 2"
  bool counts = false;
  uint64_t epoch = 0;
  uint64_t behind = 0;  // records that the holder had not acknowledged when the ps told it last
};

class Replicas {
 public:
  // With failure.replicas: 0 it does nothing.
  // `own`: the link of ps 0 to its replica; null: it has none.
  Replicas(const Config& config, TaskTable& members, Outbox& outbox, ReplicaLink* own, Logger& log);

  bool on() const { return on_; }
  // The run takes steps: names each ps the epoch of its replica, and repeats that until it counts.
  void Begin();
  // The run is over: nobody needs a replica any more. A ps that is filling itself joins anew.
  void End();
  void Tick(TimePoint now);
  // A ps says how far its replica is. False: it is being recovered, and could not be filled.
  bool OnReport(const Member& ps, const wire::ReplicaState& state);

  // Whether the run can wait for this ps, which is lost.
  bool CanRecover(const Member& ps) const { return on_ && begun_ && !ps.is_worker() && WhyNot(ps).empty(); }
  // Why it cannot though it has replicas: "; its replica on ps 2 does not count yet"; empty: there are none.
  std::string WhyNot(const Member& ps) const;
  // The ps is lost, and the run waits for it; or its next process was lost before it was filled.
  void Lost(Member& ps, TimePoint now);
  // ps 0 goes on without its replica: the run ends.
  void GiveUp();
  template <typename Archive>
  void State(Archive& archive) {
    archive(begun_, notes_);
  }
  // This ps 0 goes on in the place of a lost one, whose state was read, and the replica that it held is gone
  // with it.
  void TakeOver();
  // The ps has filled itself. Returns since when it was lost.
  TimePoint Recovered(Member& ps);
  // The epoch of the replica from which the ps fills itself; 0: it is not being recovered.
  uint64_t EpochFor(const Member& ps) const { return IsRecovering(ps) ? NoteOf(ps).epoch() : 0; }
  bool IsRecovering(const Member& ps) const { return recovery_ && recovery_->ps == &ps; }
  // The ps that is being recovered while it is not here; null: none.
  Member* Away() const { return recovery_ && !recovery_->ps->here() ? recovery_->ps : nullptr; }
  std::string AwaitedHolder() const { return HolderOf(*recovery_->ps); }
  // Who holds its replica; null: ps 0.
  Member* Holder(const Member& ps) const {
    return HolderIndex(ps) == 0 ? nullptr : &members_.Ps(HolderIndex(ps));
  }

  // Why the wait is over: "ps 1 (...) was lost and is not back after 300 s (failure.wait_s)"; empty: it is
  // not.
  std::string WhyOver(TimePoint now) const;
  // "ps 1 (...) was lost 2.1 s ago".
  std::string LostText(TimePoint now) const;
  // For whom the run waits: "ps 1, which fills itself from its replica on ps 2"; empty: for no ps.
  std::string Awaited() const;
  // The same with how long yet; empty: for no ps.
  std::string WaitingText(TimePoint now) const;
  // "ps 2": who holds the replica of this ps.
  std::string HolderOf(const Member& ps) const;
  // By ps; empty: there are no replicas.
  std::vector<ReplicaFigures> Figures() const;

 private:
  struct Recovery {
    Member* ps;
    TimePoint since;       // when its first process was lost
    TimePoint away_since;  // and its latest one
    WaitPace tells;
  };
  void TendOwn(TimePoint now);
  size_t HolderIndex(const Member& ps) const;
  ReplicaNote& NoteOf(const Member& ps) { return notes_[static_cast<size_t>(ps.task.index)]; }
  const ReplicaNote& NoteOf(const Member& ps) const { return notes_[static_cast<size_t>(ps.task.index)]; }
  void Tell(const Member& ps);

  const Config& config_;
  TaskTable& members_;
  Outbox& outbox_;
  ReplicaLink* const own_;
  Logger& log_;
  const bool on_;
  bool begun_ = false;
  bool given_up_ = false;           // the own one
  TimePoint own_since_;             // when ps 0 could answer last, or did not have to
  std::vector<ReplicaNote> notes_;  // by ps
  std::vector<uint64_t> behind_;    // by ps
  std::optional<Recovery> recovery_;
  TimePoint next_order_;
};

}  // namespace dtrain
