#include "trainer/env/assignment.h"

#include <doctest/doctest.h>

#include "trainer/env/env_test_util.h"

namespace dtrain {
namespace {

using Addresses = std::vector<std::string>;

// `cluster` and `task` of TF_CONFIG, as JSON.
Assignment From(const std::string& cluster, const std::string& task) {
  return AssignFromTfConfig({{"TF_CONFIG", R"({"cluster": )" + cluster + R"(, "task": )" + task + "}"}});
}

constexpr const char* kPlain = R"({"ps": ["p:1", "q:1"], "worker": ["a:1", "b:1"]})";
constexpr const char* kChief = R"({"chief": ["c:1"], "ps": ["p:1"], "worker": ["a:1", "b:1"]})";
constexpr const char* kWorker0 = R"({"type": "worker", "index": 0})";

TEST_CASE("tf_config: without a chief worker i is worker i") {
  const Assignment assignment = From(kPlain, R"({"type": "worker", "index": 1})");
  CHECK(assignment.cluster.ps == Addresses{"p:1", "q:1"});
  CHECK(assignment.cluster.worker == Addresses{"a:1", "b:1"});
  REQUIRE(assignment.task.has_value());
  CHECK(assignment.task->role == Role::kWorker);
  CHECK(assignment.task->index == 1);
  CHECK(assignment.name == "worker 1 of TF_CONFIG");
}

TEST_CASE("tf_config: a ps is the ps of that number") {
  const Assignment assignment = From(kPlain, R"({"type": "ps", "index": 1})");
  CHECK(assignment.task->role == Role::kPs);
  CHECK(assignment.task->index == 1);
}

TEST_CASE("tf_config: the chief is worker 0, and the workers come behind it") {
  for (const char* name : {"chief", "master"}) {
    std::string cluster = kChief;
    cluster.replace(cluster.find("chief"), 5, name);
    const Assignment chief = From(cluster, fmt::format(R"({{"type": "{}", "index": 0}})", name));
    CHECK(chief.cluster.worker == Addresses{"c:1", "a:1", "b:1"});
    CHECK(chief.task->role == Role::kWorker);
    CHECK(chief.task->index == 0);
    CHECK(From(cluster, R"({"type": "worker", "index": 1})").task->index == 2);
    CHECK(From(cluster, R"({"type": "ps", "index": 0})").task->index == 0);
  }
}

TEST_CASE("tf_config: a cluster may have a chief and no other worker") {
  const Assignment chief = From(R"({"chief": ["c:1"], "ps": ["p:1"]})", R"({"type": "chief", "index": 0})");
  CHECK(chief.cluster.worker == Addresses{"c:1"});
}

TEST_CASE("tf_config: an evaluator is no task of the cluster, in its list or not") {
  const std::string task = R"({"type": "evaluator", "index": 0})";
  CHECK_FALSE(From(kPlain, task).task.has_value());
  const Assignment listed = From(R"({"evaluator": ["e:1"], "ps": ["p:1"], "worker": ["a:1"]})", task);
  CHECK_FALSE(listed.task.has_value());
  CHECK(listed.cluster.worker == Addresses{"a:1"});
  CHECK(listed.name == "evaluator 0 of TF_CONFIG");
}

TEST_CASE("tf_config: tasks may have their numbers as keys, in any order, and gaps are closed") {
  constexpr const char* kMap =
      R"({"ps": {"0": "p:1"}, "worker": {"10": "c:1", "2": "b:1", "0": "a:1"}, "chief": ["m:1"]})";
  const Assignment assignment = From(kMap, R"({"type": "worker", "index": 10})");
  CHECK(assignment.cluster.ps == Addresses{"p:1"});
  CHECK(assignment.cluster.worker == Addresses{"m:1", "a:1", "b:1", "c:1"});
  CHECK(assignment.task->index == 3);
  CHECK(assignment.name == "worker 10 of TF_CONFIG");
  CHECK(From(kMap, R"({"type": "worker", "index": "2"})").task->index == 2);
  CHECK(ErrorOf([&] { From(kMap, R"({"type": "worker", "index": 1})"); }) ==
        "TF_CONFIG: task.index = 1; cluster.worker has 3 of them, 0 to 10. Correct task.index, or add the "
        "address.");
  for (const char* key : {"x", "-1", "1.5", ""}) {
    const std::string cluster = fmt::format(R"({{"ps": ["p:1"], "worker": {{"{}": "a:1"}}}})", key);
    CHECK(Contains(ErrorOf([&] { From(cluster, kWorker0); }), "the key must be the number of a task"));
  }
  CHECK(Contains(ErrorOf([] { From(R"({"ps": {"0": "p:1", "00": "q:1"}, "worker": ["a:1"]})", kWorker0); }),
                 "has another address already"));
  CHECK(Contains(ErrorOf([] { From(R"({"ps": {"0": "p"}, "worker": ["a:1"]})", kWorker0); }),
                 "cluster.ps[0] = \"p\"; an address needs a port"));
}

TEST_CASE("tf_config: what others put in beside it is left alone") {
  const std::string text = std::string(R"({"cluster": )") + kPlain +
                           R"(, "task": {"type": "ps", "index": "1", "trial": "x"}, "environment": "cloud"})";
  CHECK(AssignFromTfConfig({{"TF_CONFIG", text}}).task->index == 1);
}

TEST_CASE("tf_config: a variable that is missing or empty is named, with what to do") {
  for (const Environment& environment : {Environment{}, Environment{{"TF_CONFIG", ""}}}) {
    const std::string text = ErrorOf([&] { AssignFromTfConfig(environment); });
    CHECK(text.find("TF_CONFIG is not set") == 0);
    CHECK(Contains(text, "--role"));
  }
}

TEST_CASE("tf_config: what is not JSON is told with its place") {
  const std::string text = ErrorOf([] { AssignFromTfConfig({{"TF_CONFIG", "{\"cluster\": {\n\"ps\" [}"}}); });
  CHECK(text.find("TF_CONFIG: not JSON: parse error at line 2, column") == 0);
  for (const char* other : {"[]", "3", "{}", R"({"cluster": []})"}) {
    CAPTURE(other);
    CHECK(ErrorOf([&] { AssignFromTfConfig({{"TF_CONFIG", other}}); }).find("TF_CONFIG: ") == 0);
  }
}

TEST_CASE("tf_config: a key that stands twice is refused, where the later one would silently count") {
  CHECK(ErrorOf([] { From(R"({"ps": ["p:1"], "worker": ["a:1"], "worker": ["b:1"]})", kWorker0); }) ==
        "TF_CONFIG: the key \"worker\" stands twice in one object. Leave one.");
  CHECK(ErrorOf([] {
          From(kPlain, R"({"type": "worker", "index": 0, "index": 1})");
        }).find("the key \"index\" stands twice") != std::string::npos);
  // The same name in two objects is no repetition.
  CHECK(From(kPlain, R"({"type": "worker", "index": 0, "environment": {"type": "x"}})").task->index == 0);
}

TEST_CASE("tf_config: an unknown type is told with the one that was meant") {
  const std::string text = ErrorOf([] { From(kPlain, R"({"type": "workr", "index": 0})"); });
  CHECK(Contains(text, "task.type = \"workr\"; must be chief, master, worker, ps or evaluator"));
  CHECK(Contains(text, "Did you mean worker?"));
  CHECK(Contains(ErrorOf([] { From(kPlain, R"({"index": 0})"); }), "task.type = null"));
  CHECK(Contains(ErrorOf([] { From(R"({"ps": ["p:1"], "wroker": ["a:1"]})", kWorker0); }),
                 "Did you mean worker?"));
  const std::string upper = ErrorOf([] { From(R"({"PS": ["p:1"], "worker": ["a:1"]})", kWorker0); });
  CHECK(Contains(upper, "cluster has the job \"PS\"; must be chief"));
  CHECK(Contains(upper, "Did you mean ps?"));
}

TEST_CASE("tf_config: an index is a number of the cluster") {
  CHECK(Contains(ErrorOf([] { From(kPlain, R"({"type": "worker", "index": 2})"); }),
                 "task.index = 2; cluster.worker has 2 of them"));
  CHECK(Contains(ErrorOf([] { From(kPlain, R"({"type": "chief", "index": 0})"); }), "cluster.chief has 0"));
  for (const char* bad : {"-1", "\"x\"", "1.5", "null", "[]", "99999999999"}) {
    CAPTURE(bad);
    const std::string task = fmt::format(R"({{"type": "worker", "index": {}}})", bad);
    CHECK(Contains(ErrorOf([&] { From(kPlain, task); }), "task.index = "));
  }
}

TEST_CASE("tf_config: clusters that cannot train are refused by what they lack or have twice") {
  const auto error = [](const char* cluster) { return ErrorOf([&] { From(cluster, kWorker0); }); };
  CHECK(Contains(error(R"({"worker": ["a:1"]})"), "cluster has no ps"));
  CHECK(Contains(error(R"({"ps": ["p:1"]})"), "neither chief nor worker"));
  CHECK(Contains(error(R"({"chief": ["c:1"], "master": ["m:1"], "ps": ["p:1"]})"), "chief and master"));
  CHECK(Contains(error(R"({"chief": ["c:1", "d:1"], "ps": ["p:1"], "worker": ["a:1"]})"),
                 "a cluster has one chief"));
  CHECK(Contains(error(R"({"ps": "p:1", "worker": ["a:1"]})"), "cluster.ps = \"p:1\"; must be a list"));
  CHECK(Contains(error(R"({"ps": ["p:1"], "worker": ["a:1", 3]})"), "cluster.worker[1] = 3; must be a text"));
  CHECK(Contains(error(R"({"ps": ["p"], "worker": ["a:1"]})"),
                 "cluster.ps[0] = \"p\"; an address needs a port"));
}

}  // namespace
}  // namespace dtrain
