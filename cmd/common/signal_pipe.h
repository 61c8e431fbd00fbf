// SignalPipe: chosen signals as records in a pipe, so that an event loop or a thread can wait for them.
// Handlers in place of a signal mask: libraries have threads of their own, which masks would not reach.
// Duplicates are dropped. SIGINT or SIGTERM that comes again within kDuplicateWindow is the same one:
// timeout(1) signals its child and then the child's group, and nobody types so fast. SIGHUP is dropped where
// another signal has asked to stop, and so is one that comes within kDuplicateWindow of it: a terminal that
// goes tells the shell, the shell its jobs, the kernel them again, and systemd sends SIGTERM with it. Where
// SIGHUP was ignored it stays so: nohup(1) has asked for that. Owner: one command; only one may exist at a
// time. Thread: any.
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
  ~SignalPipe();  // puts the default actions back
  SignalPipe(const SignalPipe&) = delete;
  SignalPipe& operator=(const SignalPipe&) = delete;

  // Readable while a signal has come that nobody has taken.
  int fd() const { return read_fd_; }
  // The oldest signal not yet taken; 0 when there is none. Never waits.
  int Take();

 private:
  // Whether a signal that asks to stop says nothing new.
  bool IsDuplicate(int signal, int64_t nanos) const;

  std::vector<int> signals_;
  int read_fd_ = -1;
  int last_ = 0;  // the last one that asked to stop
  int64_t last_nanos_ = 0;
};

// What is left until a deadline, as poll() wants it: rounded up, so that the deadline has passed afterwards;
// -1, which is for ever, without one.
inline int PollTimeout(TimePoint deadline) {
  if (deadline == TimePoint::max()) return -1;
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

}  // namespace dtrain
