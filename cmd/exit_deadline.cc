#include "cmd/exit_deadline.h"

#include <unistd.h>

#include <utility>

namespace dtrain {

ExitDeadline::~ExitDeadline() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard<std::mutex> hold(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ExitDeadline::Arm(int exit_code, milliseconds patience, std::function<void()> last) {
  const TimePoint deadline = Clock::now() + patience;
  std::lock_guard<std::mutex> hold(mutex_);
  if (thread_.joinable()) return;
  thread_ = std::thread([this, exit_code, deadline, last = std::move(last)] {
    std::unique_lock<std::mutex> hold(mutex_);
    if (changed_.wait_until(hold, deadline, [this] { return over_; })) return;
    if (last) last();
    _exit(exit_code);
  });
}

}  // namespace dtrain
