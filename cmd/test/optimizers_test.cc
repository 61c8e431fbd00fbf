// Every optimizer in the real binary: it learns, and its slots are cut over ps without a trace.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/json.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

const char* const kOptimizers[] = {
    "{kind: sgd, learning_rate: 0.2, l1: 0.0001, l2: 0.0001, clip_value: 0.5}",
    "{kind: momentum, learning_rate: 0.02}",
    "{kind: momentum, learning_rate: 0.02, nesterov: true, schedule: {kind: step, decay_steps: 200, "
    "decay_rate: "
    "0.5}}",
    "{kind: adagrad, learning_rate: 0.1, schedule: {kind: exponential, decay_steps: 1000, decay_rate: 0.5}}",
    "{kind: rmsprop, learning_rate: 0.003, rho: 0.95}",
    "{kind: adam, learning_rate: 0.005, schedule: {kind: cosine, decay_steps: 380, warmup_steps: 20}}",
    "{kind: ftrl, learning_rate: 0.1, l1: 0.001, schedule: {kind: inverse_time, decay_steps: 500, "
    "decay_rate: 1}}",
};

std::vector<std::string> Flags(const std::string& optimizer, const std::string& ps,
                               const std::string& workers) {
  return {"--in-process",    "--ps",  ps,
          "--workers",       workers, "--set",
          "train.steps=400", "--set", "train.optimizer=" + optimizer};
}

// In rounds: what 400 updates in async come to is the scheduler's affair as well.
TEST_CASE("optimizers: 400 updates of each kind, two workers' together, tell nine of ten digits") {
  for (const std::string optimizer : kOptimizers) {
    CAPTURE(optimizer);
    std::vector<std::string> flags = Flags(optimizer, "2", "2");
    flags.insert(flags.end(), {"--set", "train.mode=sync"});
    const Json result = RunLocal("configs/quickstart_digits.yaml", flags);
    CHECK(result.at("global_step") == 400);
    CHECK(result.at("test_accuracy").get<double>() >= 0.9);
    CHECK(result.at("test_loss").get<double>() <= 0.6);  // ln 10 = 2.3 at the start
  }
}

TEST_CASE("optimizers: one worker ends with the same bits for one ps and for three") {
  for (const std::string optimizer : kOptimizers) {
    CAPTURE(optimizer);
    const Json one = RunLocal("configs/quickstart_digits.yaml", Flags(optimizer, "1", "1"));
    const Json three = RunLocal("configs/quickstart_digits.yaml", Flags(optimizer, "3", "1"));
    CHECK(one.at("model_crc") == three.at("model_crc"));
  }
}

TEST_CASE(
    "optimizers: sync with clip_norm ends with the same bits as threads and as processes, for 1 and 3 ps") {
  std::string crc;
  for (const std::string ps : {"1", "3"}) {
    for (const bool threads : {true, false}) {
      std::vector<std::string> flags = {"--ps", ps, "--workers", "3", "--set", "train.steps=40"};
      for (const char* key :
           {"train.mode=sync", "train.optimizer={kind: sgd, learning_rate: 0.2, clip_norm: 0.5}"}) {
        flags.insert(flags.end(), {"--set", key});
      }
      if (threads) flags.push_back("--in-process");
      const Json result = RunLocal("configs/quickstart_digits.yaml", flags);
      CHECK(result.at("deterministic") == true);
      if (crc.empty()) crc = result.at("model_crc");
      CHECK(result.at("model_crc") == crc);
    }
  }
}

}  // namespace
}  // namespace dtrain::testing
