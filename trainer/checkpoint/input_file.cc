#include "trainer/checkpoint/input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "trainer/checkpoint/bad_checkpoint.h"

namespace dtrain {

InputFile::InputFile(std::string checkpoint, std::string name)
    : checkpoint_(std::move(checkpoint)), name_(std::move(name)) {
  // A pipe in the place of a file would make open() wait.
  fd_ = open((checkpoint_ + "/" + name_).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd_ < 0 && (errno == ENOENT || errno == ENOTDIR)) Fail("is missing");
  if (fd_ < 0) Fail("cannot be opened: " + ErrnoText(errno));
  struct stat status {};
  if (fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(fd_);
    Fail("is no file");
  }
  size_ = status.st_size;
}

InputFile::~InputFile() {
  if (fd_ >= 0) close(fd_);
}

InputFile::InputFile(InputFile&& other) noexcept
    : checkpoint_(std::move(other.checkpoint_)),
      name_(std::move(other.name_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_) {}

void InputFile::ReadAt(int64_t offset, int64_t bytes, void* out) const {
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t got = pread(fd_, to, static_cast<size_t>(bytes), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) Fail(fmt::format("cannot be read at byte {}: {}", offset, ErrnoText(errno)));
    if (got == 0) Fail(fmt::format("ends at byte {}", offset));
    to += got;
    offset += got;
    bytes -= got;
  }
}

std::string InputFile::ReadAll(int64_t most) const {
  if (size_ > most) Fail(fmt::format("has {} bytes; must be at most {}", size_, most));
  std::string content(static_cast<size_t>(size_), '\0');
  ReadAt(0, size_, content.data());
  return content;
}

void InputFile::Fail(const std::string& problem) const {
  throw BadCheckpoint(checkpoint_, fmt::format("{} {}", name_, problem));
}

}  // namespace dtrain
