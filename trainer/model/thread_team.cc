#include "trainer/model/thread_team.h"

#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace dtrain {

ThreadTeam::ThreadTeam(int64_t members) : failures_(static_cast<size_t>(members)) {
  DT_CHECK(members >= 1, members);
  try {
    for (int64_t member = 1; member < members; ++member) {
      threads_.emplace_back([this, member] { Serve(member); });
    }
  } catch (const std::system_error& error) {
    const size_t started = threads_.size();
    Stop();
    throw UserError(
        "no thread for number {} of {} that device.ids or device.threads asks for: {}. Ask for fewer, or "
        "raise "
        "ulimit -u.",
        started + 1, members, error.what());
  }
}

ThreadTeam::~ThreadTeam() { Stop(); }

void ThreadTeam::Stop() {
  {
    std::lock_guard<std::mutex> hold(mutex_);
    over_ = true;
  }
  begun_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void ThreadTeam::RunAll(Call call, const void* job) {
  {
    std::lock_guard<std::mutex> hold(mutex_);
    call_ = call;
    job_ = job;
    busy_ = static_cast<int64_t>(threads_.size());
    ++round_;
  }
  begun_.notify_all();
  RunOne(0);
  {
    std::unique_lock<std::mutex> hold(mutex_);
    ended_.wait(hold, [this] { return busy_ == 0; });
  }
  std::exception_ptr first;
  for (std::exception_ptr& failure : failures_) {
    const std::exception_ptr own = std::exchange(failure, nullptr);
    if (first == nullptr) first = own;
  }
  if (first != nullptr) std::rethrow_exception(first);
}

void ThreadTeam::Serve(int64_t member) {
  int64_t served = 0;
  while (true) {
    {
      std::unique_lock<std::mutex> hold(mutex_);
      begun_.wait(hold, [&] { return over_ || round_ != served; });
      if (over_) return;
      served = round_;
    }
    RunOne(member);
    std::lock_guard<std::mutex> hold(mutex_);
    if (--busy_ == 0) ended_.notify_one();
  }
}

void ThreadTeam::RunOne(int64_t member) {
  try {
    call_(job_, member);
  } catch (...) {
    failures_[static_cast<size_t>(member)] = std::current_exception();
  }
}

}  // namespace dtrain
