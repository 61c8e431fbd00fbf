#include "trainer/task/run_log.h"

#include <doctest/doctest.h>

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
  CHECK(CheckpointLine(config) ==
        "checkpoints: run/ckpt at the start and at the end, the newest one and the best are kept");
}

TEST_CASE("checkpoint line: without a directory it says what that means") {
  CHECK(CheckpointLine(Config()) ==
        "no checkpoint.dir: a lost ps or a signal ends the run with nothing saved");
}

}  // namespace
}  // namespace dtrain
