// InputBytes: one data file read from front to back, plain or gzip, which its first bytes tell.
// Errors are UserErrors that begin with the path and name the config key that led to it.
// Owner: who reads the file. Thread: one.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>

namespace dtrain {

class InputBytes {
 public:
  // `key`: "data.train.images", for messages. UserError where the file is missing, no regular file,
  // unreadable or empty.
  InputBytes(const std::string& path, const std::string& key);
  ~InputBytes();
  InputBytes(const InputBytes&) = delete;
  InputBytes& operator=(const InputBytes&) = delete;

  // Reads up to `size` bytes of content; fewer only at its end. UserError where gzip data is damaged.
  int64_t Read(void* out, int64_t size);

  // Whether `size` bytes of content can be in the file at all: exactly known for a plain file; a gzip
  // file holds at most 1032 times its own size. Asked before memory is taken on a header's word.
  bool CanHold(uint64_t size) const;

  // Bytes of content in all: known for a plain file; for gzip as many as the pace up to now tells.
  int64_t ExpectedContent() const;

  const std::string& path() const { return path_; }
  bool compressed() const { return compressed_; }
  uint64_t file_size() const { return file_size_; }

 private:
  const std::string path_;
  uint64_t file_size_ = 0;
  bool compressed_ = false;
  int64_t offset_ = 0;  // of the content
  gzFile file_ = nullptr;
};

}  // namespace dtrain
