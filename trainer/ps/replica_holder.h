// ReplicaHolder: holds the replica of the ps before this one (failure.replicas): its parameters and what it
// knows of its workers, kept up to date by its records (replica_link.h). It takes and acknowledges records
// whatever this ps itself waits for, so that no ring of ps can block; the parameters of a lost ps come back
// from here. A thread of its own applies them, behind the acknowledgement: what is acknowledged is in the
// memory of this process. If that ps does not come back, this one stands in for it: it answers the workers
// what is open there, so that their last steps become whole, and has the part of that ps in the last
// checkpoint. Owner: PsServer. Thread: the ps loop. Messages: docs/wire.md, Replicas.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "net/codec.h"
#include "trainer/peer/replica_protocol.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/ps_task.h"
#include "trainer/ps/record_thread.h"
#include "trainer/ps/replica_copy.h"
#include "trainer/ps/snapshot_keeper.h"
#include "trainer/ps/state_image.h"

namespace dtrain {

class ReplicaHolder {
 public:
  // `of`: whose replica. `on_difference`: called when it is not what it is a copy of.
  ReplicaHolder(const PsTask& task, Outbox& outbox, TaskTable& members, int of,
                std::function<void(const std::string& why)> on_difference)
      : task_(task), outbox_(outbox), members_(members), of_(of), on_difference_(std::move(on_difference)) {}
  ~ReplicaHolder();
  // Call this before anything is handled.
  void set_leader(Leader& leader) { leader_ = &leader; }

  // Whether the conversation is that of the ps whose replica this is.
  bool IsFrom(net::NodeId node) const { return node != 0 && node == session_.node() && !stands_in_; }
  // Takes a message of that conversation.
  void OnMessage(net::Message& message);
  // A conversation that is not known opens, or says something else of replicas. False: it is not for this.
  bool OnStranger(net::NodeId from, uint32_t key, const wire::Envelope& envelope);
  // Records were taken and are not acknowledged yet.
  bool owes() const { return owes_; }
  // Acknowledges them. Call it at the end of a turn of the loop, when what has come is taken.
  void Acknowledge();

  // The ps is lost and does not come back: stands in for it with the replica of this epoch, and tells the
  // workers. Nothing is taken from that ps any more. Call it again, since what it tells may be lost. Does
  // nothing if that replica is not whole here.
  void StandIn(uint64_t epoch);
  // Whether the conversation is that of a worker with the lost ps.
  bool StandsInFor(net::NodeId node) const { return stands_in_ && shadow_->members.Find(node) != nullptr; }
  // Takes a message of that conversation.
  void OnWorker(net::NodeId from, net::Message& message);
  // sync: ps 0 has decided this round.
  void OnRound(RoundDecision round);
  // Keeps the part of the lost ps, as SnapshotKeeper does. Null: the replica of this epoch (0: of any) is not
  // whole here.
  SnapshotKeeper* Keeper(uint64_t epoch = 0);
  // Fills `to`, in this process, with the replica, which is not here any more then. Returns why it cannot;
  // empty: it is done.
  std::string HandOver(const PsState& to);
  uint64_t epoch() const { return session_.epoch(); }
  TimePoint heard() const { return heard_; }
  // A worker has come here with its conversation with ps 0, whose replica this is.
  bool sought() const { return sought_; }
  // An order to that. If there is none, tells the leader so.
  void OnOrder(const wire::SnapshotOrder& order);
  // As of SnapshotKeeper.
  void AfterMessage() {
    if (stands_in_) shadow_->keeper.AfterMessage();
  }
  void Tick();
  // Call Tick() soon.
  bool busy() const {
    return shadow_ != nullptr && (shadow_->keeper.writing() || (stands_in_ && shadow_->outbox.late()));
  }

 private:
  // What the lost ps would be.
  struct Shadow {
    Shadow(const PsTask& task, int of, Outbox& to_leader);
    void Apply(net::Message& record);
    std::string Compare(const wire::ReplicaCheck& check);
    Shard shard;
    TaskTable members;
    StateImage leader;  // of ps 0: the leader's state
    Outbox outbox;
    std::unique_ptr<UpdateRule> rule;
    RecordReader reader;
    GradientReader gradients;
    SnapshotKeeper keeper;
    std::atomic<bool> has_news{false};  // one of the next two, for the ps loop
    std::string wrong;                  // with a record, after which nothing is applied
    std::string difference;             // the name of a unit that is not what it is a copy of
    uint64_t wrong_record = 0;
    RecordThread records;  // uses the rest, so that it must end first
  };
  static PsState StateOf(const PsTask& task, int of, Shadow& shadow);
  void OnRecord(const wire::Envelope& envelope, net::Message& message);
  void Settle();
  void OnAsk(net::NodeId from, const wire::Envelope& envelope);
  void OnRead(const wire::ReplicaRead& read);
  void Refuse(net::NodeId to, uint64_t request, wire::Reason reason, const std::string& text);
  void DropLostWorkers();
  std::string Take(Member& member, const wire::Envelope& envelope, bool repeated, net::Message& message);

  const PsTask& task_;
  Outbox& outbox_;
  TaskTable& members_;  // of this ps
  Leader* leader_ = nullptr;
  const int of_;
  const std::function<void(const std::string& why)> on_difference_;
  ReplicaSession session_;
  std::unique_ptr<Shadow> shadow_;
  std::optional<CopyItems> items_;  // for the ps that fills itself
  net::Encoder encoder_;
  std::vector<net::Message> turn_;  // of ps 0: records that do not count before the turn has ended
  uint64_t owner_ = 0;              // the process whose replica this is
  TimePoint heard_;
  bool sought_ = false;
  bool owes_ = false;
  bool stands_in_ = false;
};

}  // namespace dtrain
