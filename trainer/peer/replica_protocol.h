// The protocol of replicas (failure.replicas), without messages, time or parameters: three rules that
// together keep every answered update while any one ps is lost. A replica has an epoch, which ps 0 names;
// each is used once. replica_protocol_test.cc searches all that can happen among them.
//   ReplicaNote     ps 0, of each ps: which epoch its replica has, and whether it counts
//   ReplicaGate     a ps: whether its answers wait for its replica
//   ReplicaSession  the next ps, which holds the replica: which records it takes
// A ps i > 0 answers without its replica only after ps 0 has noted that the replica does not count, which
// OnEpoch() of its gate tells. A ps that was lost is filled only from a replica that counts, of that epoch.
// Nobody notes that for ps 0: it names the epochs of its own, and answers without it only after ps 1,
// whatever process that is, has opened the next one and dropped what it had. It is filled from what ps 1 has
// whole. What these rules rely on:
// - ps 0 takes no report of a process that was replaced. A ps that fills itself gets no orders, and if it
//   cannot be filled, the run goes back.
// - The numbers of a conversation go on when an epoch begins, or the conversation is a new one.
// - An epoch is opened at one process of the holder only: if the connection breaks before the holder has
//   acknowledged that the replica is open, the replica is broken.
//
// Owner: the leader, ReplicaLink, ReplicaHolder. Thread: the ps loop.
#pragma once

#include <cstdint>

#include "net/codec.h"

namespace dtrain {

class ReplicaNote {
 public:
  uint64_t epoch() const { return epoch_; }
  // Whether the replica has all that the ps has answered. Until then the ps is told the epoch again, since
  // the order may be lost, or the report that the replica is filled.
  bool counts() const { return counts_; }

  // The ps says how far its replica is. What it says of another epoch is out of date.
  void OnReport(uint64_t epoch, wire::ReplicaPhase phase) {
    if (epoch != epoch_) return;
    if (phase == wire::ReplicaPhase::Broken) BeginNext();
    if (phase == wire::ReplicaPhase::Filled) counts_ = true;
  }
  // The replica does not count from now on: its holder is lost, or nobody began it yet.
  void BeginNext() {
    counts_ = false;
    ++epoch_;
  }
  template <typename Archive>
  void State(Archive& archive) {
    archive(epoch_, counts_);
  }

 private:
  uint64_t epoch_ = 1;
  bool counts_ = false;
};

class ReplicaGate {
 public:
  // `own`: of ps 0, which names its epochs itself.
  explicit ReplicaGate(bool own = false) : own_(own) {}

  // 0: ps 0 has named none yet.
  uint64_t epoch() const { return epoch_; }
  wire::ReplicaPhase phase() const { return phase_; }
  // Whether an answer waits until the replica has what the answer contains.
  bool answers_wait() const { return waits_; }
  // Whether an answer leaves. `record`: the latest that was made before it; `acknowledged`: the latest that
  // the holder has. What is applied while the replica is broken has no record, so no acknowledgement counts.
  bool Leaves(uint64_t record, uint64_t acknowledged) const {
    return !waits_ || (records() && record <= acknowledged);
  }
  // Whether updates are recorded for the replica.
  bool records() const { return phase_ != wire::ReplicaPhase::Broken; }

  // ps 0 names this epoch, and has noted that the replica before does not count. True: nothing waits for that
  // one any more, and a new one begins. False: it is out of date, or known.
  bool OnEpoch(uint64_t epoch) {
    if (epoch <= epoch_) return false;
    epoch_ = epoch;
    phase_ = wire::ReplicaPhase::Filling;
    if (!own_) waits_ = false;
    return true;
  }
  // The holder has opened the replica of this epoch, and has no older one any more.
  void SetOpened() {
    if (phase_ == wire::ReplicaPhase::Filling) waits_ = false;
  }
  // The run ends without the holder.
  void GiveUp() {
    SetBroken();
    waits_ = false;
  }
  // This ps was filled from the replica of this epoch, which goes on as its own.
  void GoOn(uint64_t epoch) {
    epoch_ = epoch;
    phase_ = wire::ReplicaPhase::Filled;
    waits_ = true;
  }
  // The last unit is recorded. Answers wait from now on: all that left before is in the records up to this
  // one. Record units only after the holder has acknowledged that the replica is open, or answers wait for a
  // holder that is away.
  void BeginWait() {
    if (phase_ == wire::ReplicaPhase::Filling) waits_ = true;
  }
  // The holder has acknowledged the last unit. Call it before ps 0 is told.
  void SetFilled() {
    if (phase_ == wire::ReplicaPhase::Filling && waits_) phase_ = wire::ReplicaPhase::Filled;
  }
  // The holder does not answer, or has another replica. Answers that wait go on waiting.
  void SetBroken() { phase_ = wire::ReplicaPhase::Broken; }

 private:
  bool own_;
  uint64_t epoch_ = 0;
  wire::ReplicaPhase phase_ = wire::ReplicaPhase::Broken;
  bool waits_ = false;
};

class ReplicaSession {
 public:
  uint64_t epoch() const { return epoch_; }
  // The conversation whose records are taken; 0: none.
  uint64_t node() const { return node_; }
  // The latest record taken; all before it were.
  uint64_t last() const { return last_; }
  bool complete() const { return complete_; }

  enum class Take { kTake, kRepeated, kDrop };
  // Record `number` of a conversation opens a replica. A new one has nothing yet; with `fetches` a ps fills
  // itself from the one that is here, whose earlier conversation ends with that. kRepeated: answer it again,
  // and change nothing. kDrop: refuse it.
  Take Open(uint64_t node, uint64_t number, uint64_t epoch, bool fetches) {
    if (node == node_ && number <= last_) return Take::kRepeated;
    if (fetches ? epoch != epoch_ || !complete_ : epoch <= epoch_) return Take::kDrop;
    node_ = node;
    last_ = number;
    epoch_ = epoch;
    complete_ = fetches;
    return Take::kTake;
  }
  // What to do with a record: take it, answer it again, or wait for those before it.
  Take OnRecord(uint64_t node, uint64_t number) {
    if (node != node_ || number > last_ + 1) return Take::kDrop;
    if (number <= last_) return Take::kRepeated;
    last_ = number;
    return Take::kTake;
  }
  // The last unit is here.
  void SetComplete() { complete_ = true; }
  // A record was wrong: nothing more is taken, and nobody is filled from what is here.
  void Close() {
    node_ = 0;
    complete_ = false;
  }

 private:
  uint64_t node_ = 0;
  uint64_t epoch_ = 0;
  uint64_t last_ = 0;
  bool complete_ = false;
};

}  // namespace dtrain
