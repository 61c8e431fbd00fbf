#include "trainer/config/cluster_config.h"
#include "trainer/env/assignment.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

constexpr const char* kExample =
    R"({"cluster": {"ps": ["a:2222"], "worker": ["b:2222"]}, "task": {"type": "worker", "index": 0}})";
const std::vector<std::string> kJobs = {"chief", "master", "worker", "ps", "evaluator"};

// Returns where a value is: `TF_CONFIG: cluster.ps[0] = "a"; `.
std::string At(const std::string& key, const Json& value) {
  const std::string text = value.is_array() ? "[...]" : value.is_object() ? "{...}" : value.dump();
  return fmt::format("TF_CONFIG: {} = {}; ", key, Shown(text));
}

Json ParseText(const Environment& environment) {
  const Environment::value_type* const variable = FindVariable(environment, {"TF_CONFIG"});
  if (variable == nullptr) {
    throw UserError(
        "TF_CONFIG is not set: --from tf_config reads the cluster and this process's task from it. A TFJob "
        "sets it where it has replicas of PS and of Worker; by hand: export TF_CONFIG='{}'. Or give --role "
        "and --index.",
        kExample);
  }
  Json::Problem problem;
  Json document = Json::ParseStrictly(variable->second, Json::kMaxDepth, &problem);
  if (problem.kind == Json::Problem::kRepeated) {
    throw UserError("TF_CONFIG: the key {} stands twice in one object. Leave one.",
                    Quoted(Shown(problem.text)));
  }
  if (problem.kind != Json::Problem::kNone) {
    throw UserError("TF_CONFIG: not JSON: {}. It must be as {}.", problem.text, kExample);
  }
  return document;
}

const Json& Member(const Json& parent, const char* key) {
  if (!parent.is_object()) {
    throw UserError("TF_CONFIG: must be a JSON object, as {}.", kExample);
  }
  const Json* const found = parent.Find(key);
  if (found == nullptr || !found->is_object()) {
    throw UserError("TF_CONFIG: {} is missing, or no object. It must be as {}.", key, kExample);
  }
  return *found;
}

// `said` is the place with "; " behind it.
void CheckJob(const std::string& said, const std::string& job) {
  if (std::find(kJobs.begin(), kJobs.end(), job) != kJobs.end()) return;
  const std::string close = ClosestName(job, kJobs);
  throw UserError("{}must be {}.{}", said, ListText(kJobs, "or"),
                  close.empty() ? "" : fmt::format(" Did you mean {}?", close));
}

// The addresses of one job, by the number of the task.
using Tasks = std::map<int, std::string>;

// Returns a number in [0, 1000000] that `text` is; unset: it is none.
std::optional<int> NumberIn(const std::string& text) {
  int number = -1;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  return whole && number >= 0 && number <= 1000000 ? std::optional<int>(number) : std::nullopt;
}

// Returns the addresses of one job; empty if there is no such job. It is a list, or an object whose keys are
// the numbers of the tasks.
Tasks Addresses(const Json& cluster, const std::string& job) {
  Tasks addresses;
  const Json* const found = cluster.Find(job);
  if (found == nullptr || found->is_null()) return addresses;
  const std::string key = "cluster." + job;
  const auto add = [&](const std::string& name, std::optional<int> number, const Json& item) {
    const std::string where = fmt::format("{}[{}]", key, name);
    if (!number) throw UserError("{}the key must be the number of a task. Try \"0\".", At(where, item));
    if (!item.is_string()) throw UserError("{}must be a text. Try \"host:2222\".", At(where, item));
    const std::string problem = AddressProblem(item.get<std::string>());
    if (!problem.empty()) throw UserError("{}{}", At(where, item), problem);
    if (addresses.emplace(*number, item.get<std::string>()).second) return;
    throw UserError("{}the task has another address already. Leave one.", At(where, item));
  };
  if (found->is_object()) {
    for (const auto& [name, item] : found->items()) add(Shown(name), NumberIn(name), item);
  } else if (found->is_array()) {
    for (const Json& item : *found) {
      const auto number = static_cast<int>(addresses.size());
      add(std::to_string(number), number, item);
    }
  } else {
    throw UserError("{}must be a list of addresses. Try [\"host:2222\"].", At(key, *found));
  }
  return addresses;
}

