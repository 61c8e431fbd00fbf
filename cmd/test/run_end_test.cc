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
  for (const std::vector<std::string>& mode :
       {std::vector<std::string>{}, {"--in-process"}, {"--set", "log.level=debug"}}) {
    const bool debug = mode.size() == 2;  // each task tells its own end, too
    CAPTURE(mode.size());
    const LocalJob job(LinearJob(60));
    const std::string logs = job.directory + "/logs";
    std::vector<std::string> more = {"--ps", "2", "--set", "log.dir=" + logs};
    more.insert(more.end(), mode.begin(), mode.end());
    const auto run = job.Start(more);
    CheckEnd(*run);
    const std::string said = run->standard_error();
    CAPTURE(said);
    CHECK(Count(said, " | done") == (debug ? 5 : 0));
    const std::string total = "60 global steps, 480 examples";
    CHECK(Contains(said, total) == debug);
    CHECK(Contains(said, "\nworker  steps  examples/s  waited "));
    const std::string result = run->standard_output();
    CHECK(result.rfind("done: " + total, 0) == 0);
    CHECK(std::count(result.begin(), result.end(), '\n') <= 8);
    for (const char* task : {"ps 0", "ps 1", "worker 0", "worker 1"}) {
      CAPTURE(task);
      std::string name = task;
      std::replace(name.begin(), name.end(), ' ', '-');
      const std::string file = FileContent(logs + "/" + name + ".log");
      CHECK(Contains(file, fmt::format("{} | {}", task, total)));
      CHECK(Count(file, fmt::format("{} | done", task)) == 1);
      CHECK(Count(said, fmt::format("{} | done", task)) == (debug ? 1 : 0));
    }
  }
}

}  // namespace
}  // namespace dtrain::testing
