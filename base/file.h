// Writing files: all bytes to a descriptor, and atomic replacement of a file; FileDescriptor, which closes
// one. Thread: any.
#pragma once

#include <string>
#include <string_view>

namespace dtrain {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}  // below 0: there is none
  ~FileDescriptor();
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

// Writes all of `bytes`; continues after a signal and after a short write. Returns 0, or the errno of the
// write that failed; the bytes before it are written then. Waits as long as the descriptor does. On a
// descriptor with O_NONBLOCK it fails with EAGAIN.
int WriteAll(int fd, std::string_view bytes);

// Replaces `path` by `content`: writes a file beside it, syncs it, renames it over `path`, and syncs the
// directory. Creates missing parent directories. Throws IoError with the path; an older file at `path` is
// untouched then.
void WriteFileAtomically(const std::string& path, std::string_view content);

}  // namespace dtrain
