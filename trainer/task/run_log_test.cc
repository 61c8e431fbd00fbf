#include "trainer/task/run_log.h"

#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/testing/files.h"
#include "trainer/device/choice.h"
#include "trainer/model/model.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

TEST_CASE("checkpoint line: it says where, when and how many") {
  Config config;
  config.checkpoint.dir = "run/ckpt";
  CHECK(CheckpointLine(config) == "checkpoints: run/ckpt every 600 s, the newest 5 are kept");
  config.checkpoint.every_steps = 1000;
  config.checkpoint.keep = 1;
  CHECK(CheckpointLine(config) ==
        "checkpoints: run/ckpt every 600 s and every 1000 global steps, the newest one is kept");
  config.checkpoint.every_secs = 0;
  config.eval.keep_best = true;
  CHECK(CheckpointLine(config) ==
        "checkpoints: run/ckpt every 1000 global steps, the newest one and the best are kept");
  config.checkpoint.every_steps = 0;
  config.checkpoint.delta = 3;
  CHECK(
      CheckpointLine(config) ==
      "checkpoints: run/ckpt at the start and at the end, up to 3 deltas after each of all rows, the newest "
      "one and the best are kept");
  config.checkpoint.delta = 0;
  CHECK(CheckpointLine(config) ==
        "checkpoints: run/ckpt at the start and at the end, the newest one and the best are kept");
}

TEST_CASE("checkpoint line: without a directory it says what that means") {
  CHECK(CheckpointLine(Config()) ==
        "no checkpoint.dir: a lost ps or a signal ends the run with nothing saved");
}

constexpr TaskId kWorker{Role::kWorker, 2};

DeviceChoice Gpus(int count) {
  DeviceChoice choice;
  for (int id = 0; id < count; ++id) {
    choice.gpus.push_back({id, "NVIDIA H100 80GB HBM3", 9, 0, "0000:3b:00.0", 85520809984, 132});
  }
  return choice;
}

Config Mlp() {
  Config config = DigitsCluster(2, 1, 1);
  config.model.kind = ModelKind::kMlp;
  config.model.hidden = {100};
  config.train.optimizer.kind = OptimizerKind::kAdam;
  return config;
}

std::vector<std::string> Operations(const Config& config, const DeviceChoice& choice) {
  const int ps = static_cast<int>(config.cluster.ps.size());
  return OperationLines(config, PlaceVariables(ModelVariables(config.model), ps, config.placement), choice,
                        "cpu:0");
}

TEST_CASE("device lines: a GPU with its name, capability, memory and address") {
  Config config;
  config.device.memory_fraction = 0.25;
  CHECK(DeviceLines(config, kWorker, Gpus(1)) ==
        std::vector<std::string>{"device /job:worker/task:2/gpu:0: NVIDIA H100 80GB HBM3, compute capability "
                                 "9.0, 79.6 GiB (25 % allowed), pci 0000:3b:00.0"});
  CHECK(TowerLines(config, kWorker, Gpus(1)).empty());
}

TEST_CASE("device lines: a processor by the worker's id, and of a ps always 0") {
  Config config;
  config.device.ids = {3};
  config.device.threads = 2;
  const std::string processor = ProcessorName() + ", " + InstructionSet() + ", 2 threads";
  CHECK(DeviceLines(config, kWorker, {}) ==
        std::vector<std::string>{"device /job:worker/task:2/cpu:3: " + processor});
  CHECK(DeviceLines(config, {Role::kPs, 1}, {}) ==
        std::vector<std::string>{"device /job:ps/task:1/cpu:0: " + processor});
}

