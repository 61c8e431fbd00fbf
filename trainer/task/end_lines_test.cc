#include "trainer/task/run_log.h"

#include <doctest/doctest.h>

#include <fstream>
#include <functional>

#include "base/testing/files.h"

namespace dtrain {
namespace {

RunSummary DoneRun() {
  RunSummary summary;
  summary.status = "done";
  summary.global_step = 20;
  summary.examples = 200;
  summary.wall_s = 1.5;
  summary.final_loss = 0.25;
  summary.test_accuracy = 0.9;
  summary.test_loss = 0.5;
  summary.model_crc = "0123abcd";
  summary.local_steps = {12, 8};
  summary.worker_accuracy = {0.875, 0.885};
  summary.workers.resize(2);
  for (WorkerFigures& figures : summary.workers) figures.steps = 10;
  return summary;
}

// The text after "NAME | " of each line; of lines about a worker's time only up to the colon.
std::string Logged(const std::function<void(Logger&)>& say) {
  LogOptions options;
  options.directory = testing::NewDirectory();
  options.standard_error = false;
  Logger log("name", options);
  say(log);
  std::ifstream file(log.path());
  std::string text;
  for (std::string line; std::getline(file, line);) {
    const std::string said = line.substr(line.find(" | ") + 3);
    text += said.substr(0, said.find(": waited")) + "\n";
  }
  return text;
}

TEST_CASE("end lines: a run's have every worker's accuracy and times once") {
  CHECK(Logged([](Logger& log) { LogRunEnd(Config(), DoneRun(), log); }) ==
        "20 global steps, 200 examples, 0.0 steps/s, 0 examples/s, 0 bytes sent\n"
        "test accuracy of worker 0: 0.8750\n"
        "test accuracy of worker 1: 0.8850\n"
        "test accuracy of the final weights: 0.9000\n"
        "test loss of the final weights: 0.5\n"
        "worker 0\n"
        "worker 1\n"
        "total time: 1.50 s, final cost: 0.25, model crc 0123abcd\n"
        "done\n");
}

TEST_CASE("end lines: a worker's have its own accuracy, and a ps has none") {
  CHECK(Logged([](Logger& log) {
          LogEnd(Config(), {Role::kWorker, 1}, DoneRun(), log);
        }) ==
        "20 global steps, 200 examples, 0.0 steps/s, 0 examples/s, 0 bytes sent\n"
        "test accuracy of this worker: 0.8850\n"
        "test accuracy of the final weights: 0.9000\n"
        "test loss of the final weights: 0.5\n"
        "worker 1\n"
        "total time: 1.50 s, final cost: 0.25, model crc 0123abcd\n"
        "done\n");
  CHECK(Logged([](Logger& log) {
          LogEnd(Config(), {Role::kPs, 0}, DoneRun(), log);
        }) ==
        "20 global steps, 200 examples, 0.0 steps/s, 0 examples/s, 0 bytes sent\n"
        "total time: 1.50 s, final cost: 0.25, model crc 0123abcd\n"
        "done\n");
}

TEST_CASE("end lines: of a run that was done before there is one line") {
  RunSummary summary = DoneRun();
  summary.status = "already_done";
  summary.checkpoint = "run/ckpt/step-000000020";
  const std::string text = Logged([&](Logger& log) { LogRunEnd(Config(), summary, log); });
  CHECK(text.rfind("already done: run/ckpt/step-000000020 has the last step, 20, accuracy 0.9000", 0) == 0);
  CHECK(text.find('\n') == text.size() - 1);
}

}  // namespace
}  // namespace dtrain
