// SnapshotKeeper: a ps's part in a checkpoint. It takes a snapshot of the range after the round that the
// leader names, or at once, and writes it if this ps sees the leader's checkpoint.dir; otherwise it sends the
// pieces to the leader. A newer checkpoint (larger number) replaces an older one. Results go to
// Leader::OnSnapshot(). A snapshot that a worker evaluates first answers its pulls. Messages: docs/wire.md,
// Orders to a ps.
// Owner: PsServer. Thread: the ps loop; another thread may read the snapshot.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/log.h"
#include "net/codec.h"
#include "trainer/config/choices.h"
#include "trainer/model/layout.h"
#include "trainer/ps/leader.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/update_rule.h"
#include "trainer/shard/shard.h"
#include "trainer/shard/shard_saver.h"

namespace dtrain {

class SnapshotKeeper {
 public:
  struct Parts {
    const Config& config;
    Shard& shard;
    const UpdateRule& rule;
    Outbox& outbox;
    const Layout& layout;
    int ps;
    Logger& log;
    bool of_replica = false;  // of another ps
  };
  explicit SnapshotKeeper(const Parts& parts);
  // Call this before anything is handled.
  void set_leader(Leader& leader) { leader_ = &leader; }

  // Carries out an order of the leader over the network: take, write or drop. A drop is not answered; if it
  // gets lost, the next checkpoint drops the snapshot.
  void OnOrder(const wire::SnapshotOrder& order);
  // The three orders. `number` is at least 1. `base`: the number of a checkpoint of all, for one of what has
  // changed since; 0: it is one of all. If this ps has not taken `base`, the order is dropped. `evaluate`: a
  // worker evaluates it before it is written or dropped. The leader
  // repeats an order to write until it has ended; Write() returns whether the writing has begun with this
  // call: not while the snapshot is not taken, or an earlier one is still being written.
  void Take(uint64_t number, uint64_t round, uint64_t base = 0, bool evaluate = false);
  bool Write(uint64_t number, const std::string& directory);
  void Drop(uint64_t number);
  // Sends a piece to the leader, and releases those before it that the leader must have. No answer when there
  // is none or the queue is full: the leader asks again. If the snapshot is given up the leader is told why.
  void OnReadPiece(net::NodeId from, const wire::ReadPiece& read);
  // Answers a worker's pull of a block of a snapshot. The keys of rows are on the rule's desk.
  void OnPull(const Member& worker, uint64_t request, const wire::Pull& pull);

  // Takes the snapshot as soon as its round is finished. Call it after every message, so that no round begins
  // in between.
  void AfterMessage() {
    if (due_) TakeWhenFinished();
  }
  // Tells the leader when writing has ended, or the snapshot is given up.
  void Tick();
  bool writing() const { return saver_.busy(); }
  // A snapshot is here, or its writing has not ended.
  bool keeps() const { return snapshot_ != nullptr || saver_.busy(); }

 private:
  bool Kept(uint64_t number) const { return snapshot_ && number == number_; }
  void TakeWhenFinished();
  void TellCost(const SnapshotCost& cost) const;
  std::string WhyGivenUp(const SnapshotCost& cost) const;
  void Tell();

  const Parts parts_;
  Leader* leader_ = nullptr;
  ShardSaver saver_;
  uint64_t number_ = 0;  // of the newest known checkpoint; 0: none yet
  uint64_t round_ = 0;
  uint64_t base_ = 0;       // of checkpoint `number_`
  bool evaluate_ = false;   // the same
  uint64_t last_full_ = 0;  // the latest that was taken of all; 0: none yet
  bool due_ = false;        // ordered and not taken yet
  bool told_given_up_ = false;
  std::shared_ptr<ShardSnapshot> snapshot_;  // shared with the thread that writes it
};

}  // namespace dtrain
