#include "cmd/status/status_text.h"

#include <doctest/doctest.h>

#include <string>

namespace dtrain {
namespace {

const char kStatus[] = R"({"phase": "training", "waiting": null, "global_step": 300, "steps": 1200,
  "steps_per_s": 41.25, "examples_per_s": 4125.0, "left_s": 21.8, "loss": 0.42,
  "bytes_sent": 104857600, "bytes_received": 104857600, "bytes_saved": 314572800,
  "checkpoint": {"path": "run/step-200", "step": 200, "age_s": 2.4},
  "evaluation": {"set": "validation", "best_loss": 0.5, "best_step": 250}, "warnings": ["worker 1 is slow"],
  "tasks": [
    {"role": "ps", "index": 0, "address": "a:1", "process": "node1, pid 7", "state": "here", "heard_s": 0.0,
     "memory_bytes": 10485760},
    {"role": "worker", "index": 0, "address": "a:2", "process": null, "state": "lost", "heard_s": null,
     "memory_bytes": null, "steps_per_s": null, "time": null},
    {"role": "worker", "index": 1, "address": "a:3", "process": "node2, pid 9", "state": "here", "heard_s": 0.31,
     "memory_bytes": 20971520, "steps_per_s": 1234.5,
     "time": {"data": 0.004, "compute": 0.62, "hooks": 0.0, "wait": 0.08, "network": 0.296}}]})";

TEST_CASE("status text: the run in a line, then what matters, then a row for each task") {
  CHECK(StatusText(Json::Parse(kStatus), 200) ==
        "training, step 300 of 1200 (25 %), 41.2 steps/s, 4125 examples/s, 0:22 left, loss 0.42, without "
        "worker 0\n"
        "sent 100.0 MiB (400.0 MiB before compression)\n"
        "checkpoint of step 200, 0:03 old: run/step-200\n"
        "best evaluation: validation loss 0.5 at step 250\n"
        "warning: worker 1 is slow\n"
        "\n"
        "task      state  process       heard  memory    steps/s  time of steps\n"
        "ps 0      here   node1, pid 7  0.0 s  10.0 MiB\n"
        "worker 0  lost   a:2           -      -         -        -\n"
        "worker 1  here   node2, pid 9  0.3 s  20.0 MiB  1234     compute 62 %, wait 8 %, network 30 %\n");
}

TEST_CASE(
    "status text: what is sent is told when it is known, and before compression where that has saved some") {
  const auto text = [](const std::string& figures) {
    return StatusText(Json::Parse(R"({"phase": "joining", )" + figures + "}"), 80);
  };
  CHECK(text(R"("bytes_sent": null, "bytes_saved": null)") == "joining\n");
  CHECK(text(R"("bytes_sent": 2097152, "bytes_saved": 0)") == "joining\nsent 2.0 MiB\n");
  CHECK(text(R"("bytes_sent": 2097152)") == "joining\nsent 2.0 MiB\n");
}

TEST_CASE("status text: a line tells of each replica whether the run can go on from it") {
  const Json status = Json::Parse(R"({"phase": "training", "tasks": [{"role": "ps", "index": 0},
    {"role": "ps", "index": 1, "replica": {"on": "ps 2", "counts": true, "epoch": 3, "behind": 3}},
    {"role": "ps", "index": 2, "replica": {"on": "ps 0", "counts": false, "epoch": 4}}]})");
  CHECK(StatusText(status, 80)
            .find("training\n"
                  "replica of ps 1 on ps 2: complete, 3 records behind\n"
                  "replica of ps 2 on ps 0: not complete yet\n"
                  "\n") == 0);
}

TEST_CASE("status text: no line is longer than the terminal is wide") {
  const std::string text = StatusText(Json::Parse(kStatus), 40);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    CHECK(end - begin <= 40);
    begin = end + 1;
  }
}

TEST_CASE("status text: what is missing or of another kind is left out") {
  CHECK(StatusText(Json::Parse(R"({"phase": "joining", "waiting": "joined 1 of 3; missing: ps 1"})"), 80) ==
        "joining\njoined 1 of 3; missing: ps 1\n");
  CHECK(
      StatusText(Json::Parse(
                     R"({"phase": 7, "global_step": "x", "steps": [], "checkpoint": 1, "tasks": [1, null]})"),
                 80) == "\n\ntask  state  process  heard  memory  steps/s  time of steps\n");
}

TEST_CASE("status text: what a task sends cannot move the cursor") {
  const Json status = Json::Parse(R"({"phase": "training", "tasks": [{"role": "worker", "index": 0,
    "process": "\u001b[2Jnode", "state": "here"}]})");
  CHECK(StatusText(status, 200).find('\x1b') == std::string::npos);
}

TEST_CASE("status text: a result is a line") {
  CHECK(
      ResultLine(Json::Parse(R"({"status": "done", "global_step": 1200, "final_loss": 0.5, "test_loss": 0.42,
    "test_accuracy": 0.97, "test_base_accuracy": 0.9, "wall_s": 12.1, "error": null})")) ==
      "done, step 1200, test loss 0.42, test accuracy 0.97 (without a model 0.9), in 0:13");
  CHECK(ResultLine(Json::Parse(R"({"status": "done", "test_rmse": 2, "test_base_rmse": 4, "test_mae": 1,
    "test_base_mae": 3, "test_r2": 0.75})")) ==
        "done, test RMSE 2 (without a model 4), test MAE 1 (without a model 3), test R2 0.75");
  CHECK(ResultLine(Json::Parse(R"({"status": "done", "test_rmse": 2, "test_base_rmse": 0})")) ==
        "done, test RMSE 2");
  CHECK(ResultLine(Json::Parse(R"({"status": "done", "final_loss": 0.5, "validation_loss": 0.45})")) ==
        "done, validation loss 0.45");
  CHECK(
      ResultLine(Json::Parse(R"({"status": "failed", "final_loss": null, "error": "worker 1: no rows"})")) ==
      "failed: worker 1: no rows");
}

TEST_CASE("status text: a result names the workers that the run had lost") {
  CHECK(ResultLine(Json::Parse(R"({"status": "done", "global_step": 9, "lost_workers": [1]})")) ==
        "done, step 9, without worker 1");
  CHECK(ResultLine(Json::Parse(R"({"status": "done", "global_step": 9, "lost_workers": [1, 2, 4]})")) ==
        "done, step 9, without worker 1, worker 2 and worker 4");
  CHECK(StatusText(Json::Parse(R"({"phase": "ended", "global_step": 9})"), 80, /*with_run=*/false) == "");
}

TEST_CASE("status text: a terminal that is too low gets the first lines") {
  CHECK(FirstLines("a\nb\nc\n", 3) == "a\nb\nc\n");
  CHECK(FirstLines("a\nb\nc\nd\n", 3) == "a\nb\n... and 2 more lines\n");
}

}  // namespace
}  // namespace dtrain
