// RecordThread: applies the records of a replica in their order, on a thread of its own where that pays: then
// the ps which holds the replica answers its workers meanwhile. Owner: ReplicaHolder. Thread: the ps loop.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "net/channel.h"

namespace dtrain {

class RecordThread {
 public:
  // `apply` runs on the thread; without one Begin() runs it, and throws what it throws.
  RecordThread(bool has_thread, std::function<void(net::Message& record)> apply);
  ~RecordThread();
  RecordThread(const RecordThread&) = delete;
  RecordThread& operator=(const RecordThread&) = delete;

  // Keeps a record until Begin().
  void Add(net::Message record) { added_.push_back(std::move(record)); }
  // Has the thread apply what was added. Waits while too many bytes are not applied yet. This and Wait()
  // throw what `apply` has thrown.
  void Begin();
  // Returns when all that was added is applied. What `apply` uses is the caller's until the next Begin().
  void Wait();

 private:
  void Run();

  const std::function<void(net::Message& record)> apply_;
  std::vector<net::Message> added_;
  std::mutex mutex_;  // guards what follows
  std::vector<net::Message> records_;
  size_t bytes_ = 0;  // in records_, and in those that are being applied
  bool works_ = false;
  bool stops_ = false;
  std::exception_ptr fault_;  // what apply_ has thrown; the thread has ended then
  std::condition_variable begun_;
  std::condition_variable applied_;
  std::thread thread_;
};

}  // namespace dtrain
