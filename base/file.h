// Writing files: all bytes to a descriptor, and atomic replacement of a file; FileDescriptor, which closes
// one; how a file that cannot be written fails. Thread: any.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace dtrain {

// FileError: a file could not be written. The text ends with the remedy.
class FileError : public IoError {
 public:
  FileError(const std::string& text, int error_number) : IoError("{}", text), error_number_(error_number) {}
  int error_number() const { return error_number_; }

 private:
  int error_number_;
};

// Throws the failure of a place that the user has named and that cannot be written: a UserError, but a
// FileError if the disk itself is the reason, full or failing, because the setting is right then. `text`
// names place, reason and remedy.
[[noreturn]] void ThrowUnwritable(const std::string& text, int error_number);

// Returns "PATH: cannot be written: WHY. Free some space or name another path."
std::string UnwritableText(const std::string& path, int error_number);

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}  // below 0: there is none
  ~FileDescriptor();
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// Writes all of `bytes`; continues after a signal and after a short write. Returns 0, or the errno of the
// write that failed; the bytes before it are written then. Waits as long as the descriptor does. On a
// descriptor with O_NONBLOCK it fails with EAGAIN.
int WriteAll(int fd, std::string_view bytes);

// Replaces `path` by `content`: writes a file beside it, syncs it, renames it over `path`, and syncs the
// directory. Creates missing parent directories. Throws FileError with the path; an older file at `path`
// is untouched then.
void WriteFileAtomically(const std::string& path, std::string_view content);

}  // namespace dtrain
