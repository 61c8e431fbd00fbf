#include "trainer/task/status_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "base/file.h"
#include "net/channel.h"

namespace dtrain {
namespace {

// Replaces a file without waiting for the disk: after a crash of the machine the older one may be there.
bool Replace(const std::string& path, std::string_view content, mode_t mode) {
  const std::string temporary = path + ".tmp";
  unlink(temporary.c_str());
  {
    const FileDescriptor file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (file.get() < 0 || WriteAll(file.get(), content) != 0) return false;
  }
  return rename(temporary.c_str(), path.c_str()) == 0;
}

}  // namespace

StatusFile::StatusFile(std::string directory) : directory_(std::move(directory)) {
  const std::string token = fmt::format("{:016x}{:016x}", net::NewNodeId(), net::NewNodeId());
  if (!Replace(directory_ + "/" + kToken, token, 0600)) return;
  token_ = token;
  thread_ = std::thread([this] { Run(); });
}

StatusFile::~StatusFile() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard<std::mutex> hold(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void StatusFile::Put(std::string json) {
  {
    std::lock_guard<std::mutex> hold(mutex_);
    next_ = std::move(json);
  }
  changed_.notify_one();
}

void StatusFile::Run() {
  std::unique_lock<std::mutex> hold(mutex_);
  while (true) {
    changed_.wait(hold, [this] { return over_ || !next_.empty(); });
    if (next_.empty()) return;
    const std::string json = std::exchange(next_, {});
    hold.unlock();
    Replace(directory_ + "/" + kName, json + "\n", 0644);
    hold.lock();
  }
}

}  // namespace dtrain
