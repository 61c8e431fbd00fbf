#include "trainer/config/determinism.h"

#include <doctest/doctest.h>

namespace dtrain {
namespace {

TEST_CASE("determinism: a synchronous run with all workers in every round ends with the same bits") {
  Config config;
  config.cluster.worker = {"a:1", "b:1", "c:1"};
  CHECK(FirstNondeterministicKey(config) == "train.mode: async");
  config.train.mode = TrainMode::kSsp;
  CHECK(FirstNondeterministicKey(config) == "train.mode: ssp");
  config.train.mode = TrainMode::kSync;
  CHECK(FirstNondeterministicKey(config).empty());
  config.train.aggregate = 3;
  CHECK(FirstNondeterministicKey(config).empty());
  config.failure.on_sigterm = OnSigterm::kLeave;
  CHECK(FirstNondeterministicKey(config) == "failure.on_sigterm: leave");
  config.train.aggregate = 2;
  CHECK(FirstNondeterministicKey(config) == "train.aggregate: 2");
}

}  // namespace
}  // namespace dtrain
