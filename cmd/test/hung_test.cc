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

TEST_CASE("hung: the run goes on without a worker that does nothing, whose process ends with 4") {
  const Cluster cluster(1, 2, LinearJob(20000) + "failure: {detect_s: 1}\n");
  const UnreadLog log(cluster.directory() + "/unread", "worker-1");
  const auto ps = cluster.Start("ps", 0), first = cluster.Start("worker", 0);
  std::vector<std::string> arguments = log.Arguments();
  const std::string result = cluster.directory() + "/hung.json";
  arguments.insert(arguments.end(), {"--result", result});
  const auto hung = cluster.Start("worker", 1, arguments);
  CheckEnd(*hung, 4);
  CheckEnd(*first);
  CheckEnd(*ps);
  CAPTURE(ps->standard_error());
  CHECK(Contains(ps->standard_error(), "worker 1 (" + cluster.address("worker", 1)));
  CHECK(Contains(ps->standard_error(), "is alive but has done nothing for"));
  CHECK(Contains(ps->standard_error(), "it was in 'step'"));
  const Json told = ReadResult(result);
  CHECK(told.at("status") == "peer_lost");
  CHECK(Contains(told.at("error"), "is alive but has done nothing for"));
  CHECK(told.at("failed_task") == Json({{"role", "worker"}, {"index", 1}}));
}

}  // namespace
}  // namespace dtrain::testing
