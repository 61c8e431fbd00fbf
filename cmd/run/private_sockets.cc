#include "cmd/run/private_sockets.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/error.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = "dtrain-local-";
constexpr size_t kRandomCharacters = 6;  // of mkdtemp()
// A socket's path has at most 107 characters.
constexpr size_t kMaxParent = 70;

// Nobody else may rename what is in it: it is this user's or root's, and others may write there only where a
// directory's entries are their owners' (/tmp).
bool IsSafe(const std::string& parent) {
  struct stat status {};
  if (parent.size() > kMaxParent || stat(parent.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    return false;
  const bool owned = status.st_uid == geteuid() || status.st_uid == 0;
  const bool closed = (status.st_mode & (S_IWGRP | S_IWOTH)) == 0 || (status.st_mode & S_ISVTX) != 0;
  return owned && closed && access(parent.c_str(), W_OK | X_OK) == 0;
}

// Not $XDG_RUNTIME_DIR: it goes when its user logs out, and a run may go on.
std::string Parent() {
  const char* const value = secure_getenv("TMPDIR");
  return value != nullptr && *value == '/' && IsSafe(value) ? value : "/tmp";
}

// Returns a descriptor of the directory if it is this user's and no living process has locked it; else -1.
int Lock(const std::string& directory) {
  const int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat status {};
  if (fd >= 0 && fstat(fd, &status) == 0 && status.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0) {
    return fd;
  }
  if (fd >= 0) close(fd);
  return -1;
}

// Removes sockets, and then the directory: one with anything else in it is none of ours, and stays.
void RemoveSockets(const std::string& directory) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, error)) {
    std::error_code unknown;
    if (fs::is_socket(entry.symlink_status(unknown))) fs::remove(entry.path(), unknown);
  }
  rmdir(directory.c_str());
}

void RemoveWhatWasLeft(const std::string& parent) {
  const std::string prefix = kPrefix;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(prefix, 0) != 0 || name.size() != prefix.size() + kRandomCharacters) continue;
    const int fd = Lock(entry.path());
    if (fd < 0) continue;
    RemoveSockets(entry.path());
    close(fd);
  }
}

}  // namespace

PrivateSockets::PrivateSockets() {
  const std::string parent = Parent();
  RemoveWhatWasLeft(parent);
  // Between its making and its lock another process may take a new directory for one that was left.
  for (int attempt = 0; attempt < 10 && lock_fd_ < 0; ++attempt) {
    directory_ = parent + "/" + kPrefix + "XXXXXX";
    if (mkdtemp(directory_.data()) == nullptr) {
      throw IoError("{}: cannot make a directory for sockets: {}. Set TMPDIR to a directory of your own.",
                    parent, ErrnoText(errno));
    }
    lock_fd_ = Lock(directory_);
    if (lock_fd_ >= 0 && access(directory_.c_str(), F_OK) == 0) return;
    if (lock_fd_ >= 0) close(lock_fd_);
    lock_fd_ = -1;
  }
  throw IoError("{}: cannot lock a directory for sockets. Set TMPDIR to a directory of your own.", parent);
}

PrivateSockets::~PrivateSockets() {
  Close();
  RemoveSockets(directory_);
  close(lock_fd_);
}

PrivateSockets::Listening PrivateSockets::Listen(const std::string& name) {
  const std::string path = directory_ + "/" + name;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0) fds_.push_back(fd);
  if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(fd, SOMAXCONN) != 0) {
    throw IoError("{}: cannot listen: {}. Set TMPDIR to a directory of your own.", path, ErrnoText(errno));
  }
  return {fd, "unix:" + path};
}

std::string PrivateSockets::WhyGone() const {
  if (access(directory_.c_str(), F_OK) == 0) return "";
  return fmt::format("{}, the directory of this run's sockets, was removed (by a cleaner of {}?)", directory_,
                     fs::path(directory_).parent_path().string());
}

void PrivateSockets::Close() {
  for (const int fd : fds_) close(fd);
  fds_.clear();
}

}  // namespace dtrain
