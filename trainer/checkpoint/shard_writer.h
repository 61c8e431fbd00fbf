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

}  // namespace dtrain
