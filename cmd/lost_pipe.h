// LostPipe: how the children of `dtrain local` tell it whom they have given up, so that one that hangs is
// ended and started again. A line with a task's name for each, "ps 1".
// Owner: Supervisor, which reads; every child inherits the other end. Thread: any.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

class LostPipe {
 public:
  LostPipe();
  ~LostPipe();
  LostPipe(const LostPipe&) = delete;
  LostPipe& operator=(const LostPipe&) = delete;

  // Readable while there is something to take. Both ends are open as long as this object lives.
  int read_fd() const { return ends_[0]; }
  int write_fd() const { return ends_[1]; }
  // Whom the children have named since the last call. Never waits.
  std::vector<std::string> Take();

 private:
  int ends_[2];
  std::string unfinished_;
};

// From a child, into the end that it has inherited. Never waits: a pipe that is full has been told enough.
void TellLost(int fd, const std::string& name);

}  // namespace dtrain
