#include "cmd/run/run_result.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "trainer/config/config.h"
#include "trainer/result/verdict.h"

namespace dtrain {
namespace {

RunSummary Done() {
  RunSummary summary;
  summary.status = "done";
  summary.global_step = 20;
  summary.examples = 200;
  summary.wall_s = 1.5;
  summary.train_s = 1.25;
  summary.steps_per_s = 16;
  summary.examples_per_s = 160;
  summary.final_loss = 0.25;
  summary.model_crc = "0123abcd";
  summary.bytes_sent = 1536;
  summary.local_steps = {12, 8};
  summary.workers.resize(2);
  for (WorkerFigures& worker : summary.workers) {
    worker.steps = 10;
    worker.compute.total_s = 0.5;
    worker.wait.total_s = 0.5;
  }
  return summary;
}

TEST_CASE("run result: what was done, how good it is, how long it took, and where the model is") {
  RunSummary summary = Done();
  summary.validation.rows = summary.test.rows = 10;
  summary.validation.loss = 0.25;
  summary.test.accuracy = 0.9;
  summary.test.log_loss = summary.test.loss = 0.5;
  summary.test.base_accuracy = 0.6;
  summary.test.base_class = "no";
  summary.checkpoint = "run/ckpt/step-000000020";
  CHECK(ResultLines(Config(), summary) ==
        std::vector<std::string>{
            "done: 20 global steps, 200 examples in 1.25 s, 16.0 steps/s, 160 examples/s",
            "validation (10 rows): loss 0.25",
            "test (10 rows): accuracy 0.9000, better than always \"no\" (0.6000)", "  log loss 0.5",
            "total time: 1.50 s, loss of the last 100 steps: 0.25, 1.5 KiB sent, model crc 0123abcd",
            "checkpoint: run/ckpt/step-000000020"});
}

TEST_CASE("run result: steps from before a resume are not those of its time") {
  RunSummary summary = Done();
  summary.steps_before = 5;
  CHECK(ResultLines(Config(), summary)[0] ==
        "done: 20 global steps, 200 examples, 15 of the steps in 1.25 s, 16.0 steps/s, 160 examples/s");
}

TEST_CASE("run result: of two uneven classes it says what says more than accuracy") {
  const std::string line =
      "  with classes this uneven AUC says more than accuracy; dtrain eval lists precision and recall for "
      "each "
      "--threshold (now 0.5)";
  RunSummary summary = Done();
  summary.test.rows = 10;
  summary.test.accuracy = 0.9;
  summary.test.base_accuracy = 0.9;
  const auto count = [&] {
    const std::vector<std::string> lines = ResultLines(Config(), summary);
    return std::count(lines.begin(), lines.end(), line);
  };
  CHECK(count() == 0);  // of several classes
  summary.test.thresholds.emplace();
  CHECK(count() == 1);
  summary.test.base_accuracy = 0.55;
  CHECK(count() == 0);
}

TEST_CASE("run result: it says what would have been sent without net.compress, or without packed keys") {
  Config config;
  RunSummary summary = Done();
  summary.bytes_saved = 1536;
  const auto says = [&](const std::string& by) {
    const std::vector<std::string> lines = ResultLines(config, summary);
    return std::count(
               lines.begin(), lines.end(),
               "total time: 1.50 s, loss of the last 100 steps: 0.25, 1.5 KiB sent in place of 3.0 KiB (" +
                   by + "), model crc 0123abcd") == 1;
  };
  CHECK(says("packed keys"));
  config.net.compress.pull = net::Compression::kBf16;
  CHECK(says("net.compress"));
}

TEST_CASE("run result: it never has more than fourteen lines") {
  Config config;
  config.data.class_weights = {"balanced"};
  RunSummary summary = Done();
  summary.lost_workers = {1};
  summary.absent_workers = {2, 3};
  summary.table = TableFigures{};
  summary.weights = {{"biases/b1", {10}}, {"weights/W1", {2}}};
  summary.checkpoint = "run/ckpt/step-000000020";
  for (EvaluationFigures* const set : {&summary.validation, &summary.test}) {
    set->rows = 10;
    set->accuracy = set->log_loss = set->auc = 0.9;
  }
  const std::vector<std::string> lines = ResultLines(config, summary);
  CHECK(lines.size() == 14);
  CHECK(lines[0].rfind("done, but worker 1 was lost: ", 0) == 0);
  CHECK(std::count(lines.begin(), lines.end(), "took no part: worker 2 and worker 3") == 1);
  CHECK(std::count(lines.begin(), lines.end(), "weights/W1 = 2") == 1);
  CHECK(std::count(lines.begin(), lines.end(), ClassWeightsLine(config.data)) == 1);
}

TEST_CASE("run result: one line of a run that was done before") {
  RunSummary summary = Done();
  summary.status = "already_done";
  summary.checkpoint = "run/ckpt/step-000000020";
  REQUIRE(ResultLines(Config(), summary).size() == 1);
  CHECK(ResultLines(Config(), summary)[0].rfind("already done: run/ckpt/step-000000020 has the last step",
                                                0) == 0);
}

TEST_CASE("worker table: a row for each worker that took steps, of columns that say something") {
  RunSummary summary = Done();
  CHECK(WorkerTable(summary) ==
        std::vector<std::string>{"worker  steps  examples/s  waited  data  compute  hooks  network",
                                 "     0     10         100    50 %   0 %     50 %    0 %      0 %",
                                 "     1     10         100    50 %   0 %     50 %    0 %      0 %"});
  summary.workers[1].staleness = StalenessSpread{1.94, 2, 3, 7};
  summary.worker_accuracy = {0.875, std::nullopt};
  CHECK(WorkerTable(summary, 1) ==
        std::vector<std::string>{
            "worker steps examples/s waited data compute hooks network staleness accuracy",
            "     1    10        100   50 %  0 %    50 %   0 %     0 %       1.9        -"});
  for (WorkerFigures& worker : summary.workers) worker.steps = 0;
  CHECK(WorkerTable(summary).empty());
}

TEST_CASE("worker table: its rows fit into 80 columns") {
  RunSummary summary = Done();
  summary.workers.assign(20, summary.workers[0]);
  for (WorkerFigures& worker : summary.workers) {
    worker.steps = 99'999'999;
    worker.wait.total_s = 1e5;
    worker.staleness = StalenessSpread{12345.6, 2, 3, 7};
  }
  summary.worker_accuracy.assign(20, 0.8925);
  for (const std::string& line : WorkerTable(summary)) CHECK(line.size() <= 80);
}

}  // namespace
}  // namespace dtrain
