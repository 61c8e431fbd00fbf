#include "trainer/export/source_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace dtrain {

// A pipe in the place of a file would make open() wait.
SourceFile::SourceFile(const std::string& path)
    : path_(path), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (fd_ < 0) Refuse(fmt::format("cannot be opened: {}. Is the path right?", ErrnoText(errno)));
  struct stat about {};
  if (fstat(fd_, &about) != 0 || !S_ISREG(about.st_mode)) {
    close(fd_);
    Refuse("is no file. Name a .safetensors or .npz file.");
  }
  size_ = static_cast<uint64_t>(about.st_size);
}

SourceFile::~SourceFile() { close(fd_); }

void SourceFile::ReadAt(uint64_t offset, uint64_t bytes, void* out) const {
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = pread(fd_, to, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) Refuse(fmt::format("cannot be read at byte {}: {}.", offset, ErrnoText(errno)));
    if (got == 0) Refuse(fmt::format("ends at byte {}. The file is cut off: fetch it anew.", offset));
    to += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
  }
}

}  // namespace dtrain
