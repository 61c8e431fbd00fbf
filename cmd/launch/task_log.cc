#include "cmd/launch/task_log.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"

namespace dtrain {

TaskLog::TaskLog(const std::string& task, const std::string& directory) {
  if (directory.empty()) return;
  LogOptions options;
  options.directory = directory;
  const Logger maker(task, options);  // it knows the name
  fd_ = open(maker.path().c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
}

TaskLog::~TaskLog() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace dtrain
