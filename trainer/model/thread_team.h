// ThreadTeam: threads that run the same job side by side, again and again: OpenMP's teams, for our own loops.
// They live as long as the team, so that a job costs a hand-over and no thread's start: 7 us for two members,
// 18 us for four. A member that waits sleeps and does not spin: where processors are shared with a ps or
// other workers, spinning for a moment first made it 70 us. The caller is member 0. Owner: a TowerModel.
// Thread: one caller at a time.
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
  // Members in all; 1 or more. UserError where the system gives no thread.
  explicit ThreadTeam(int64_t members);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  // job(i) by every member i; returns when all are through. What a member throws is thrown here, that of the
  // lowest member where there are several. No allocation. What a job wrote is seen by the caller, and by all
  // members in the next job.
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
  int64_t round_ = 0;  // jobs begun; as all below, of the mutex, and the job itself is only read in a round
  int64_t busy_ = 0;   // threads that are not through with it
  bool over_ = false;
  Call call_ = nullptr;
  const void* job_ = nullptr;
  std::vector<std::exception_ptr> failures_;  // by member; each is written by that one
  std::vector<std::thread> threads_;          // of members 1, 2, ...
};

}  // namespace dtrain
