// RangeWriter: writes the shard file of one ps from the pieces that its range is kept in
// (trainer/model/blocks.h): the file is cut where variables meet as well, what a ps keeps is not.
// Owner: a ps that writes a part. Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/checkpoint/pieces.h"
#include "trainer/checkpoint/shard_writer.h"
#include "trainer/model/layout.h"

namespace dtrain {

class RangeWriter {
 public:
  // Makes the file in `directory`. Throws IoError, as all here. `slots`: how many the optimizer has.
  RangeWriter(const Layout& layout, int ps, int64_t slots, const std::string& directory);

  // How many pieces the range has to be written in; 0 where it is empty.
  int64_t piece_count() const { return count_; }
  // The next piece: all of its values.
  void Add(const std::byte* values);
  // When all are there: waits until they are on the disk. The checksums of the file's pieces.
  std::vector<uint64_t> Finish();

 private:
  const Range range_;
  const int64_t slots_;
  const int64_t count_;
  const std::vector<Piece> pieces_;  // of the file
  ShardWriter file_;
  int64_t added_ = 0;
  std::vector<uint64_t> checksums_;
};

}  // namespace dtrain
