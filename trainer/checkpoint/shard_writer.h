// ShardWriter: writes one shard file of a checkpoint, piece by piece. What was written is on its way to the
// disk while the next pieces come: about 40 MiB of it at most are not there yet, so that a large checkpoint
// does not fill the page cache with what has to be written, and Finish() has little left to wait for.
// Owner: who saves (the chief, or a ps). Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace dtrain {

class ShardWriter {
 public:
  // Makes the file, which must not be there yet. Throws IoError, as all here, naming the path and the remedy.
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
  void Write(const void* data, size_t bytes);
  void PushOut();
  [[noreturn]] void Fail(int error) const;

  const std::string path_;
  int fd_ = -1;
  int64_t bytes_ = 0;
  int64_t pushed_ = 0;  // bytes that the system was told to write out
};

}  // namespace dtrain