TEST_CASE("device lines: several GPUs are towers") {
  Config config;
  config.device.ids = {0, 1};
  const std::vector<std::string> lines = DeviceLines(config, kWorker, Gpus(2));
  REQUIRE(lines.size() == 3);
  CHECK(lines[1].find("device /job:worker/task:2/gpu:1: NVIDIA") == 0);
  CHECK(lines[2] == "2 towers: gpu 0, gpu 1; a step is 100 rows of each");
  CHECK(
      TowerLines(config, kWorker, Gpus(2)) ==
      std::vector<std::string>{"tower 0 -> /job:worker/task:2/gpu:0", "tower 1 -> /job:worker/task:2/gpu:1"});
  CHECK(TowerLines(config, {Role::kPs, 0}, {}).empty());
}

TEST_CASE("device lines: every operation of an mlp on its device, the updates on every ps") {
  CHECK(Operations(Mlp(), Gpus(1)) ==
        std::vector<std::string>{"layer 1 matmul, bias, sigmoid -> /job:worker/task:0/gpu:0",
                                 "layer 2 matmul, bias -> /job:worker/task:0/gpu:0",
                                 "loss softmax_cross_entropy -> /job:worker/task:0/gpu:0",
                                 "gradient weights/W2, biases/b2 -> /job:worker/task:0/gpu:0",
                                 "gradient weights/W1, biases/b1 -> /job:worker/task:0/gpu:0",
                                 "update adam -> /job:ps/task:0/cpu:0",
                                 "update adam -> /job:ps/task:1/cpu:0"});
}

TEST_CASE("device lines: a factorization machine has pairs of features") {
  Config config = LinearCluster(1, 1, 1);
  config.model.kind = ModelKind::kFm;
  config.model.head = ModelHead::kLogistic;
  config.model.factors = 3;
  CHECK(OperationLines(config, TableLayoutOf(config.model, 1), {}, "cpu:0") ==
        std::vector<std::string>{"layer 1 matmul, bias -> /job:worker/task:0/cpu:0",
                                 "pairs of features, 3 factors -> /job:worker/task:0/cpu:0",
                                 "loss sigmoid_cross_entropy -> /job:worker/task:0/cpu:0",
                                 "gradient rows of table in a batch -> /job:worker/task:0/cpu:0",
                                 "update sgd -> /job:ps/task:0/cpu:0"});
}

TEST_CASE("device lines: without hidden layers there is one layer, and several devices are towers") {
  Config config = LinearCluster(1, 1, 1);
  config.device.ids = {0, 4};
  CHECK(Operations(config, {}) == std::vector<std::string>{"layer 1 matmul, bias -> towers 0 to 1",
                                                           "loss mean_squared_error -> towers 0 to 1",
                                                           "gradient weights/W1, biases/b1 -> towers 0 to 1",
                                                           "update sgd -> /job:ps/task:0/cpu:0"});
  config.model.kind = ModelKind::kLogistic;
  CHECK(Operations(config, {})[1] == "loss sigmoid_cross_entropy -> towers 0 to 1");
}

TEST_CASE("worker lines: the share of waiting, then every part with its total, p50 and p95") {
  WorkerFigures figures;
  figures.steps = 5000;
  figures.data = {0.5, 0.01, 0.02};
  figures.compute = {1.5, 0.24, 0.26};
  figures.hooks = {0, 0, 0.0004};
  figures.wait = {6, 1.1, 2.2};
  figures.network = {2, 0.3, 0.5};
  CHECK(TimesLine(2, figures) ==
        "worker 2: waited 60 % for others; of 10.00 s in 5000 steps (p50 and p95 of a step in ms): "
        "data 0.50 s (0.010, 0.020), compute 1.50 s (0.240, 0.260), hooks 0.00 s (0.000, 0.000), "
        "wait 6.00 s (1.100, 2.200), network 2.00 s (0.300, 0.500)");
}

TEST_CASE("worker lines: a worker without time has waited for nothing") {
  CHECK(TimesLine(0, WorkerFigures()).find("waited 0 % for others; of 0.00 s in 0 steps") !=
        std::string::npos);
}

TEST_CASE("worker lines: staleness with its quantiles") {
  CHECK(StalenessLine(1, {1.94, 2, 3, 7}) == "worker 1: staleness 1.9 in the mean, p50 2, p95 3, at most 7");
}

