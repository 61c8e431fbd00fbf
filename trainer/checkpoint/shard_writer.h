// ShardWriter: writes one shard file of a checkpoint, piece by piece. Training needs the processors and the
// memory meanwhile, so the bytes go to the disk past the page cache (O_DIRECT), 4 MiB at a time, where the
// file system can do that. Elsewhere they are on their way to the disk while the next pieces come: about 40
// MiB of them at most are not there yet. In both, Finish() has little left to wait for.
// Owner: a ps that writes a part. Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/checkpoint/shard_format.h"
#include "trainer/model/layout.h"

namespace dtrain {

class ShardWriter {
 public:
  // Makes the file, which must not be there yet. Throws SaveError, as all here.
  explicit ShardWriter(std::string path);
  ~ShardWriter();  // what was not finished stays as it is
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  // Appends a piece of float32 and the zeros that pad it; returns the checksum of both.
  uint64_t Add(const void* data, size_t bytes);
  // Waits until all of it is on the disk, and closes.
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
  size_t in_chunk_ = 0;  // bytes of it that are not in the file yet
  int64_t bytes_ = 0;
  int64_t flushed_ = 0;  // bytes in the file
  int64_t pushed_ = 0;   // bytes that the system was told to write out
};

// RangeWriter: writes the shard file of one ps from the pieces that its range is kept in
// (trainer/model/layout.h): the file is cut where variables meet as well, what a ps keeps is not.
// Owner: a ps that writes a part. Thread: one at a time.
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
