// StopRequest: SIGINT or SIGTERM as something that a task looks at between two other things.
// Owner: the command. Thread: any.
#pragma once

#include <atomic>

namespace dtrain {

class StopRequest {
 public:
  // The first signal counts.
  void Ask(int signal) {
    int none = 0;
    signal_.compare_exchange_strong(none, signal);
  }
  // 0: nobody has asked.
  int signal() const { return signal_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int> signal_{0};
};

}  // namespace dtrain