RunSummary DoneRun() {
  RunSummary summary;
  summary.status = "done";
  summary.global_step = 20;
  summary.examples = 200;
  summary.wall_s = 1.5;
  summary.final_loss = 0.25;
  summary.test.rows = 100;
  summary.test.accuracy = 0.9;
  summary.test.loss = 0.5;
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
        "total time: 1.50 s, loss of the last 100 steps: 0.25, model crc 0123abcd\n"
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
        "total time: 1.50 s, loss of the last 100 steps: 0.25, model crc 0123abcd\n"
        "done\n");
  CHECK(Logged([](Logger& log) {
          LogEnd(Config(), {Role::kPs, 0}, DoneRun(), log);
        }) ==
        "20 global steps, 200 examples, 0.0 steps/s, 0 examples/s, 0 bytes sent\n"
        "total time: 1.50 s, loss of the last 100 steps: 0.25, model crc 0123abcd\n"
        "done\n");
}

TEST_CASE("end lines: what was sent is told with what it was before compression, where that has saved some") {
  RunSummary summary = DoneRun();
  summary.bytes_sent = 1000;
  summary.bytes_saved = 3000;
  const std::string lines = Logged([&](Logger& log) { LogRunEnd(Config(), summary, log); });
  CHECK(lines.find(", 1000 bytes sent (4000 before compression)\n") != std::string::npos);
}

TEST_CASE("end lines: of a run that was done before there is one line") {
  RunSummary summary = DoneRun();
  summary.status = "already_done";
  summary.checkpoint = "run/ckpt/step-000000020";
  const std::string text = Logged([&](Logger& log) { LogRunEnd(Config(), summary, log); });
  CHECK(text.rfind("already done: run/ckpt/step-000000020 has the last step, 20, test accuracy 0.9000", 0) ==
        0);
  CHECK(text.find('\n') == text.size() - 1);
}

TEST_CASE("end lines: of a run that was done before on other data it says so, and how to train on these") {
  RunSummary summary = DoneRun();
  summary.status = "already_done";
  summary.checkpoint = "run/ckpt/step-000000020";
  summary.other_data = "data.train has 50 rows here and had 40 there";
  const std::string text = Logged([&](Logger& log) { LogRunEnd(Config(), summary, log); });
  CHECK(text.find(
            "; but these are other data: data.train has 50 rows here and had 40 there. To train its model "
            "on them, name another checkpoint.dir, and checkpoint.start_from: run/ckpt/step-000000020") !=
        std::string::npos);
  CHECK(text.find("raise train.steps") == std::string::npos);
}

TEST_CASE("closing lines: done, and which workers were lost on the way") {
  RunSummary summary;
  summary.absent_workers = {4};
  CHECK(DoneLine(summary) == "done");
  summary.lost_workers = {2};
  CHECK(DoneLine(summary) == "done, but worker 2 was lost");
  summary.lost_workers = {0, 2, 3};
  CHECK(DoneLine(summary) == "done, but workers 0, 2 and 3 were lost");
}

TEST_CASE("closing lines: a worker that was lost is told with its steps, and one that never came") {
  RunSummary summary = DoneRun();
  summary.lost_workers = {1};
  summary.absent_workers = {2};
  const std::string text = Logged([&](Logger& log) { LogRunEnd(Config(), summary, log); });
  CHECK(text.find("\nwarning: worker 1 was lost after 8 local steps and did not come back\n") !=
        std::string::npos);
  CHECK(text.find("\nworker 2 took no part\n") != std::string::npos);
  CHECK(text.find("\ndone, but worker 1 was lost\n") != std::string::npos);
}

