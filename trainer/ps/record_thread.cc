#include "trainer/ps/record_thread.h"

namespace dtrain {
namespace {

constexpr size_t kMaxBytes = size_t{16} << 20;

}  // namespace

RecordThread::RecordThread(bool has_thread, std::function<void(net::Message& record)> apply)
    : apply_(std::move(apply)) {
  if (has_thread) thread_ = std::thread([this] { Run(); });
}

RecordThread::~RecordThread() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stops_ = true;
  }
  begun_.notify_one();
  thread_.join();
}

void RecordThread::Begin() {
  if (added_.empty()) return;
  if (!thread_.joinable()) {
    for (net::Message& record : std::exchange(added_, {})) apply_(record);
    return;
  }
  std::unique_lock<std::mutex> lock(mutex_);
  applied_.wait(lock, [this] { return bytes_ < kMaxBytes || fault_; });
  if (fault_) std::rethrow_exception(fault_);
  for (net::Message& record : added_) {
    bytes_ += record.header.size() + record.payload.size();
    records_.push_back(std::move(record));
  }
  added_.clear();
  lock.unlock();
  begun_.notify_one();
}

void RecordThread::Wait() {
  Begin();
  std::unique_lock<std::mutex> lock(mutex_);
  applied_.wait(lock, [this] { return (records_.empty() && !works_) || fault_; });
  if (fault_) std::rethrow_exception(fault_);
}

void RecordThread::Run() {
  std::vector<net::Message> taken;
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    begun_.wait(lock, [this] { return stops_ || !records_.empty(); });
    if (stops_) return;
    taken.swap(records_);
    const size_t bytes = bytes_;
    works_ = true;
    lock.unlock();
    std::exception_ptr fault;
    try {
      for (net::Message& record : taken) apply_(record);
    } catch (...) {
      fault = std::current_exception();
    }
    taken.clear();
    lock.lock();
    bytes_ -= bytes;
    works_ = false;
    if (fault) {
      fault_ = fault;
      stops_ = true;
    }
    applied_.notify_one();
  }
}

}  // namespace dtrain
