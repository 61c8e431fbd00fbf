#include "cmd/common/run_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "base/names.h"

namespace dtrain {
namespace {

constexpr int kMaxPauses = 1000;

// Some file systems lock only files.
std::string LockFile(const std::string& directory) { return directory + "/.in-use"; }

// Whether a run has the lock; unset: there is no file, or its file system has no locks. Many may look at
// once, and other process ids, as in a container, make no difference.
std::optional<bool> IsLocked(const std::string& directory) {
  const FileDescriptor file(
      open(LockFile(directory).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0) return std::nullopt;
  if (flock(file.get(), LOCK_SH | LOCK_NB) == 0) return false;
  return errno == EWOULDBLOCK ? std::make_optional(true) : std::nullopt;
}

}  // namespace

int LockRun(const std::string& directory, bool strictly) {
  for (int pauses = 0;;) {
    const int fd = open(LockFile(directory).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd < 0) return fd;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && (strictly || errno == EWOULDBLOCK)) {
      const int failed = errno;
      close(fd);
      if (failed == EWOULDBLOCK && IsLocked(directory) == false && ++pauses < kMaxPauses) {
        std::this_thread::sleep_for(milliseconds(1));  // somebody looks at it
        continue;
      }
      errno = failed;
      return -1;
    }
    struct stat status {};
    if (fstat(fd, &status) == 0 && status.st_nlink > 0) return fd;
    close(fd);  // another process has removed it with its lock
  }
}

void UnlockRun(const std::string& directory, int lock) {
  if (lock < 0) return;
  unlink(LockFile(directory).c_str());
  close(lock);
}

bool IsInUse(const std::string& directory, const Json& record) {
  if (IsLocked(directory + "/checkpoints") == true) return true;  // another run saves there
  const std::optional<bool> locked = IsLocked(directory);
  return locked ? *locked : TextIn(record, "status") == "running" && !IsGone(directory, record);
}

bool IsGone(const std::string& directory, const Json& record) {
  const std::optional<double> pid = NumberIn(record, "pid");
  if (TextIn(record, "host") != HostName() || !pid) return false;
  if (const std::optional<bool> locked = IsLocked(directory)) return !*locked;
  return kill(static_cast<pid_t>(*pid), 0) != 0 && errno == ESRCH;
}

}  // namespace dtrain
