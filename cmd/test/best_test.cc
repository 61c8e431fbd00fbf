// The best checkpoint (eval.keep_best) in the real binary: what is saved is what was evaluated, to the bit.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/testing/files.h"
#include "cmd/testing/job.h"
#include "cmd/testing/process.h"

namespace dtrain::testing {
namespace {

struct Evaluated {
  int64_t step = 0;
  double figure = 0;
};

// The losses of evaluations that a log tells, or another figure. The log is JSON.
std::vector<Evaluated> EvaluationsIn(const std::string& log, const std::string& figure = "loss") {
  std::vector<Evaluated> found;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const Json event = Json::Parse(line);
    if (!event.is_object()) continue;
    for (const std::string set : {"validation_", "test_"}) {
      const Json* const told = event.Find(set + figure);
      if (told != nullptr) found.push_back({event.at("global_step").get<int64_t>(), told->get<double>()});
    }
  }
  return found;
}

// Whether a checkpoint of a step that was saved again is left.
bool HasReplaced(const std::string& dir) {
  const std::filesystem::directory_iterator begin(dir), end;
  return std::any_of(begin, end, [](const std::filesystem::directory_entry& entry) {
    return entry.path().filename().string().rfind("replaced-", 0) == 0;
  });
}

// Checks that the best checkpoint in `dir` is of the smallest of these losses, and that `eval` gives that.
void CheckIsBest(const std::string& dir, const std::vector<Evaluated>& evaluations) {
  const auto best =
      std::min_element(evaluations.begin(), evaluations.end(),
                       [](const Evaluated& a, const Evaluated& b) { return a.figure < b.figure; });
  REQUIRE(best != evaluations.end());
  CHECK(Contains(FileContent(dir + "/best"), fmt::format("step-{:09}", best->step)));
  const std::string out = dir + "/eval.json";
  REQUIRE(Run({"eval", dir, "--result", out}).code == 0);
  CHECK(ReadResult(out).at("test_loss").get<double>() == best->figure);
}

// Runs 2 workers for 60 steps each, with a checkpoint every fifth step, and checks that the best one has the
// smallest loss.
void CheckBest(const LocalJob& job, const std::string& mode, int ps, std::vector<std::string> more = {}) {
  CAPTURE(mode);
  CAPTURE(ps);
  const std::string dir = fmt::format("{}/{}-{}", job.directory, mode, ps);
  more.insert(more.end(), {"--ps", fmt::to_string(ps), "--workers", "2"});
  for (const std::string& set :
       {"checkpoint.dir=" + dir, "train.mode=" + mode, std::string("checkpoint.every_steps=5"),
        std::string("eval={every_steps: 3, keep_best: true, at_end: false}"),
        std::string("log.format=json")}) {
    more.insert(more.end(), {"--set", set});
  }
  const std::unique_ptr<Process> run = job.Start(more);
  REQUIRE(RunToEnd(*run) == 0);
  const std::vector<Evaluated> evaluations = EvaluationsIn(run->standard_error());
  // In async one worker may be so far ahead of the other that it evaluates, and seldom.
  CHECK((mode == "async" || evaluations.size() == 20));
  CheckIsBest(dir, evaluations);
}

const char* const kModes[] = {"async", "ssp", "sync"};
// Every worker takes 60 steps.
constexpr char kSixty[] = "batch_size: 50, epochs: 2, optimizer: {kind: adam, learning_rate: 0.003}";

TEST_CASE("best: tensors, in each mode and with any number of ps, while other checkpoints are written") {
  const LocalJob job(DigitsJob("kind: softmax", 3000, 400, kSixty));
  for (const char* mode : kModes) {
    for (const int ps : {1, 3}) CheckBest(job, mode, ps);
  }
}

TEST_CASE("best: tensors of several blocks, by threads of one process, and where weights travel compressed") {
  const LocalJob job(DigitsJob("kind: mlp, hidden: [600]", 3000, 400, kSixty));
  CheckBest(job, "async", 1);
  CheckBest(job, "sync", 3, {"--in-process"});
  CheckBest(job, "ssp", 1, {"--set", "net.compress=int8"});
}

// A job on rows of a table.
std::unique_ptr<LocalJob> RowsJob(const std::string& model) {
  auto job = std::make_unique<LocalJob>(fmt::format(
      "model: {{{}}}\n"
      "data: {{train: {{format: criteo, path: a.txt}}, test: {{format: criteo, path: b.txt}}{}}}\n"
      "train: {{{}}}\n",
      model, model.find("hash") == std::string::npos ? ", hash_bits: 12" : "", kSixty));
  for (const auto& [name, rows, first] : {std::tuple{"a.txt", "3000", "0"}, {"b.txt", "500", "3000"}}) {
    REQUIRE(Run({"synth", "criteo", "--rows", rows, "--first", first, "--out", job->directory + "/" + name})
                .code == 0);
  }
  return job;
}

TEST_CASE("best: rows of a table, where other checkpoints are deltas too") {
  const auto job = RowsJob("kind: logistic");
  for (const char* mode : kModes) CheckBest(*job, mode, 3);
  CheckBest(*job, "async", 1, {"--set", "checkpoint.delta=3", "--set", "checkpoint.keep=2"});
}

TEST_CASE("best: rows of a hash table that come and leave while they are evaluated") {
  const auto job = RowsJob("kind: logistic, table: hash, admit_after: 3, evict_after: 30, max_rows: 65536");
  for (const char* mode : kModes) CheckBest(*job, mode, 3);
  CheckBest(*job, "async", 1, {"--set", "checkpoint.delta=3", "--set", "checkpoint.keep=2"});
}

TEST_CASE("best: a model of tensors and rows") {
  const auto job = RowsJob("kind: wide_deep, embedding: 4, hidden: [16, 8]");
  for (const char* mode : kModes) CheckBest(*job, mode, 3);
}

TEST_CASE(
    "best: by eval.metric: the largest auc is kept, ends the run, and is what inspect, status and eval "
    "tell") {
  // With this rate the loss of later steps grows, and the AUC does not follow it.
  const LocalJob job(
      "model: {kind: logistic}\n"
      "data: {train: {format: criteo, path: a.txt}, test: {format: criteo, path: b.txt}, hash_bits: 12}\n"
      "train: {mode: sync, batch_size: 50, epochs: 2, optimizer: {kind: sgd, learning_rate: 8}}\n");
  for (const auto& [name, rows, first] : {std::tuple{"a.txt", "3000", "0"}, {"b.txt", "500", "3000"}})
    REQUIRE(Run({"synth", "criteo", "--rows", rows, "--first", first, "--out", job.directory + "/" + name})
                .code == 0);
  const std::string dir = job.directory + "/ckpt";
  const std::unique_ptr<Process> run =
      job.Start({"--ps", "1", "--workers", "1", "--set", "checkpoint.dir=" + dir, "--set", "log.format=json",
                 "--set", "eval={every_steps: 3, keep_best: true, metric: auc, patience: 6, at_end: false}"});
  REQUIRE(RunToEnd(*run) == 0);
  const std::vector<Evaluated> evaluations = EvaluationsIn(run->standard_error(), "auc");
  const auto worse = [](const Evaluated& a, const Evaluated& b) { return a.figure < b.figure; };
  const auto best = std::max_element(evaluations.begin(), evaluations.end(), worse);
  REQUIRE(best != evaluations.end());
  CHECK(evaluations.size() == static_cast<size_t>(best - evaluations.begin()) + 7);
  CHECK(Contains(
      run->standard_error(),
      fmt::format("6 evaluations in a row without a larger auc (eval.patience); the best was {:.6g} at "
                  "global step {}",
                  best->figure, best->step)));
  const std::vector<Evaluated> losses = EvaluationsIn(run->standard_error());
  CHECK(std::min_element(losses.begin(), losses.end(), worse)->step != best->step);
  CHECK(Contains(FileContent(dir + "/best"), fmt::format("step-{:09}", best->step)));
  const Done told = Run({"eval", dir, "--result", dir + "/eval.json"});
  CHECK(Contains(told.error, fmt::format("the best checkpoint of auc {:.6g}, at global step", best->figure)));
  CHECK(ReadResult(dir + "/eval.json").at("test_auc").get<double>() == best->figure);
  const std::string name = fmt::format("/step-{:09}", best->step);
  CHECK(Contains(Run({"inspect", dir + name}).output, fmt::format(", auc {:.6g}", best->figure)));
  const Done wrong = Run({"check", job.config, "--set", "eval={every_steps: 3, patience: 2, metric: rmse}"});
  CHECK(wrong.code == 2);
  CHECK(Contains(wrong.error,
                 "eval.metric = rmse; is of models that tell numbers, and model.kind = logistic tells "
                 "classes. Set loss, auc or accuracy."));
}

TEST_CASE("best: by the deviance of model.loss, which the log and eval tell alike") {
  const LocalJob job(
      "model: {kind: linear, loss: poisson}\n"
      "data: {train: {format: csv, path: a.csv, label: y}, test: {format: csv, path: a.csv, label: y}}\n"
      "train: {mode: sync, batch_size: 10, epochs: 3, optimizer: {kind: sgd, learning_rate: 0.05}}\n");
  std::string rows = "x,y\n";
  for (int i = 0; i < 100; ++i) rows += fmt::format("{},{}\n", i % 7 * 0.3, (i % 7 * 3 + i % 4) / 4);
  WriteFile(job.directory + "/a.csv", rows);
  const std::string dir = job.directory + "/ckpt";
  const std::unique_ptr<Process> run =
      job.Start({"--ps", "1", "--workers", "1", "--set", "checkpoint.dir=" + dir, "--set", "log.format=json",
                 "--set", "eval={every_steps: 5, keep_best: true, metric: deviance, at_end: false}"});
  REQUIRE(RunToEnd(*run) == 0);
  const std::vector<Evaluated> evaluations = EvaluationsIn(run->standard_error(), "deviance");
  REQUIRE(evaluations.size() == 6);
  const auto best =
      std::min_element(evaluations.begin(), evaluations.end(),
                       [](const Evaluated& a, const Evaluated& b) { return a.figure < b.figure; });
  CHECK(best->figure < evaluations[0].figure);
  const Done told = Run({"eval", dir, "--result", dir + "/eval.json"});
  CHECK(Contains(told.error, fmt::format("the best checkpoint of deviance {:.6g}, at", best->figure)));
  CHECK(ReadResult(dir + "/eval.json").at("test_deviance").get<double>() == best->figure);
}

TEST_CASE("best: the final weights are the best checkpoint where their loss is the smallest") {
  const LocalJob job(DigitsJob("kind: softmax", 3000, 400, kSixty));
  const std::string dir = job.directory + "/ckpt";
  // The last evaluation before the end is of a step before. In sync the loss of the last step is the smaller
  // one.
  const Json result =
      RunLocal(job.config, {"--ps", "2", "--workers", "2", "--set", "checkpoint.dir=" + dir, "--set",
                            "eval={every_steps: 59, keep_best: true}", "--set", "train.mode=sync"});
  REQUIRE(result.is_object());
  CHECK(FileContent(dir + "/best") == "step-000000060\n");
  CHECK_FALSE(HasReplaced(dir));
  const std::string out = dir + "/eval.json";
  REQUIRE(Run({"eval", dir, "--result", out}).code == 0);
  CHECK(ReadResult(out).at("test_loss") == result.at("test_loss"));
}

TEST_CASE("best: of a run that is stopped while it evaluates, whatever it has told") {
  const LocalJob job(
      DigitsJob("kind: mlp, hidden: [50]", 2000, 2000,
                "batch_size: 50, steps: 1000000, optimizer: {kind: adam, learning_rate: 0.001}"));
  for (const char* const mode : {"async", "sync"}) {
    CAPTURE(mode);
    const std::string dir = fmt::format("{}/stopped-{}", job.directory, mode);
    const auto run = job.Start({"--ps", "2", "--workers", "2", "--set", "checkpoint.dir=" + dir, "--set",
                                std::string("train.mode=") + mode, "--set",
                                "eval={every_steps: 2, keep_best: true}", "--set", "log.format=json"});
    REQUIRE(run->WaitForLine("\"test_loss\""));
    run->Signal(SIGTERM);
    CheckEnd(*run, 143);
    CheckIsBest(dir, EvaluationsIn(run->standard_error()));
  }
}

TEST_CASE("best: check accepts what local runs, whose directory of the run has the checkpoints") {
  const LocalJob job(DigitsJob("kind: softmax", 300, 40, "batch_size: 50, epochs: 2"));
  const std::vector<std::string> keep = {"--set", "eval.every_steps=2", "--set", "eval.keep_best=true"};
  std::vector<std::string> check = {"check", "--config", job.config};
  check.insert(check.end(), keep.begin(), keep.end());
  CHECK(Run(check).code == 0);
  check.insert(check.end(), {"--set", "run.dir=none"});
  const Done refused = Run(check);
  CHECK(refused.code == 2);
  CHECK(Contains(refused.error, "eval.keep_best = true; needs checkpoint.dir"));
}

}  // namespace
}  // namespace dtrain::testing
