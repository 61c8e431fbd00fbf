#include "trainer/checkpoint/directory_locks.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "trainer/checkpoint/checkpoint_errors.h"
#include "trainer/checkpoint/checkpoint_names.h"

namespace dtrain {
namespace {

// Whether the locked file is still in its directory: another process may have removed it first.
bool StillThere(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 && status.st_nlink > 0;
}

}  // namespace

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
  if (held()) unlink(path_.c_str());
  close(fd_);
  fd_ = -1;
}

bool WriterLock::held() const { return fd_ >= 0 && StillThere(fd_); }

bool WriterLock::IsLock(const std::string& path) {
  return std::filesystem::path(path).extension() == kSuffix;
}

void WriterLock::RemoveIfDead(const std::string& path) {
  const std::string lock = PathOf(path);
  const int fd = open(lock.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 && errno != ENOENT) return;
  // Without a lock file, writing has not begun, or the save was published.
  if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0) {
    std::error_code ignored;  // the next RemoveIfDead() tries again
    std::filesystem::remove_all(path, ignored);
    if (fd >= 0) unlink(lock.c_str());
  }
  if (fd >= 0) close(fd);
}

// The lock goes first: from then on the writer leaves the path alone.
void WriterLock::RemoveAnyhow(const std::string& path) {
  unlink(PathOf(path).c_str());
  std::error_code ignored;  // the next RemoveIfDead() tries again
  std::filesystem::remove_all(path, ignored);
}

namespace {

constexpr char kName[] = "/.in-use";
constexpr size_t kMaxName = 500;  // of the holder's name
constexpr size_t kMaxContent = 1000;

std::string Content(int fd) {
  std::string text(kMaxContent, '\0');
  const ssize_t got = pread(fd, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

// The first line of the file.
std::string HolderIn(const std::string& content) {
  std::string who = content.substr(0, std::min(content.find('\n'), kMaxName));
  std::replace_if(
      who.begin(), who.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return who.empty() ? "another process" : who;
}

}  // namespace

DirectoryClaim::~DirectoryClaim() {
  if (fd_ < 0) return;
  if (TakenBy().empty()) unlink(path_.c_str());
  close(fd_);
}

void DirectoryClaim::Forget() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

std::string DirectoryClaim::Take(const std::string& directory, const std::string& who, uint64_t run_id,
                                 bool replaces) {
  if (fd_ >= 0) return "";
  const std::string run = fmt::format("\nrun {:016x}, claim ", run_id);
  while (fd_ < 0) {
    path_ = directory + kName;
    const int fd = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0 && errno == ELOOP) {
      throw UserError("{}: is a symbolic link, which may lead into a file of something else. Remove it.",
                      path_);
    }
    if (fd < 0) return "";  // a problem of the directory shows when something is saved
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      const std::string content = Content(fd);
      close(fd);
      if (!replaces || content.find(run) == std::string::npos) return HolderIn(content);
      unlink(path_.c_str());  // the other one sees it before it names a checkpoint
      continue;
    }
    if (StillThere(fd)) {
      fd_ = fd;
    } else {
      close(fd);
    }
  }
  content_ = who.substr(0, kMaxName) + run + RandomToken() + "\n";
  // Removes what a killed owner left. Where the disk is full, what is there now tells whether it is replaced.
  if (ftruncate(fd_, 0) == 0 && WriteAll(fd_, content_) != 0) content_ = Content(fd_);
  return "";
}

// Opens the file anew, to see what another machine has written.
std::string DirectoryClaim::TakenBy() const {
  if (fd_ < 0) return "";
  const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return errno == ENOENT || errno == ELOOP ? "nobody: the file .in-use was removed" : "";
  const std::string now = Content(fd);
  close(fd);
  return now == content_ ? "" : HolderIn(now);
}

}  // namespace dtrain
