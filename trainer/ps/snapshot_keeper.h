// SnapshotKeeper: a ps's part in a checkpoint: it takes a snapshot of its range as of the round, or the
// moment, that the leader names, and writes it where it sees the leader's checkpoint.dir, or gives its pieces
// to the leader. Of two checkpoints the one with the larger number counts. What becomes of an order is told
// by Leader::OnSnapshot(). Messages: docs/wire.md, Checkpoints. Owner: PsServer. Thread: the ps loop; a
// snapshot itself may be read on another.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/log.h"
#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"
#include "trainer/ps/leader.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/update_rule.h"
#include "trainer/shard/parameter_shard.h"
#include "trainer/shard/shard_saver.h"

namespace dtrain {

class SnapshotKeeper {
 public:
  struct Parts {
    const Config& config;
    ParameterShard& shard;
    const UpdateRule& rule;
    Outbox& outbox;
    const std::unique_ptr<Leader>& leader;  // set before anything is handled
    const Layout& layout;
    int ps;
    Logger& log;
  };
  explicit SnapshotKeeper(const Parts& parts);

  // The leader's order over the network: to take, to write or to drop. A drop is not answered: the next
  // checkpoint drops what it would have.
  void OnOrder(const wire::SnapshotOrder& order);
  // The same, one by one. `number` is at least 1. An order to write is repeated until it has ended; nothing
  // happens where the snapshot is not taken, or an earlier writing has not ended.
  void Take(uint64_t number, uint64_t round);
  void Write(uint64_t number, const std::string& directory);
  void Drop(uint64_t number);
  // The leader asks for a piece. Not answered where it is not kept, or the queue is full: it asks again.
  void OnReadPiece(net::NodeId from, const wire::ReadPiece& read);

  // Takes the snapshot as soon as its round is finished. To be called after every message: no round begins
  // meanwhile.
  void AfterMessage() {
    if (due_) TakeWhenFinished();
  }
  // Tells when the writing has ended.
  void Tick();
  bool writing() const { return saver_.busy(); }

 private:
  bool Kept(uint64_t number) const { return snapshot_ && number == number_; }
  void TakeWhenFinished();
  void Tell() const { parts_.leader->OnSnapshot(number_, saver_.Of(number_)); }

  const Parts parts_;
  ShardSaver saver_;
  uint64_t number_ = 0;  // the latest checkpoint that was heard of; 0: none yet
  uint64_t round_ = 0;
  bool due_ = false;                    // wanted, and not taken yet
  std::shared_ptr<Snapshot> snapshot_;  // shared with the thread that writes it
};

}  // namespace dtrain
