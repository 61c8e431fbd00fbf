// PartPieces: how one part of a ps (trainer/shard/part.h) is cut into pieces, the units in which it is
// written to a shard file, sent between ps, and restored, each of about 1 MiB at most. Kinds: a range of the
// flat vector (of each block the weights, then each slot; RangePieceAt()), rows of a range of features
// (table/row_pieces.h), rows of a hash table (table/hash_pieces.h). In a shard file the parts of a ps follow
// each other, and both ends of the wire know their pieces by number. Owner: any. Thread: any; const.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "net/channel.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/model/layout.h"

namespace dtrain {

class CheckpointReader;
class ShardWriter;

// Piece: the number of a piece in a part of a ps.
struct Piece {
  size_t part = 0;
  int64_t number = 0;
};

// WrittenNumbers: takes off what the writer of a shard file said of it, part by part.
struct WrittenNumbers {
  const WrittenPart& part;
  size_t checksums = 0;  // that were taken
  size_t sizes = 0;
  size_t firsts = 0;
  bool all_taken() const {
    return checksums == part.checksums.size() && sizes == part.sizes.size() && firsts == part.firsts.size();
  }
};

class PartPieces {
 public:
  // In the place of a number: there are as many as the rows need, and one without bytes is behind the last.
  static constexpr int64_t kOpenEnd = std::numeric_limits<int64_t>::max();

  virtual ~PartPieces() = default;
  virtual int64_t count() const = 0;
  // Whether a piece can have so many bytes.
  virtual bool Fits(int64_t number, size_t bytes) const = 0;
  // How many numbers WrittenPart has of it; 0: it depends on the rows.
  virtual size_t numbers() const = 0;

  // Appends a piece to a shard file and adds what is said of it to `written`.
  virtual void Write(int64_t number, net::TensorView piece, ShardWriter* file,
                     WrittenPart* written) const = 0;
  // Adds the pieces that a writer has written to the shard. False: it has said too little.
  virtual bool AddTo(StoredShard* shard, WrittenNumbers* said) const = 0;

  // The pieces of the part in a checkpoint, whatever layout wrote it.
  virtual int64_t CountIn(const CheckpointReader& from) const;
  virtual void Read(CheckpointReader* from, int64_t number, std::vector<std::byte>* piece) const = 0;
};

// The parts of a ps, in their order.
using PartsOfPs = std::vector<std::unique_ptr<const PartPieces>>;
PartsOfPs PartsOf(const Layout& layout, int ps, SlotCounts slots);

}  // namespace dtrain
