// Each kind of failure (cmd/testing/failure_kinds.h), of dtrain local, with tasks as threads and by hand.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/names.h"
#include "base/testing/files.h"
#include "cmd/testing/failure_kinds.h"
#include "cmd/testing/job.h"
#include "trainer/config/cluster_config.h"

namespace dtrain::testing {
namespace {

void CheckLocal(const FailureKind& kind, bool in_process) {
  const LocalJob job(kind.job);
  std::vector<std::string> more = kind.more;
  if (in_process) more.push_back("--in-process");
  const auto run = job.Start(more);
  if (kind.disturb) {
    for (const char* worker : {"worker 0 | epoch", "worker 1 | epoch"}) REQUIRE(run->WaitForLine(worker));
    kind.disturb({*run, [&](const std::string& role, int index) {
                    return in_process ? run->pid() : ChildOf(*run, role, index);
                  }});
  }
  const int code = RunToEnd(*run);
  CheckTold(kind, code, ReadResult(job.result), run->standard_error(), {HostName()});
}

void CheckByHand(const FailureKind& kind) {
  const Cluster cluster(1, 2, kind.job);
  const std::vector<std::string> names = {"ps 0", "worker 0", "worker 1"};
  std::vector<std::unique_ptr<Process>> tasks;  // null: nobody starts it
  const std::string result = cluster.directory() + "/result.json";
  const std::string keys = kind.thief.empty() ? "" : NewKeys(cluster.config());
  const std::string stolen = keys.empty() ? "" : StealKey(keys, "worker-1", "worker-0");
  for (const std::string& name : names) {
    if (name == kind.absent) {
      tasks.emplace_back();
      continue;
    }
    const std::string role = name.substr(0, name.find(' '));
    std::vector<std::string> more = kind.more;
    if (!keys.empty()) {
      more.insert(more.end(), {"--set", "security.keys=" + (name == kind.thief ? stolen : keys)});
    }
    if (name == kind.told_by) more.insert(more.end(), {"--result", result});
    tasks.push_back(cluster.Start(role, name.back() - '0', more));
  }
  const auto index_of = [&](const std::string& name) {
    return static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  };
  if (kind.disturb) {
    for (const size_t worker : {1, 2}) REQUIRE(tasks[worker]->WaitForLine("| epoch"));
    kind.disturb({*tasks[0], [&](const std::string& role, int index) {
                    return tasks[index_of(fmt::format("{} {}", role, index))]->pid();
                  }});
  }
  const size_t told_by = index_of(kind.told_by);
  const int code = RunToEnd(*tasks[told_by]);
  // The others have been told, or wait.
  for (const auto& task : tasks) {
    if (!task) continue;
    for (const int signal : {SIGTERM, SIGCONT}) task->Signal(signal);
    RunToEnd(*task);
  }
  // The host of a task that has not come is that of its address.
  CheckTold(kind, code, ReadResult(result), tasks[told_by]->standard_error(),
            {HostName(), HostOf(cluster.address("ps", 0)), HostOf(cluster.address("worker", 0))});
}

void CheckEach(unsigned way) {
  const ReservedPort taken;
  taken.Listen();
  for (const FailureKind& kind : FailureKinds()) {
    if ((kind.ways & way) == 0) continue;
    CAPTURE(kind.name);
    const FailureKind prepared = Prepared(kind, NewDirectory(), taken.address());
    way == kByHand ? CheckByHand(prepared) : CheckLocal(prepared, way == kInProcess);
  }
}

TEST_CASE("failure kinds: of tasks of dtrain local") { CheckEach(kByLocal); }
TEST_CASE("failure kinds: of tasks as threads") { CheckEach(kInProcess); }
TEST_CASE("failure kinds: of tasks by hand") { CheckEach(kByHand); }

TEST_CASE("failure kinds: there are twenty") { CHECK(FailureKinds().size() >= 20); }

}  // namespace
}  // namespace dtrain::testing
