// A task whose main thread hangs while its heartbeats go on is lost as one that is silent: the others say
// what it was in, and its process ends. It hangs in writing its log into a pipe that nobody reads.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

// The log of one task. What is written before the hang stays in it until it is gone.
class UnreadLog {
 public:
  UnreadLog(std::string directory, const std::string& task) : directory_(std::move(directory)) {
    REQUIRE(mkdir(directory_.c_str(), 0755) == 0);
    const std::string path = directory_ + "/" + task + ".log";
    REQUIRE(mkfifo(path.c_str(), 0644) == 0);
    fd_ = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
    REQUIRE(fd_ >= 0);
  }
  ~UnreadLog() { close(fd_); }
  UnreadLog(const UnreadLog&) = delete;
  UnreadLog& operator=(const UnreadLog&) = delete;
  // Arguments of a task that logs every step to it.
  std::vector<std::string> Arguments() const {
    return {"--set", "log.dir=" + directory_, "--set", "hooks.log_every_steps=1"};
  }

 private:
  const std::string directory_;
  int fd_ = -1;
};

std::string Job(const std::string& lost) {
  return LinearJob(20000) + fmt::format("failure: {{detect_s: 1, worker_lost: {}, wait_s: 50}}\n", lost);
}

constexpr char kSaid[] = "is alive but has done nothing for";

TEST_CASE("hung: the run goes on without a worker that does nothing, whose process ends with 4") {
  const Cluster cluster(1, 2, Job("continue"));
  const UnreadLog log(cluster.directory() + "/unread", "worker-1");
  const auto ps = cluster.Start("ps", 0), first = cluster.Start("worker", 0);
  const auto hung = cluster.Start("worker", 1, log.Arguments());
  CHECK(RunToEnd(*hung) == 4);
  CHECK(RunToEnd(*first) == 0);
  CHECK(RunToEnd(*ps) == 0);
  CAPTURE(ps->standard_error());
  CHECK(Contains(ps->standard_error(), "worker 1 (" + cluster.address("worker", 1)));
  CHECK(Contains(ps->standard_error(), kSaid));
  CHECK(Contains(ps->standard_error(), "it was in 'step'"));
}

TEST_CASE("hung: where the run waits for it, it goes on with one that is started in its place") {
  const Cluster cluster(2, 2, Job("wait"));
  const UnreadLog log(cluster.directory() + "/unread", "worker-1");
  const auto ps = cluster.Start("ps", 0), other = cluster.Start("ps", 1), first = cluster.Start("worker", 0);
  const auto hung = cluster.Start("worker", 1, log.Arguments());
  CHECK(RunToEnd(*hung) == 4);
  const auto again = cluster.Start("worker", 1);
  for (Process* task : {again.get(), first.get(), other.get(), ps.get()}) CHECK(RunToEnd(*task) == 0);
  CAPTURE(ps->standard_error());
  CHECK(Contains(ps->standard_error(), kSaid));
}

TEST_CASE("hung: a worker that does nothing ends a run that has no other") {
  const Cluster cluster(2, 1, Job("continue"));
  const UnreadLog log(cluster.directory() + "/unread", "worker-0");
  const auto ps = cluster.Start("ps", 0), other = cluster.Start("ps", 1);
  const auto hung = cluster.Start("worker", 0, log.Arguments());
  for (Process* task : {hung.get(), other.get(), ps.get()}) CHECK(RunToEnd(*task) == 4);
  CAPTURE(ps->standard_error());
  CHECK(Contains(ps->standard_error(), "no other worker is left to go on"));
}

}  // namespace
}  // namespace dtrain::testing
