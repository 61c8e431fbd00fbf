// TaskLog: the file below log.dir for what a task on another machine says. Owner: RunRelays. The launcher
// writes it, not the relay: one that waits for a disk would no longer say that it is alive.
#pragma once

#include <string>

namespace dtrain {

class TaskLog {
 public:
  // Opened to append. `directory` empty: no file. Throws UserError where there can be none.
  TaskLog(const std::string& task, const std::string& directory);
  ~TaskLog();
  TaskLog(const TaskLog&) = delete;
  TaskLog& operator=(const TaskLog&) = delete;
  int fd() const { return fd_; }  // -1: none

 private:
  int fd_ = -1;
};

}  // namespace dtrain
