// InputFile: a file of a checkpoint, open to be read. Read and not mapped: a mapped file that is cut off
// meanwhile, or a bad sector, would kill the process. What goes wrong is told as a BadCheckpoint.
#pragma once

#include <cstdint>
#include <string>

namespace dtrain {

class InputFile {
 public:
  // `name` in the directory `checkpoint`.
  InputFile(std::string checkpoint, std::string name);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  int64_t size() const { return size_; }
  const std::string& name() const { return name_; }
  void ReadAt(int64_t offset, int64_t bytes, void* out) const;
  // All of it; a file of more than `most` bytes is not read.
  std::string ReadAll(int64_t most) const;

 private:
  [[noreturn]] void Fail(const std::string& problem) const;

  std::string checkpoint_;
  std::string name_;
  int fd_ = -1;
  int64_t size_ = 0;
};

}  // namespace dtrain
