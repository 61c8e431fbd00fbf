#include "trainer/export/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/error.h"
#include "base/write_all.h"

namespace dtrain {

namespace fs = std::filesystem;

OutputFile::OutputFile(const std::string& path)
    : path_(path), temporary_(fmt::format("{}.tmp.{}", path, getpid())) {
  std::error_code ignored;  // a directory that could not be made shows when the file is opened
  if (fs::is_directory(path, ignored)) throw UserError("{}: is a directory. Name a file.", path);
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) {
    throw UserError("{}: is a device or a pipe, and a file would take its place. Name a file.", path);
  }
  const fs::path parent = fs::path(path).parent_path();
  if (!parent.empty()) fs::create_directories(parent, ignored);
  unlink(temporary_.c_str());
  fd_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd_ >= 0) return;
  if (errno == ENOSPC) Fail(errno);
  throw UserError("{}: cannot be written: {}. Name another path.", path, ErrnoText(errno));
}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temporary_.c_str());
}

void OutputFile::Write(const void* data, size_t bytes) {
  if (const int failed = WriteAll(fd_, {static_cast<const char*>(data), bytes})) Fail(failed);
  size_ += static_cast<int64_t>(bytes);
}

void OutputFile::WriteAt(int64_t offset, const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t put = pwrite(fd_, from, bytes, offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) Fail(errno);
    from += put;
    offset += put;
    bytes -= static_cast<size_t>(put);
  }
}

void OutputFile::Finish() {
  if (fsync(fd_) != 0) Fail(errno);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) Fail(errno);
  close(fd_);
  fd_ = -1;
  const fs::path parent = fs::path(path_).parent_path();  // its new name, where that can be synced
  const int directory = open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;
  fsync(directory);
  close(directory);
}

void OutputFile::Fail(int error) const {
  throw IoError("{}: cannot be written: {}. Free some space or name another path.", path_, ErrnoText(error));
}

}  // namespace dtrain
