#include "trainer/task/run_log.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace dtrain {
namespace {

TEST_CASE("closing lines: done, and which workers were lost on the way") {
  RunSummary summary;
  summary.absent_workers = {4};
  CHECK(DoneLine(summary) == "done");
  summary.lost_workers = {2};
  CHECK(DoneLine(summary) == "done, but worker 2 was lost");
  summary.lost_workers = {0, 2, 3};
  CHECK(DoneLine(summary) == "done, but workers 0, 2 and 3 were lost");
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
  CHECK(NoTestLine(config, summary) ==
        "no test data, so no accuracy: set data.test, or data.validation with eval.on: validation");
  config.data.validation = 100;
  CHECK(NoTestLine(config, summary) ==
        "no test data, so no accuracy: set data.test, or eval.on: validation, since data.validation is set");
  config.model.kind = ModelKind::kLinear;
  CHECK(NoTestLine(config, summary).find("so no test loss: ") != std::string::npos);
  config.eval.at_end = false;
  CHECK(NoTestLine(config, summary) == "");
  config.eval.at_end = true;
  config.eval.on = EvalOn::kValidation;
  CHECK(NoTestLine(config, summary) == "");
  config.eval.on = EvalOn::kTest;
  config.data.test.format = DataFormat::kCsv;
  CHECK(NoTestLine(config, summary) == "");
}

TEST_CASE("closing lines: a final loss of more than five times the first is told, with the remedy") {
  RunSummary summary;
  CHECK(RisenLossLine(summary) == "");
  summary.final_loss = 11.6;
  CHECK(RisenLossLine(summary) == "");
  summary.first_loss = 2.3;
  CHECK(RisenLossLine(summary) ==
        "the loss has risen from 2.3 in the first steps to 11.6: the training may have diverged. Lower "
        "train.optimizer.learning_rate.");
  summary.final_loss = 11.4;
  CHECK(RisenLossLine(summary) == "");
  summary.final_loss = std::numeric_limits<double>::infinity();  // has a line of its own
  CHECK(RisenLossLine(summary) == "");
  summary.final_loss = std::nan("");
  CHECK(RisenLossLine(summary) == "");
}

}  // namespace
}  // namespace dtrain
