#include "trainer/env/assignment.h"

#include <doctest/doctest.h>

#include "trainer/env/env_test_util.h"

namespace dtrain {
namespace {

using Addresses = std::vector<std::string>;

// As srun leaves it in rank `rank` of `size`, on `nodes` with `tasks` each.
Environment Step(int rank, int size, const std::string& nodes, const std::string& tasks) {
  return {{"SLURM_JOB_ID", "17"},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_PROCID", std::to_string(rank)},
          {"SLURM_NTASKS", std::to_string(size)},
          {"SLURM_STEP_NUM_TASKS", std::to_string(size)},
          {"SLURM_JOB_NODELIST", nodes},
          {"SLURM_STEP_NODELIST", nodes},
          {"SLURM_STEP_TASKS_PER_NODE", tasks}};
}

Assignment Assign(const Environment& environment, const SchedulerOptions& options = {1, {}}) {
  return AssignFromSlurm(environment, options, {});
}

TEST_CASE("slurm: the first ranks are ps, the rest workers, each with a port of its own on its host") {
  const SchedulerOptions two_ps = {2, 7000};
  const Assignment first = Assign(Step(0, 5, "n[06-08]", "2(x2),1"), two_ps);
  CHECK(first.cluster.ps == Addresses{"n06:7000", "n06:7001"});
  CHECK(first.cluster.worker == Addresses{"n07:7000", "n07:7001", "n08:7000"});
  CHECK(first.task->role == Role::kPs);
  CHECK(first.task->index == 0);
  CHECK(first.name == "rank 0 of 5 of Slurm job 17");
  const Assignment last = Assign(Step(4, 5, "n[06-08]", "2(x2),1"), two_ps);
  CHECK(last.cluster.worker == first.cluster.worker);
  CHECK(last.task->role == Role::kWorker);
  CHECK(last.task->index == 2);
}

TEST_CASE("slurm: ports begin at 9000") {
  CHECK(Assign(Step(0, 2, "a", "2")).cluster.worker == Addresses{"a:9001"});
}

TEST_CASE("slurm: a cyclic distribution deals the ranks out in turn") {
  Environment step = Step(2, 5, "a,b,c", "1,3,1");
  step["SLURM_DISTRIBUTION"] = "cyclic:block";
  const Assignment assignment = Assign(step);
  CHECK(assignment.cluster.ps == Addresses{"a:9000"});
  CHECK(assignment.cluster.worker == Addresses{"b:9000", "c:9000", "b:9001", "b:9002"});
}

TEST_CASE("slurm: block may have more behind it, and others are refused") {
  Environment step = Step(0, 2, "a", "2");
  for (const char* good : {"block", "block:cyclic", "block,NoPack", "unknown"}) {
    step["SLURM_DISTRIBUTION"] = good;
    CHECK(Assign(step).cluster.worker == Addresses{"a:9001"});
  }
  for (const char* bad : {"plane", "arbitrary", "blocks"}) {  // the first without its size
    step["SLURM_DISTRIBUTION"] = bad;
    const std::string text = ErrorOf([&] { Assign(step); });
    CHECK(text.find(fmt::format("SLURM_DISTRIBUTION = {}", bad)) == 0);
    CHECK(Contains(text, "--distribution=block"));
  }
}

// The hosts that ranks have by --distribution=plane, in the order of the ranks, by their last letters.
std::string HostsByPlane(const char* size, const std::string& nodes, const std::string& tasks, int ranks) {
  Environment step = Step(0, ranks, nodes, tasks);
  step["SLURM_DISTRIBUTION"] = "plane";
  step["SLURM_DIST_PLANESIZE"] = size;
  const ClusterConfig cluster = Assign(step).cluster;
  std::string hosts(1, HostOf(cluster.ps[0]).back());
  for (const std::string& address : cluster.worker) hosts += HostOf(address).back();
  return hosts;
}

TEST_CASE("slurm: planes lie in turn over the nodes that have room, as Slurm 22.05 lays them") {
  CHECK(HostsByPlane("2", "a,b,c", "4,1(x2)", 6) == "aabcaa");
  CHECK(HostsByPlane("4", "a,b,c", "4,1(x2)", 6) == "aaaabc");
  CHECK(HostsByPlane("1", "a,b,c", "2(x3)", 6) == "abcabc");
  CHECK(HostsByPlane("3", "a,b", "2,5", 7) == "aabbbbb");
  Environment step = Step(0, 2, "a", "2");
  step["SLURM_DISTRIBUTION"] = "plane";
  for (const char* bad : {"", "0"}) {
    step["SLURM_DIST_PLANESIZE"] = bad;
    CHECK(Contains(ErrorOf([&] { Assign(step); }), "plane with its size in SLURM_DIST_PLANESIZE"));
  }
}

// As Slurm 22.05 leaves it in a step over the components of a heterogeneous job, srun --het-group=0,1.
Environment HetStep(int rank, int size, const std::string& nodes, const std::string& tasks) {
  Environment step = Step(rank, size, nodes, tasks);
  step["SLURM_DISTRIBUTION"] = "cyclic";
  step["SLURM_HET_SIZE"] = "2";
  step["SLURM_JOB_NODELIST_HET_GROUP_0"] = "n2";
  step["SLURM_JOB_NODELIST_HET_GROUP_1"] = "n[3-4]";
  return step;
}

TEST_CASE("slurm: in a step of several components all ranks agree, or all refuse") {
  for (int rank = 0; rank < 3; ++rank) {
    Environment step = HetStep(rank, 3, "n[2-4]", "1(x3)");
    step["SLURMD_NODENAME"] = fmt::format("n{}", rank + 2);
    CHECK(Assign(step).cluster.worker == Addresses{"n3:9000", "n4:9000"});
  }
  for (int rank = 0; rank < 5; ++rank) {  // the components may be distributed otherwise
    const std::string text = ErrorOf([&] { Assign(HetStep(rank, 5, "n[2-4]", "1,2(x2)")); });
    CHECK(Contains(text, "2 components of a heterogeneous job"));
    CHECK(Contains(text, "--het-group=0"));
  }
  // A step in one component is as any other.
  CHECK(Assign(HetStep(0, 3, "n[3-4]", "2,1")).cluster.worker == Addresses{"n4:9000", "n3:9001"});
  for (int rank = 0; rank < 3; ++rank) {  // the list is sorted, the nodes are in the order of the components
    Environment step = HetStep(rank, 3, "n[2-4]", "1(x3)");
    step["SLURM_JOB_NODELIST_HET_GROUP_0"] = "n4";
    step["SLURM_JOB_NODELIST_HET_GROUP_1"] = "n[2-3]";
    CHECK(Contains(ErrorOf([&] { Assign(step); }), "2 components of a heterogeneous job"));
  }
}

TEST_CASE("slurm: all ranks of a node refuse where Slurm has other ranks there") {
  Environment step = Step(0, 6, "a,b,c", "2(x3)");  // srun -m cyclic ... : ... says block for all of them
  step["SLURM_GTIDS"] = "0,1";
  CHECK(Assign(step).cluster.ps == Addresses{"a:9000"});
  step["SLURM_GTIDS"] = "0,2";
  CHECK(Contains(ErrorOf([&] { Assign(step); }), "ranks 0,2 are on node 0 (SLURM_GTIDS)"));
}

TEST_CASE("slurm: a seat that Slurm says is another one is refused, not trained with") {
  Environment step = Step(1, 4, "a,b", "2(x2)");
  step["SLURM_NODEID"] = "0";
  step["SLURM_LOCALID"] = "1";
  CHECK(Assign(step).task->index == 0);
  step["SLURMD_NODENAME"] = "b";
  step["SLURM_NODEID"] = "1";  // dealt out in turn
  step["SLURM_LOCALID"] = "0";
  CHECK(Contains(ErrorOf([&] { Assign(step); }), "rank 1 is process 0 of node 1"));
}

TEST_CASE("slurm: a rank on another host than its step's list says is refused, not announced there") {
  Environment step = Step(0, 2, "a,b", "1(x2)");
  step["SLURMD_NODENAME"] = "a";
  CHECK(Assign(step).cluster.ps == Addresses{"a:9000"});
  step["SLURMD_NODENAME"] = "b";  // two components, whose lists are sorted
  const std::string text = ErrorOf([&] { Assign(step); });
  CHECK(
      Contains(text, "rank 0 is on b (SLURMD_NODENAME), and by the node list of this step it would be on a"));
  CHECK(Contains(text, "several components"));
}

TEST_CASE("slurm: a step on some of the job's nodes has its own list") {
  Environment step = Step(0, 2, "a[1-4]", "1(x4)");
  step["SLURM_STEP_NODELIST"] = "a[3-4]";
  step["SLURM_STEP_TASKS_PER_NODE"] = "1(x2)";
  step["SLURM_TASKS_PER_NODE"] = "1(x4)";
  CHECK(Assign(step).cluster.worker == Addresses{"a4:9000"});
}

TEST_CASE("slurm: without numbers per node one node has all, and as many nodes as tasks have one each") {
  Environment step = Step(0, 3, "a", "");
  CHECK(Assign(step).cluster.worker == Addresses{"a:9001", "a:9002"});
  step["SLURM_STEP_NODELIST"] = "a[1-3]";
  CHECK(Assign(step).cluster.worker == Addresses{"a2:9000", "a3:9000"});
  step["SLURM_STEP_NODELIST"] = "a[1-2]";
  CHECK(ErrorOf([&] { Assign(step); }).find("SLURM_TASKS_PER_NODE is not set") == 0);
}

TEST_CASE("slurm: numbers per node that do not add up are refused") {
  CHECK(ErrorOf([] { Assign(Step(0, 3, "a,b", "1,1")); }).find("SLURM_STEP_TASKS_PER_NODE = 1,1;") == 0);
  CHECK(ErrorOf([] { Assign(Step(0, 2, "a", "1,1")); }).find("SLURM_STEP_TASKS_PER_NODE = 1,1;") == 0);
}

TEST_CASE("slurm: a number of tasks is held against the limit before there is memory for them") {
  Environment step = Step(0, 65537, "a", "");
  CHECK(ErrorOf([&] { Assign(step); }).find("this Slurm step has 65537 ranks; must be at most 65536.") == 0);
}

TEST_CASE("slurm: every variable that is missing is named, and nothing runs alone") {
  for (const char* name : {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_JOB_NODELIST"}) {
    Environment step = Step(0, 2, "a", "2");
    step.erase(name);
    step.erase("SLURM_STEP_NODELIST");
    step.erase("SLURM_STEP_NUM_TASKS");
    const std::string text = ErrorOf([&] { Assign(step); });
    CAPTURE(text);
    CHECK(Contains(text, "is not set"));
    CHECK(Contains(text, "srun"));
    const bool size = std::string(name) == "SLURM_NTASKS";
    CHECK(text.find(size ? "SLURM_STEP_NUM_TASKS" : name) == 0);
  }
}

TEST_CASE("slurm: the batch script is not taken for rank 0") {
  Environment script = {{"ENVIRONMENT", "BATCH"},
                        {"SLURM_PROCID", "0"},
                        {"SLURM_NTASKS", "3"},
                        {"SLURM_JOB_NODELIST", "a"},
                        {"SLURM_TASKS_PER_NODE", "3"}};
  CHECK(Contains(ErrorOf([&] { Assign(script); }), "Put srun before it"));
  script["SLURM_STEP_ID"] = "0";
  CHECK(ErrorOf([&] { Assign(script); }) == "");
}

TEST_CASE("slurm: the number of ps is given, or the file's, and leaves a worker") {
  const Environment step = Step(0, 3, "a", "3");
  CHECK(ErrorOf([&] { Assign(step, {}); }) ==
        "--ps is missing: how many of the 3 ranks of this Slurm step are parameter servers? Add --ps 1.");
  ClusterConfig file;
  file.ps = {"x:1", "y:1"};
  file.worker = {"z:1"};
  CHECK(AssignFromSlurm(step, {}, file).cluster.ps == Addresses{"a:9000", "a:9001"});
  CHECK(AssignFromSlurm(step, {1, {}}, file).cluster.ps == Addresses{"a:9000"});
  CHECK(ErrorOf([&] { Assign(step, {3, {}}); }).find("--ps 3: this Slurm step has 3 ranks") == 0);
  CHECK(ErrorOf([&] { Assign(Step(0, 1, "a", "1")); }).find("--ps 1: this Slurm step has 1 rank,") == 0);
}

TEST_CASE("slurm: ports stay in their range") {
  const Environment step = Step(0, 3, "a", "3");
  CHECK(Assign(step, {1, 65533}).cluster.worker.back() == "a:65535");
  CHECK(ErrorOf([&] { Assign(step, {1, 65534}); }).find("--base-port 65534: ports are 1 to 65535") == 0);
  CHECK(ErrorOf([&] { Assign(step, {1, 0}); }).find("--base-port 0: ") == 0);
}

}  // namespace
}  // namespace dtrain
