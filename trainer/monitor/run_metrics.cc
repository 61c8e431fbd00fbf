#include "trainer/monitor/run_metrics.h"

#include <fmt/core.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <sstream>
#include <utility>
#include <vector>

namespace dtrain {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

struct Metric {
  const char* key;  // in the status, or in one task of it
  const char* name;
  const char* help;
  MetricType type = MetricType::Gauge;
};

constexpr Metric kOfRun[] = {
    {"global_step", "dtrain_global_step", "The global step that the run has reached"},
    {"steps", "dtrain_planned_steps", "The global steps of the whole run"},
    {"steps_per_s", "dtrain_steps_per_second", "Global steps a second, over the last ten seconds"},
    {"examples_per_s", "dtrain_examples_per_second", "Examples a second, over the last ten seconds"},
    {"left_s", "dtrain_left_seconds", "Seconds until the run is done, at the present pace"},
    {"elapsed_s", "dtrain_elapsed_seconds", "Seconds since ps 0 was started"},
    {"loss", "dtrain_loss", "Mean of the workers' last 100 losses"},
    {"restarts_from_checkpoint", "dtrain_rollbacks_total", "How often the run has gone back to a checkpoint",
     MetricType::Counter},
};
constexpr Metric kOfCheckpoint[] = {
    {"step", "dtrain_checkpoint_step", "The global step of the newest checkpoint"},
    {"age_s", "dtrain_checkpoint_age_seconds", "Seconds since the newest checkpoint was complete"},
};
constexpr Metric kOfTasks[] = {
    {"heard_s", "dtrain_task_heard_seconds", "Seconds since the task was last heard"},
    {"memory_bytes", "dtrain_task_memory_bytes", "Resident memory of the task's process"},
    {"bytes_sent", "dtrain_task_sent_bytes_total", "Bytes of messages that the task has sent",
     MetricType::Counter},
    {"bytes_received", "dtrain_task_received_bytes_total", "Bytes of messages that it has received",
     MetricType::Counter},
    {"bytes_saved", "dtrain_task_saved_bytes_total",
     "Bytes that net.compress and packed keys have saved in what it has sent", MetricType::Counter},
    {"local_steps", "dtrain_worker_local_steps", "Steps of the worker since it was started"},
    {"steps_per_s", "dtrain_worker_steps_per_second", "Its steps a second, over the last ten seconds"},
    {"loss", "dtrain_worker_loss", "Mean of its last 100 losses"},
    {"staleness", "dtrain_worker_staleness",
     "Updates that its gradients had missed, over the last ten seconds"},
};
constexpr const char* kPhases[] = {"joining", "initialising", "training", "stopping", "ending", "ended"};
constexpr const char* kStates[] = {"here", "preparing", "missing", "lost", "done", "failed", "ended"};
constexpr const char* kParts[] = {"data", "compute", "hooks", "wait", "network"};

// The families in the order of their first values.
class Families {
 public:
  explicit Families(Labels common) : common_(std::move(common)) {}

  void Add(const Metric& metric, double value, Labels labels = {}) {
    MetricFamily& family = Of(metric);
    ClientMetric sample;
    sample.label = common_;
    sample.label.insert(sample.label.end(), labels.begin(), labels.end());
    if (metric.type == MetricType::Counter) sample.counter.value = value;
    if (metric.type == MetricType::Gauge) sample.gauge.value = value;
    family.metric.push_back(std::move(sample));
  }
  // The values of those keys that `object` has.
  template <size_t kCount>
  void AddAll(const Metric (&metrics)[kCount], const Json& object, const Labels& labels = {}) {
    for (const Metric& metric : metrics) {
      if (const std::optional<double> number = NumberIn(object, metric.key)) Add(metric, *number, labels);
    }
  }
  // 1 for that of the words which is `word`, and 0 for the others.
  template <size_t kCount>
  void AddChoice(const Metric& metric, const char* const (&words)[kCount], const std::string& word,
                 const Labels& labels = {}) {
    for (const char* const one : words) {
      Labels all = labels;
      all.push_back({metric.key, one});
      Add(metric, word == one ? 1 : 0, std::move(all));
    }
  }
  const std::vector<MetricFamily>& all() const { return families_; }

 private:
  MetricFamily& Of(const Metric& metric) {
    for (MetricFamily& family : families_) {
      if (family.name == metric.name) return family;
    }
    families_.push_back({metric.name, metric.help, metric.type, {}});
    return families_.back();
  }

  const Labels common_;
  std::vector<MetricFamily> families_;
};

void AddTask(const Json& task, Families* families) {
  const Json* const index = task.Find("index");
  if (index == nullptr || !index->is_number_integer()) return;
  const std::string process = TextIn(task, "process");
  const Labels labels = {{"role", TextIn(task, "role")},
                         {"index", fmt::format("{}", index->get<int64_t>())},
                         {"host", process.substr(0, process.find(','))}};
  families->AddChoice({"state", "dtrain_task_state", "1 for the state that the task is in"}, kStates,
                      TextIn(task, "state"), labels);
  families->AddAll(kOfTasks, task, labels);
  const Json* const replica = task.Find("replica");
  const Json* const counts = replica != nullptr && replica->is_object() ? replica->Find("counts") : nullptr;
  if (counts != nullptr && counts->is_boolean()) {
    families->Add(
        {"", "dtrain_replica_counts", "1 if the run can go on from the replica of this ps, 0 if not"},
        counts->get<bool>() ? 1 : 0, labels);
  }
  const Json* const time = task.Find("time");
  if (time == nullptr || !time->is_object()) return;
  for (const char* const part : kParts) {
    const std::optional<double> share = NumberIn(*time, part);
    if (!share) continue;
    Labels all = labels;
    all.push_back({"part", part});
    families->Add(
        {"", "dtrain_worker_time_ratio", "Share of the worker's last ten seconds in this part of its steps"},
        *share, std::move(all));
  }
}

}  // namespace

std::string MetricsText(const Json& status, const HostFacts& facts) {
  Families families(facts.run.empty() ? Labels() : Labels{{"run", facts.run}});
  families.Add({"", "dtrain_info", "1; the labels tell which run of which program this is"}, 1,
               {{"version", TextIn(status, "version")}, {"run_id", TextIn(status, "run_id")}});
  families.Add({"", "dtrain_status_timestamp_seconds", "When these figures were taken, since 1970"},
               1e-9 * static_cast<double>(facts.wall_nanos));
  families.AddChoice({"phase", "dtrain_phase", "1 for the phase that the run is in"}, kPhases,
                     TextIn(status, "phase"));
  families.AddAll(kOfRun, status);
  const Json* const checkpoint = status.Find("checkpoint");
  if (checkpoint != nullptr && checkpoint->is_object()) families.AddAll(kOfCheckpoint, *checkpoint);
  if (facts.disk_free >= 0) {
    families.Add({"", "dtrain_checkpoint_disk_free_bytes", "Free space where checkpoints are written"},
                 static_cast<double>(facts.disk_free));
  }
  const Json* const tasks = status.Find("tasks");
  if (tasks != nullptr && tasks->is_array()) {
    for (const Json& task : *tasks) AddTask(task, &families);
  }
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families.all());
  return text.str();
}

}  // namespace dtrain