// Returns all jobs of the cluster with their addresses.
std::map<std::string, Tasks> Jobs(const Json& cluster) {
  std::map<std::string, Tasks> jobs;
  std::set<std::string> names;
  for (const auto& [job, addresses] : cluster.items()) names.insert(job);
  for (const std::string& job : names) {
    CheckJob(fmt::format("TF_CONFIG: cluster has the job {}; ", Quoted(Shown(job))), job);
  }
  for (const std::string& job : kJobs) jobs[job] = Addresses(cluster, job);
  if (!jobs["chief"].empty() && !jobs["master"].empty()) {
    throw UserError(
        "TF_CONFIG: cluster has chief and master, which are two names for worker 0. Leave one of them.");
  }
  for (const char* job : {"chief", "master"}) {
    if (jobs[job].size() < 2) continue;
    throw UserError("{}a cluster has one {}. Leave the others out, or make them workers.",
                    At(std::string("cluster.") + job, cluster.at(job)), job);
  }
  return jobs;
}

ClusterConfig ClusterOf(const std::map<std::string, Tasks>& jobs) {
  ClusterConfig cluster;
  for (const auto& [index, address] : jobs.at("ps")) cluster.ps.push_back(address);
  for (const char* job : {"chief", "master", "worker"}) {
    for (const auto& [index, address] : jobs.at(job)) cluster.worker.push_back(address);
  }
  if (cluster.ps.empty()) {
    throw UserError(
        "TF_CONFIG: cluster has no ps: the weights are with the parameter servers. Add at least one (TFJob: "
        "tfReplicaSpecs.PS).");
  }
  if (cluster.worker.empty()) {
    throw UserError(
        "TF_CONFIG: cluster has neither chief nor worker: nobody computes. Add at least one (TFJob: "
        "tfReplicaSpecs.Worker).");
  }
  return cluster;
}

// Some programs write the index as a text.
int IndexOf(const Json& task) {
  const Json* const found = task.Find("index");
  const Json value = found == nullptr ? Json() : *found;
  const std::optional<int> number = NumberIn(value.is_string() ? value.get<std::string>() : value.dump());
  if (!number) throw UserError("{}must be a whole number >= 0.", At("task.index", value));
  return *number;
}

}  // namespace

Assignment AssignFromTfConfig(const Environment& environment) {
  const Json document = ParseText(environment);
  const auto jobs = Jobs(Member(document, "cluster"));
  Assignment assignment;
  assignment.cluster = ClusterOf(jobs);
  const Json& task = Member(document, "task");
  const Json* const type = task.Find("type");
  const Json shown = type == nullptr ? Json() : *type;
  const std::string job = shown.is_string() ? shown.get<std::string>() : "";
  CheckJob(At("task.type", shown), job);
  const int index = IndexOf(task);
  assignment.name = fmt::format("{} {} of TF_CONFIG", job, index);
  const Tasks& tasks = jobs.at(job);
  // TensorFlow leaves evaluators out of the cluster, because they take no part in training.
  if (job == "evaluator" && tasks.empty()) return assignment;
  const auto found = tasks.find(index);
  if (found == tasks.end()) {
    const std::string range =
        tasks.empty() ? "" : fmt::format(", {} to {}", tasks.begin()->first, tasks.rbegin()->first);
    throw UserError("{}cluster.{} has {} of them{}. Correct task.index, or add the address.",
                    At("task.index", Json(index)), job, tasks.size(), range);
  }
  // Tasks of dtrain have no gaps in their numbers.
  const auto place = static_cast<int>(std::distance(tasks.begin(), found));
  if (job == "ps") assignment.task = TaskId{Role::kPs, place};
  if (job == "chief" || job == "master") assignment.task = TaskId{Role::kWorker, 0};
  const auto chiefs = static_cast<int>(jobs.at("chief").size() + jobs.at("master").size());
  if (job == "worker") assignment.task = TaskId{Role::kWorker, chiefs + place};
  return assignment;
}

}  // namespace dtrain
