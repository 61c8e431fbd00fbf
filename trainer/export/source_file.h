// SourceFile: a file that is read at given places. Owner: a TensorFile. Thread: one.
#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"

namespace dtrain {

class SourceFile {
 public:
  // Throws UserError where it cannot be read.
  explicit SourceFile(const std::string& path);
  ~SourceFile();
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  // UserError where the file ends before.
  void ReadAt(uint64_t offset, uint64_t bytes, void* out) const;
  // Whether `bytes` bytes from `offset` are in the file.
  bool Holds(uint64_t offset, uint64_t bytes) const { return offset <= size_ && bytes <= size_ - offset; }
  // A UserError that begins with the path.
  [[noreturn]] void Refuse(const std::string& text) const { throw UserError("{}: {}", path_, text); }

 private:
  const std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

}  // namespace dtrain
