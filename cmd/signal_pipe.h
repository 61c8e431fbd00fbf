// SignalPipe: chosen signals as records in a pipe, so that an event loop or a thread can wait for them.
// Handlers in place of a signal mask: libraries have threads of their own, which masks would not reach.
// SIGINT or SIGTERM that comes again within kTwin is the same one: timeout(1) signals its child and then the
// child's group, and nobody types so fast.
// Owner: one command; only one may exist at a time. Thread: any.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "base/clock.h"

namespace dtrain {

class SignalPipe {
 public:
  static constexpr milliseconds kTwin{100};

  explicit SignalPipe(std::initializer_list<int> signals);
  ~SignalPipe();  // puts the default actions back
  SignalPipe(const SignalPipe&) = delete;
  SignalPipe& operator=(const SignalPipe&) = delete;

  // Readable while a signal has come that nobody has taken.
  int fd() const { return read_fd_; }
  // The oldest signal not yet taken; 0 when there is none. Never waits.
  int Take();

 private:
  std::vector<int> signals_;
  int read_fd_ = -1;
  int last_ = 0;  // of SIGINT and SIGTERM
  int64_t last_nanos_ = 0;
};

}  // namespace dtrain
