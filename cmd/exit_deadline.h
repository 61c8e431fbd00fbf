// ExitDeadline: the end of a process that cannot hang. The results are written by then; what is left is
// tearing down, which a name look-up under way can hold up as long as the system's resolver likes.
// Owner: the command; declared before what it guards, so that it outlives it.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/clock.h"

namespace dtrain {

class ExitDeadline {
 public:
  ExitDeadline() = default;
  ~ExitDeadline();
  ExitDeadline(const ExitDeadline&) = delete;
  ExitDeadline& operator=(const ExitDeadline&) = delete;

  // The first call counts. Thread: any. From now on the process ends with `exit_code` after `patience`,
  // unless this object is gone by then. `last`, where not empty, is called before that by another thread.
  void Arm(int exit_code, milliseconds patience, std::function<void()> last = nullptr);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace dtrain
