#include "cmd/run/private_sockets.h"

#include <fcntl.h>
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
// A socket's path has at most 107 characters.
constexpr size_t kMaxParent = 70;

std::string Parent() {
  for (const char* name : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
    const char* const value = secure_getenv(name);
    if (value != nullptr && *value == '/' && std::string(value).size() <= kMaxParent &&
        access(value, W_OK | X_OK) == 0) {
      return value;
    }
  }
  return "/tmp";
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

void RemoveWhatWasLeft(const std::string& parent) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, error)) {
    if (entry.path().filename().string().rfind(kPrefix, 0) != 0) continue;
    const int fd = Lock(entry.path());
    if (fd < 0) continue;
    fs::remove_all(entry.path(), error);
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
      throw IoError("{}: cannot make a directory for sockets: {}", parent, ErrnoText(errno));
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
  std::error_code error;
  fs::remove_all(directory_, error);
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
    throw IoError("{}: cannot listen: {}", path, ErrnoText(errno));
  }
  return {fd, "unix:" + path};
}

void PrivateSockets::Close() {
  for (const int fd : fds_) close(fd);
  fds_.clear();
}

}  // namespace dtrain