TEST_CASE("closing lines: the first worker that was here to the end tells for all") {
  RunSummary summary;
  CHECK(TellsForAll({Role::kWorker, 0}, summary));
  CHECK_FALSE(TellsForAll({Role::kWorker, 1}, summary));
  CHECK_FALSE(TellsForAll({Role::kPs, 0}, summary));
  summary.lost_workers = {0, 3};
  summary.absent_workers = {1};
  CHECK_FALSE(TellsForAll({Role::kWorker, 0}, summary));
  CHECK(TellsForAll({Role::kWorker, 2}, summary));
  CHECK_FALSE(TellsForAll({Role::kWorker, 4}, summary));
}

TEST_CASE("closing lines: where nothing was evaluated, what to set") {
  Config config;
  config.model.kind = ModelKind::kSoftmax;
  RunSummary summary;
  CHECK(NoTestLine(config, summary) == "no test data, so no accuracy: set data.test, or data.validation");
  config.model.kind = ModelKind::kLinear;
  CHECK(NoTestLine(config, summary).find("so no test loss: ") != std::string::npos);
  config.eval.at_end = false;
  CHECK(NoTestLine(config, summary) == "");
  config.eval.at_end = true;
  config.data.validation = 100;
  CHECK(NoTestLine(config, summary) == "");
  config.data.validation = 0;
  config.data.test.format = DataFormat::kCsv;
  CHECK(NoTestLine(config, summary) == "");
}

TEST_CASE("closing lines: with small batches the first loss says less of a risen one") {
  Config config = DigitsCluster(1, 1, 1);
  config.train.batch_size = 4;
  RunSummary summary;
  summary.first_loss = 2;
  summary.final_loss = 49;
  CHECK(RisenLossLine(config, summary) == "");
  summary.final_loss = 51;
  CHECK(RisenLossLine(config, summary) != "");
}

TEST_CASE("closing lines: a final loss of more than five times the first is told, with the remedy") {
  Config config = DigitsCluster(1, 1, 1);
  RunSummary summary;
  CHECK(RisenLossLine(config, summary) == "");
  summary.final_loss = 11.6;
  CHECK(RisenLossLine(config, summary) == "");
  summary.first_loss = 2.3;
  CHECK(RisenLossLine(config, summary) ==
        "the loss has risen from 2.3 in the first step to 11.6: the training may have diverged. Lower "
        "train.optimizer.learning_rate.");
  config.data.train.format = DataFormat::kCsv;
  CHECK(RisenLossLine(config, summary).find("Set data.scale: standard if ") != std::string::npos);
  config.data.scale = FeatureScale::kUnit;
  CHECK(RisenLossLine(config, summary).find("data.scale") == std::string::npos);
  summary.final_loss = 11.4;
  CHECK(RisenLossLine(config, summary) == "");
  summary.final_loss = std::numeric_limits<double>::infinity();  // has a line of its own
  CHECK(RisenLossLine(config, summary) == "");
  summary.final_loss = std::nan("");
  CHECK(RisenLossLine(config, summary) == "");
}

TEST_CASE("closing lines: probabilities that are 0 and 1 are told, whatever the loss says") {
  Config config = DigitsCluster(1, 1, 1);
  RunSummary summary;
  CHECK(SaturatedLine(config, summary) == "");
  summary.final_loss = 1e-7;
  summary.test.loss = 20;
  CHECK(SaturatedLine(config, summary) == "");
  summary.final_loss = 0;
  summary.test.loss = 7.5e26;
  CHECK(
      SaturatedLine(config, summary) ==
      "the outputs have grown so large that their probabilities are 0 and 1 and nothing between (the loss of "
      "the last steps is 0, that of the test rows 7.5e+26). Lower train.optimizer.learning_rate, or look for "
      "a column that gives the label away.");
  summary.final_loss = 0.3;
  CHECK(SaturatedLine(config, summary) != "");
  summary.final_loss = 0;
  summary.test.loss.reset();
  CHECK(SaturatedLine(config, summary) != "");
  config.model.kind = ModelKind::kLinear;  // a line may be met exactly
  CHECK(SaturatedLine(config, summary) == "");
}

}  // namespace
}  // namespace dtrain
