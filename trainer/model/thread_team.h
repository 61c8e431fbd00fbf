// ThreadTeam: threads that run the same job in parallel, again and again, as OpenMP's teams do. They live as
// long as the team, so that a job costs a hand-over and not a thread's start: 7 us for two members, 18 us for
// four. A waiting member sleeps and does not spin: on processors shared with a ps or other workers, a short
// spin first made it 70 us. The caller is member 0. Owner: a TowerModel or a RangePart. Thread: one caller at
// a time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace dtrain {

class ThreadTeam {
 public:
  // `members` in all, at least 1. Throws UserError if the system gives no thread.
  explicit ThreadTeam(int64_t members);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  // Runs job(i) on every member i and returns when all are done. Rethrows the exception of the lowest member
  // that threw. Allocates nothing. The writes of a job are visible to the caller, and to all members in the
  // next job.
  template <typename Job>
  void Run(const Job& job) {
    RunAll([](const void* run, int64_t member) { (*static_cast<const Job*>(run))(member); }, &job);
  }

 private:
  using Call = void (*)(const void* job, int64_t member);
  void RunAll(Call call, const void* job);
  void Serve(int64_t member);
  void RunOne(int64_t member);
  void Stop();

  std::mutex mutex_;
  std::condition_variable begun_;
  std::condition_variable ended_;
  int64_t round_ = 0;  // jobs begun; mutex_ guards this and the members below
  int64_t busy_ = 0;   // threads that are not done with the job
  bool over_ = false;
  Call call_ = nullptr;
  const void* job_ = nullptr;
  std::vector<std::exception_ptr> failures_;  // by member; each member writes its own
  std::vector<std::thread> threads_;          // of members 1, 2, ...
};

}  // namespace dtrain
