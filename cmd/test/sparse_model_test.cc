// Models of sparse rows, whose weights are rows of a table: what they learn, the same bits for any number of
// ps, and checkpoints that any number of ps reads.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/testing/files.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

// scikit-learn's LogisticRegression (C 1, lbfgs) ends with this log loss on the test rows.
constexpr double kConverged = 0.3242;

TEST_CASE("sparse model: a9a ends as scikit-learn's converged model, by three optimizers in three modes") {
  const std::string folder = A9a();
  if (folder.empty()) return;
  const std::pair<const char*, const char*> optimizers[] = {
      {"adagrad", "0.1"}, {"ftrl", "0.1"}, {"sgd", "0.2"}};
  for (const auto& [optimizer, rate] : optimizers) {
    for (const std::string mode : {"sync", "ssp", "async"}) {
      CAPTURE(optimizer);
      CAPTURE(mode);
      std::vector<double> losses;
      const int seeds = mode == "sync" ? 1 : 5;
      for (int seed = 1; seed <= seeds; ++seed) {
        const Json result =
            RunLocal("configs/a9a.yaml",
                     {"--set", fmt::format("data.train.path={}/a9a", folder), "--set",
                      fmt::format("data.test.path={}/a9a.t", folder), "--set", "train.mode=" + mode, "--set",
                      fmt::format("train.optimizer.kind={}", optimizer), "--set",
                      fmt::format("train.optimizer.learning_rate={}", rate), "--set",
                      fmt::format("data.seed={}", seed)});
        REQUIRE(result.is_object());
        CHECK(result.at("test_accuracy").get<double>() >= 0.847);
        losses.push_back(result.at("test_loss").get<double>());
      }
      std::sort(losses.begin(), losses.end());
      CHECK(losses[losses.size() / 2] <= kConverged + (mode == "sync" ? 0.002 : 0.004));
    }
  }
}

// A job of rows of 20 features out of 5,000, and its file.
class SparseJob {
 public:
  explicit SparseJob(const std::string& model = "kind: logistic")
      : job_(fmt::format("cluster: {{ps: [\"a:1\"], worker: [\"a:2\", \"a:3\"]}}\n"
                         "model: {{inputs: 5000, {}}}\n"
                         "data: {{train: {{format: libsvm, path: rows.svm}}}}\n"
                         "train: {{mode: sync, batch_size: 50, epochs: 2,\n"
                         "  optimizer: {{kind: adam, learning_rate: 0.01}}}}\n",
                         model)) {
    const Done made = testing::Run({"synth", "libsvm", "--rows", "3000", "--features", "20", "--width",
                                    "5000", "--out", job_.directory + "/rows.svm"});
    REQUIRE(made.code == 0);
  }
  const std::string& directory() const { return job_.directory; }
  Json Run(int ps, std::vector<std::string> more = {}) const {
    std::string addresses;
    for (int i = 0; i < ps; ++i) addresses += (i == 0 ? "" : ",") + std::string("127.0.0.1:0");
    more.insert(more.end(), {"--set", "cluster.ps=[" + addresses + "]"});
    const Json result = RunLocal(job_.config, more);
    REQUIRE(result.is_object());
    return result;
  }
  std::string Crc(int ps, const std::vector<std::string>& more = {}) const {
    return Run(ps, more).at("model_crc").get<std::string>();
  }

 private:
  const LocalJob job_;
};

TEST_CASE("sparse model: in sync the bits are the same for 1, 2, 3 and 5 ps, as processes and as threads") {
  for (const std::string model : {"kind: logistic", "kind: softmax, outputs: 2", "kind: linear"}) {
    CAPTURE(model);
    const SparseJob job(model);
    const Json one = job.Run(1);
    CHECK(one.at("deterministic") == true);
    for (const int ps : {2, 3, 5}) CHECK(job.Crc(ps) == one.at("model_crc"));
    for (const int ps : {1, 3}) CHECK(job.Crc(ps, {"--in-process"}) == one.at("model_crc"));
  }
}

