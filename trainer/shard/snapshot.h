// Snapshot: a ps's range, weights and optimizer slots, as it was at one moment, while training goes on.
// Taking one copies no values: the weights of that moment are shared, and a version that is shared is not
// written again (net/lent_buffer.h); a block of a slot is copied before the first update of it.
// What is released before that needs no copy: a ps that reads the pieces itself, in order, releasing each,
// runs ahead of the updates. What ps 0 asks for is released at the end, since it may ask again.
// Pieces are those of model/layout.h. Owner: ParameterShard, and whoever reads it. Thread:
// BeforeUpdate() the ps loop's; the others any. The lock is held for the copy of one block at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "gpu/view.h"
#include "net/codec.h"
#include "net/lent_buffer.h"
#include "trainer/model/layout.h"

namespace dtrain {

// SnapshotBuffers: the buffers that a snapshot needs while training goes on: for each block that is updated
// before it was read, one of the weights and one of each slot. They are kept from one checkpoint to the next:
// memory that a process touches for the first time costs several times what writing it again does. So a ps
// keeps as many as its checkpoints ever needed at once: the weights and slots once more at most. Owner:
// ParameterShard and its snapshots. Thread: any.
class SnapshotBuffers {
 public:
  // `bytes`: of each. `max`: that are ever needed at once.
  SnapshotBuffers(size_t bytes, size_t max) : bytes_(bytes), max_(max) {}

  // Nobody else's. What is in it is of an earlier use.
  net::LentBuffer Take();
  // Kept where nobody else has it: otherwise it goes with, or stays, whose it is.
  void Give(net::LentBuffer buffer);
  // How many are kept and not taken.
  size_t count() const;

 private:
  const size_t bytes_;
  const size_t max_;
  mutable std::mutex mutex_;
  std::vector<net::LentBuffer> buffers_;
};

class Snapshot {
 public:
  // The bytes of a piece, and what keeps them; unset: they are the reader's own.
  struct Piece {
    net::TensorView bytes;
    std::optional<net::LentBuffer> hold;
  };

  // `weights`: shares of the blocks. `slots`: of the whole range; read until every piece is released.
  // `buffers`: for copies, of the largest block; shared with the updates, whose versions these are.
  Snapshot(Range range, std::vector<net::LentBuffer> weights, std::vector<gpu::Span<const float>> slots,
           std::shared_ptr<SnapshotBuffers> buffers);

  // All of it copied already: `pieces` in their order, of a range with so many slots.
  Snapshot(Range range, int64_t slots, std::vector<net::LentBuffer> pieces,
           std::shared_ptr<SnapshotBuffers> buffers);

  int64_t piece_count() const { return static_cast<int64_t>(kept_.size()); }
  // Where the piece lies in the range.
  RangePiece At(int64_t piece) const {
    return RangePieceAt(range_, static_cast<int64_t>(slots_.size()), piece);
  }

  // Unset where it is released, or there is no such piece. `scratch`, of the largest block's values: for what
  // is not kept apart yet. What is read or lent outlives the snapshot.
  std::optional<Piece> Read(int64_t piece, float* scratch) const;
  // To be sent exactly once.
  std::optional<net::LentBytes> Lend(int64_t piece) const;
  // Nobody reads pieces before this one any more: their buffers go back, and no update copies them.
  void ReleaseBefore(int64_t piece);

  // The slots of a block are about to change.
  void BeforeUpdate(int64_t block);

 private:
  size_t BytesOf(int64_t piece) const {
    return static_cast<size_t>(At(piece).elements.size()) * sizeof(float);
  }
  bool Has(int64_t piece) const { return piece >= released_ && piece < piece_count(); }
  void CopySlot(int64_t piece, float* to) const;

  const Range range_;
  const std::vector<gpu::Span<const float>> slots_;
  const std::shared_ptr<SnapshotBuffers> buffers_;
  std::vector<bool> updated_;                         // by block; the ps loop's
  mutable std::mutex mutex_;                          // of what follows, and of reading `slots_`
  std::vector<std::optional<net::LentBuffer>> kept_;  // by piece; unset: released, or still in `slots_`
  int64_t released_ = 0;                              // pieces before it are
};

}  // namespace dtrain
