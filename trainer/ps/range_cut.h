// RangeCut: a ps's range, weights and optimizer slots, as it was at one moment, while training goes on.
// Taking one copies no values: the weights of that moment are shared, and a version that is shared is not
// written again (net/lent_buffer.h); a block of a slot is copied before the first update of it.
// Pieces are those of model/range_pieces.h.
// Owner: ParameterShard, and whoever reads it. Thread: BeforeUpdate() the ps loop's; the others any. The lock
// is held for the copy of one block at most.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "gpu/view.h"
#include "net/codec.h"
#include "net/lent_buffer.h"
#include "trainer/model/range_pieces.h"

namespace dtrain {

class RangeCut {
 public:
  // The bytes of a piece, and what keeps them.
  struct Piece {
    net::TensorView bytes;
    net::LentBuffer hold;
  };

  // `weights`: shares of the blocks. `slots`: of the whole range; read until every piece is released.
  RangeCut(Range range, std::vector<net::LentBuffer> weights, std::vector<gpu::Span<const float>> slots);

  int64_t piece_count() const { return static_cast<int64_t>(kept_.size()); }
  // Where the piece lies in the range.
  RangePiece At(int64_t piece) const { return RangePieceAt(range_, piece); }

  // Unset where it is released, or there is no such piece. What is read or lent outlives the cut.
  std::optional<Piece> Read(int64_t piece) const;
  // To be sent exactly once.
  std::optional<net::LentBytes> Lend(int64_t piece) const;
  // Nobody reads pieces before this one any more: their memory goes back, and no update copies them.
  void ReleaseBefore(int64_t piece);

  // The slots of a block are about to change.
  void BeforeUpdate(int64_t block);

 private:
  size_t BytesOf(int64_t piece) const {
    return static_cast<size_t>(At(piece).elements.size()) * sizeof(float);
  }
  net::LentBuffer CopyOfSlot(int64_t piece) const;

  const Range range_;
  const std::vector<gpu::Span<const float>> slots_;
  std::vector<bool> updated_;                         // by block; the ps loop's
  mutable std::mutex mutex_;                          // of what follows, and of reading `slots_`
  std::vector<std::optional<net::LentBuffer>> kept_;  // by piece; unset: released, or still in `slots_`
  int64_t released_ = 0;                              // pieces before it are
};

}  // namespace dtrain
