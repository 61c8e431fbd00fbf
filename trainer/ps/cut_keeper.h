// CutKeeper: what every ps does for a checkpoint: it keeps its range as of the round, or the moment, that ps
// 0 names, and gives the pieces to whoever writes them. Of two checkpoints the one with the larger number
// counts. Messages: docs/wire.md, Checkpoints.
// Owner: PsServer. Thread: the ps loop; the cut itself may be read on another.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/parameter_shard.h"
#include "trainer/ps/update_rule.h"

namespace dtrain {

class CutKeeper {
 public:
  // `kept` is called when the range is kept, and again when that is asked again; cut() and the others tell of
  // it. All outlive this.
  CutKeeper(const Config& config, ParameterShard& shard, const UpdateRule& rule, Outbox& outbox,
            std::function<void()> kept)
      : config_(config), shard_(shard), rule_(rule), outbox_(outbox), kept_(std::move(kept)) {}

  // From ps 0. One that drops is not answered: the next checkpoint drops what it would have.
  void OnCut(const wire::Cut& cut);
  // The same for ps 0 itself. `number` is at least 1.
  void Take(uint64_t number, uint64_t round);
  void Drop(uint64_t number);
  // Takes the cut as soon as its round is finished. To be called after every message: no round begins
  // meanwhile.
  void Tick() {
    if (due_) TakeWhenFinished();
  }
  // From ps 0: answered with the piece. Not answered where it is not kept, or the queue is full: ps 0 asks
  // again.
  void OnReadPiece(net::NodeId from, const wire::ReadPiece& read);

  // The latest checkpoint that was heard of; 0: none yet.
  uint64_t number() const { return number_; }
  // Null: not taken yet, or dropped. Shared with the thread that writes it.
  const std::shared_ptr<RangeCut>& cut() const { return cut_; }

 private:
  void TakeWhenFinished();

  const Config& config_;
  ParameterShard& shard_;
  const UpdateRule& rule_;
  Outbox& outbox_;
  const std::function<void()> kept_;
  uint64_t number_ = 0;
  uint64_t round_ = 0;
  bool due_ = false;  // wanted, and not taken yet
  std::shared_ptr<RangeCut> cut_;
};

}  // namespace dtrain
