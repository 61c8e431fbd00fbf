// SignalPipe: turns signals into records in a pipe, so that an event loop or a thread can wait for them. It
// uses handlers and not a signal mask, because a mask would not reach the threads of libraries.
// Duplicates are dropped. A SIGINT or SIGTERM that is repeated within kDuplicateWindow counts once:
// timeout(1) signals its child and then the child's group. A SIGHUP is dropped after any other signal that
// asks to stop, and so is such a signal within kDuplicateWindow after SIGHUP: when a terminal closes, the
// kernel and the shell both send SIGHUP, and systemd adds SIGTERM. If SIGHUP was ignored at the start, as
// under nohup(1), it stays ignored.
// Owner: one command; only one may exist at a time. Thread: any.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "base/clock.h"

namespace dtrain {

class SignalPipe {
 public:
  static constexpr milliseconds kDuplicateWindow{100};

  explicit SignalPipe(std::initializer_list<int> signals);
  ~SignalPipe();  // restores the default actions
  SignalPipe(const SignalPipe&) = delete;
  SignalPipe& operator=(const SignalPipe&) = delete;

  // A descriptor that is readable while a signal waits to be taken.
  int fd() const { return read_fd_; }
  // Returns the oldest signal that is not yet taken; 0 if there is none. Never waits.
  int Take();

 private:
  // Whether a signal that asks to stop repeats an earlier one.
  bool IsDuplicate(int signal, int64_t nanos) const;

  std::vector<int> signals_;
  int read_fd_ = -1;
  int last_ = 0;  // the last signal that asked to stop
  int64_t last_nanos_ = 0;
};

// Returns the time until `deadline` for poll(), rounded up so that the deadline has passed afterwards.
// Returns -1 (no timeout) without a deadline.
inline int PollTimeout(TimePoint deadline) {
  if (deadline == TimePoint::max()) return -1;
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

// From now on this process ends by SIGPIPE when the reader of its output goes away, as other tools do: for
// commands that only print.
void EndWithReader();

}  // namespace dtrain
