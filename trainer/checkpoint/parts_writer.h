// PartsWriter: writes the shard file of one ps from the pieces of its parts, which come in order.
// Owner: a ps that writes a part of a checkpoint. Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "net/channel.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/part_pieces.h"
#include "trainer/checkpoint/shard_writer.h"
#include "trainer/model/layout.h"

namespace dtrain {

class PartsWriter {
 public:
  // Makes the file in `directory`. Throws SaveError, like all calls.
  PartsWriter(const Layout& layout, int ps, SlotCounts slots, const std::string& directory);

  const PartsOfPs& parts() const { return parts_; }
  // Appends the next piece of a part, with all its values. All parts before this one are complete.
  void Add(size_t part, net::TensorView piece);
  // What WrittenPart has by now.
  size_t numbers() const {
    return written_.checksums.size() + written_.sizes.size() + written_.firsts.size();
  }
  // Waits until all pieces are on the disk.
  WrittenPart Finish();

 private:
  void GoTo(size_t part);

  const PartsOfPs parts_;
  ShardWriter file_;
  Piece next_;
  WrittenPart written_;
};

}  // namespace dtrain
