// OpenFile: a file as the standard input of a command. Owner: who runs it. Thread: any.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "base/error.h"

namespace dtrain {

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) throw UserError("{}: cannot be read to be copied: {}.", path, ErrnoText(errno));
  }
  ~OpenFile() { close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

}  // namespace dtrain
