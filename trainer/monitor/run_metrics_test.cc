#include "trainer/monitor/run_metrics.h"

#include <doctest/doctest.h>

#include <string>

namespace dtrain {
namespace {

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

const char kStatus[] =
    R"({"version": "0.1.0", "run_id": "00ff", "restarts_from_checkpoint": 2, "phase": "training",
  "global_step": 300, "steps": null, "steps_per_s": 41.25, "loss": 0.42,
  "checkpoint": {"path": "run/step-200", "step": 200, "age_s": 2.5},
  "tasks": [
    {"role": "ps", "index": 0, "process": "node1, pid 7", "state": "here", "heard_s": 0.0, "memory_bytes": 1048576},
    {"role": "ps", "index": 1, "process": "node3, pid 7", "state": "here", "replica": {"on": "ps 0", "counts": true}},
    {"role": "ps", "index": 2, "process": "node3, pid 8", "state": "here", "replica": {"on": "ps 0", "counts": false}},
    {"role": "worker", "index": 0, "process": "node2, pid 9", "state": "lost", "heard_s": null,
     "local_steps": 150, "bytes_sent": 900, "staleness": 0.5, "time": {"data": 0.25, "compute": 0.75}}]})";

TEST_CASE("metrics: the figures of the run and of each task, with the run's name as a label") {
  const std::string text = MetricsText(Json::Parse(kStatus), {"monday", 5000, 1500000000});
  CAPTURE(text);
  for (const char* const line :
       {"# TYPE dtrain_global_step gauge\ndtrain_global_step{run=\"monday\"} 300\n",
        "# TYPE dtrain_rollbacks_total counter\ndtrain_rollbacks_total{run=\"monday\"} 2\n",
        "dtrain_info{run=\"monday\",version=\"0.1.0\",run_id=\"00ff\"} 1\n",
        "dtrain_status_timestamp_seconds{run=\"monday\"} 1.5\n",
        "dtrain_phase{run=\"monday\",phase=\"training\"} 1\n",
        "dtrain_phase{run=\"monday\",phase=\"joining\"} 0\n",
        "dtrain_checkpoint_age_seconds{run=\"monday\"} 2.5\n",
        "dtrain_checkpoint_disk_free_bytes{run=\"monday\"} 5000\n",
        "dtrain_replica_counts{run=\"monday\",role=\"ps\",index=\"1\",host=\"node3\"} 1\n",
        "dtrain_replica_counts{run=\"monday\",role=\"ps\",index=\"2\",host=\"node3\"} 0\n",
        "dtrain_task_memory_bytes{run=\"monday\",role=\"ps\",index=\"0\",host=\"node1\"} 1048576\n",
        "dtrain_task_state{run=\"monday\",role=\"worker\",index=\"0\",host=\"node2\",state=\"lost\"} 1\n",
        "dtrain_task_state{run=\"monday\",role=\"worker\",index=\"0\",host=\"node2\",state=\"here\"} 0\n",
        "# TYPE dtrain_task_sent_bytes_total counter\n",
        "dtrain_task_sent_bytes_total{run=\"monday\",role=\"worker\",index=\"0\",host=\"node2\"} 900\n",
        "dtrain_worker_staleness{run=\"monday\",role=\"worker\",index=\"0\",host=\"node2\"} 0.5\n",
        "dtrain_worker_time_ratio{run=\"monday\",role=\"worker\",index=\"0\",host=\"node2\",part=\"compute\"}"
        " 0.75\n"}) {
    CAPTURE(line);
    CHECK(Contains(text, line));
  }
  CHECK_FALSE(Contains(text, "dtrain_planned_steps"));
  CHECK_FALSE(Contains(text, "dtrain_replica_counts{run=\"monday\",role=\"ps\",index=\"0\""));
  CHECK_FALSE(Contains(text, "dtrain_task_heard_seconds{run=\"monday\",role=\"worker\""));
}

TEST_CASE("metrics: names and labels that a status has not, or that are of another kind, are left out") {
  const std::string text = MetricsText(
      Json::Parse(R"({"global_step": "x", "checkpoint": 5, "tasks": [7, {"role": "ps"}, {"index": "1"}]})"),
      {"", -1, 0});
  CHECK(Contains(text, "dtrain_info{version=\"\",run_id=\"\"} 1\n"));
  CHECK_FALSE(Contains(text, "dtrain_global_step"));
  CHECK_FALSE(Contains(text, "dtrain_task"));
  CHECK_FALSE(Contains(text, "disk_free"));
  CHECK(MetricsText(Json(), {"", -1, 0}) != "");
}

TEST_CASE("metrics: a name with quotes and line ends stays inside its label") {
  const std::string text = MetricsText(Json::Parse("{}"), {"a\"b\n} 1", -1, 0});
  CHECK(Contains(text, "dtrain_info{run=\"a\\\"b\\n} 1\","));
}

}  // namespace
}  // namespace dtrain
