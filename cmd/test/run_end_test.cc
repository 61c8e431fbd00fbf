// What a run of several tasks says at its end, with the real binary: one block for all.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/testing/files.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

// How often each of these ends a line.
int Count(const std::string& text, const std::string& end) {
  int count = 0;
  for (size_t at = 0; (at = text.find(end + "\n", at)) != std::string::npos; at += end.size()) ++count;
  return count;
}

TEST_CASE(
    "run end: dtrain local tells it once for all tasks, and each has its own lines in its file of log.dir") {
  for (const bool threads : {false, true}) {
    CAPTURE(threads);
    const LocalJob job(LinearJob(60));
    const std::string logs = job.directory + "/logs";
    std::vector<std::string> more = {"--ps", "2", "--set", "log.dir=" + logs};
    if (threads) more.push_back("--in-process");
    const auto run = job.Start(more);
    const int code = RunToEnd(*run);
    const std::string said = run->standard_error();
    CAPTURE(said);
    REQUIRE(code == 0);
    CHECK(Count(said, "local | done") == 1);
    CHECK(Count(said, " | done") == 1);
    const std::string total = "60 global steps, 480 examples";
    CHECK(said.find(total) == said.rfind(total));
    for (const char* task : {"ps 0", "ps 1", "worker 0", "worker 1"}) {
      CAPTURE(task);
      std::string name = task;
      std::replace(name.begin(), name.end(), ' ', '-');
      const std::string file = FileContent(logs + "/" + name + ".log");
      CHECK(Contains(file, fmt::format("{} | {}", task, total)));
      CHECK(Count(file, fmt::format("{} | done", task)) == 1);
    }
  }
}

TEST_CASE("run end: with log.level debug each task tells its own end too, once") {
  const LocalJob job(LinearJob(60));
  const std::string logs = job.directory + "/logs";
  const auto run = job.Start({"--set", "log.level=debug", "--set", "log.dir=" + logs});
  REQUIRE(RunToEnd(*run) == 0);
  const std::string said = run->standard_error();
  for (const char* task : {"ps 0", "worker 0", "worker 1", "local"}) {
    CAPTURE(task);
    CHECK(Count(said, fmt::format("{} | done", task)) == 1);
  }
  CHECK(Count(FileContent(logs + "/worker-1.log"), "worker 1 | done") == 1);
}

TEST_CASE("run end: a run that was done before is told once too") {
  const LocalJob job(LinearJob(60));
  const std::vector<std::string> kept = {"--set", "checkpoint.dir=" + job.directory + "/ckpt"};
  REQUIRE(RunToEnd(*job.Start(kept)) == 0);
  const auto again = job.Start(kept);
  REQUIRE(RunToEnd(*again) == 0);
  const std::string said = again->standard_error();
  CAPTURE(said);
  CHECK(Contains(said, "local | already done: "));
  CHECK(said.find("already done: ") == said.rfind("already done: "));
}

}  // namespace
}  // namespace dtrain::testing
