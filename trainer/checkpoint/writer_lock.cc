#include "trainer/checkpoint/writer_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "trainer/checkpoint/save_error.h"
#include "trainer/checkpoint/still_there.h"

namespace dtrain {

WriterLock::WriterLock(WriterLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

WriterLock& WriterLock::operator=(WriterLock&& other) noexcept {
  Release();
  fd_ = std::exchange(other.fd_, -1);
  path_ = std::move(other.path_);
  return *this;
}

bool WriterLock::Take(const std::string& path) {
  Release();
  path_ = PathOf(path);
  fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd_ < 0 && errno == EEXIST) return false;
  if (fd_ < 0) throw SaveError(path_, "made", errno);
  const bool taken = flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  if (taken && StillThere(fd_)) return true;
  close(fd_);
  fd_ = -1;
  return false;
}

void WriterLock::Release() {
  if (fd_ < 0) return;
  unlink(path_.c_str());
  close(fd_);
  fd_ = -1;
}

bool WriterLock::IsLock(const std::string& path) {
  return std::filesystem::path(path).extension() == kSuffix;
}

void WriterLock::RemoveIfDead(const std::string& path) {
  const std::string lock = PathOf(path);
  const int fd = open(lock.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0 && errno != ENOENT) return;
  // Without a lock file nobody has begun, or it was published.
  if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0) {
    std::error_code ignored;  // what cannot be removed now may be the next time
    std::filesystem::remove_all(path, ignored);
    if (fd >= 0) unlink(lock.c_str());
  }
  if (fd >= 0) close(fd);
}

}  // namespace dtrain
