// ShardWriter: writes one shard file of a checkpoint, piece by piece. To leave processors and memory to
// training, the bytes go to the disk past the page cache (O_DIRECT), 4 MiB at a time, if the file system can
// do that. Otherwise the system writes them out while the next pieces come, and at most about 40 MiB are not
// on the disk. Either way Finish() has little left to wait for.
// Owner: a ps that writes a part. Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/channel.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/shard_format.h"
#include "trainer/model/layout.h"

namespace dtrain {

class ShardWriter {
 public:
  // Makes the file, which must not exist. Throws SaveError, like all calls.
  explicit ShardWriter(std::string path);
  // Leaves an unfinished file as it is.
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  // Appends a piece of float32 and its padding of zeros; returns the checksum of both.
  uint64_t Add(const void* data, size_t bytes);
  // Waits until the file is on the disk, and closes it.
  void Finish();
  int64_t bytes() const { return bytes_; }

 private:
  struct FreeChunk {
    void operator()(char* chunk) const;
  };

  void Append(const char* data, size_t bytes);
  void Sync() const;
  void Flush();
  void GoThroughCache();
  void PushOut();
  [[noreturn]] void Fail(int error) const;

  const std::string path_;
  int fd_ = -1;
  bool direct_ = true;  // past the page cache
  std::unique_ptr<char, FreeChunk> chunk_;
  size_t in_chunk_ = 0;  // its bytes that are not in the file yet
  int64_t bytes_ = 0;
  int64_t flushed_ = 0;  // bytes in the file
  int64_t pushed_ = 0;   // bytes that the system was told to write to the disk
};

// RangeWriter: writes the shard file of one ps from the pieces of its range (trainer/model/layout.h), which
// in the file are also cut where variables meet, and behind them of its rows of a table
// (trainer/table/row_pieces.h).
// Owner: a ps that writes a part. Thread: one at a time.
class RangeWriter {
 public:
  // Makes the file in `directory`. `slots`: the number of optimizer slots. Throws IoError, like all calls.
  RangeWriter(const Layout& layout, int ps, int64_t slots, const std::string& directory);

  int64_t piece_count() const { return count_; }  // PartPieces()
  // Appends the next piece, with all its values.
  void Add(net::TensorView values);
  // Waits until all pieces are on the disk.
  WrittenPart Finish();

 private:
  void AddRange(net::TensorView values);

  const Range range_;
  const int64_t slots_;
  const bool is_hashed_;
  const int64_t of_range_;           // pieces
  const int64_t count_;              // of all
  const std::vector<Piece> pieces_;  // of the file, of a range
  ShardWriter file_;
  int64_t added_ = 0;
  WrittenPart written_;
};

}  // namespace dtrain