TEST_CASE(
    "sparse model: a run that goes on with other hashes, factors or first values is refused by the key") {
  const LocalJob job(
      "cluster: {ps: [\"a:1\"], worker: [\"a:2\"]}\n"
      "model: {kind: fm, factors: 4}\n"
      "data: {train: {format: vw, path: rows.vw}, hash_bits: 10}\n"
      "train: {mode: sync, batch_size: 2, steps: 3, optimizer: {kind: sgd, learning_rate: 0.1}}\n");
  WriteFile(job.directory + "/rows.vw", "1 |a x:1 y\n-1 |a y z\n1 |a x\n");
  const std::string dir = "checkpoint.dir=" + job.directory + "/checkpoints";
  REQUIRE(RunLocal(job.config, {"--set", dir}).is_object());
  for (const auto& [set, expected] : {std::pair("data.hash_bits=11", "data.hash_bits = 11; must be 10"),
                                      std::pair("model.factors=5", "model.factors = 5; must be 4"),
                                      std::pair("model.init.seed=2", "model.init.seed = 2; must be 1")}) {
    for (const char* command : {"local", "check"}) {
      CAPTURE(command);
      const Done done =
          Run({command, "--config", job.config, "--set", dir, "--set", "train.steps=4", "--set", set});
      CHECK(done.code == 2);
      CHECK(Contains(done.error, std::string(": another model: ") + expected));
    }
  }
}

TEST_CASE(
    "sparse model: half a run and the other half by another number of ps end with the bits of a whole one") {
  const SparseJob job;
  const std::string whole = job.Crc(1);
  const std::string checkpoints = "checkpoint.dir=" + job.directory() + "/checkpoints";
  CHECK(job.Crc(2, {"--set", "train.epochs=1", "--set", checkpoints}) != whole);
  CHECK(job.Crc(3, {"--set", checkpoints}) == whole);
}

TEST_CASE(
    "sparse model: clip_norm, checksums, backup workers and a run that keeps its best are as for others") {
  const SparseJob job;
  const std::vector<std::string> clipped = {"--set", "train.optimizer.clip_norm=0.01"};
  const std::string crc = job.Crc(1, clipped);
  CHECK(crc != job.Crc(1));
  CHECK(job.Crc(3, clipped) == crc);
  CHECK(job.Crc(2, {"--set", "net.checksum=true"}) == job.Crc(1));
  CHECK(job.Run(2, {"--set", "train.aggregate=1"}).at("status") == "done");
  const Json best = job.Run(
      2, {"--set", "data.validation=300", "--set", "eval.on=validation", "--set", "eval.every_steps=10",
          "--set", "eval.keep_best=true", "--set", "checkpoint.dir=" + job.directory() + "/best"});
  CHECK(best.at("status") == "done");
}

// A job of rows of many features.
class WideRows {
 public:
  WideRows(const std::string& model, int64_t rows, int64_t features, int64_t batch)
      : job_(fmt::format("model: {{inputs: 10000000, {}}}\n"
                         "data: {{train: {{format: libsvm, path: rows.svm}}}}\n"
                         "train: {{mode: sync, batch_size: {}, steps: 4}}\n"
                         "eval: {{at_end: false}}\n",
                         model, batch)) {
    const Done made = testing::Run({"synth", "libsvm", "--rows", fmt::to_string(rows), "--features",
                                    fmt::to_string(features), "--width", "10000000", "--out",
                                    job_.directory + "/rows.svm"});
    REQUIRE(made.code == 0);
  }
  const std::string& config() const { return job_.config; }

 private:
  const LocalJob job_;
};

TEST_CASE("sparse model: batches whose messages are longer than a block of a dense model are trained on") {
  const WideRows many_features("kind: logistic", 4000, 400, 2000);
  const WideRows many_blocks("kind: logistic", 16'000, 40, 8000);
  for (const WideRows* job : {&many_features, &many_blocks}) {
    const Json threads = RunLocal(job->config(), {"--workers", "1", "--in-process"});
    REQUIRE(threads.is_object());
    for (const std::string ps : {"1", "2"}) {
      const Json processes = RunLocal(job->config(), {"--ps", ps, "--workers", "1"});
      REQUIRE(processes.is_object());
      CHECK(processes.at("bytes_sent").get<double>() > 4 * (1 << 20));  // of four steps
      CHECK(processes.at("model_crc") == threads.at("model_crc"));
    }
  }
}

TEST_CASE(
    "sparse model: a message has as many rows as net.max_message_mb allows, and a batch of more is an "
    "error") {
  const WideRows job("kind: fm, factors: 100", 40, 2000, 10);
  CHECK(RunLocal(job.config(), {"--workers", "1"}).is_object());
  const Done refused = testing::Run({"local", "--config", job.config(), "--set", "net.max_message_mb=1"});
  CHECK(refused.code == 2);
  CHECK(Contains(refused.error, "train.batch_size = 10: a batch has "));
  CHECK(Contains(refused.error, "net.max_message_mb = 1. Use a smaller batch or more ps"));
}

}  // namespace
}  // namespace dtrain::testing
