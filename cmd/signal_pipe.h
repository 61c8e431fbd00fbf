// SignalPipe: chosen signals as bytes in a pipe, so that an event loop or a thread can wait for them.
// Handlers in place of a signal mask: libraries have threads of their own, which masks would not reach.
// Owner: one command; only one may exist at a time. Thread: any.
#pragma once

#include <initializer_list>
#include <vector>

namespace dtrain {

class SignalPipe {
 public:
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
};

}  // namespace dtrain
