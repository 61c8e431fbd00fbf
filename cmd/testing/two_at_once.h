// TwoAtOnce: many runs of the real binary, two at a time, since each waits more than it computes.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>
#include <thread>

namespace dtrain::testing {

// Calls `tell(i, run(i))` for each i below `count`: `run` on two threads, `tell` on one of them at a time.
template <typename Run, typename Tell>
void TwoAtOnce(size_t count, const Run& run, const Tell& tell) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  const auto work = [&] {
    for (size_t i; (i = next++) < count;) {
      const auto came_of_it = run(i);
      const std::lock_guard<std::mutex> hold(mutex);
      tell(i, came_of_it);
    }
  };
  std::thread other(work);
  work();
  other.join();
}

}  // namespace dtrain::testing
