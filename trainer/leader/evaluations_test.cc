#include "trainer/leader/evaluations.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "trainer/ps/ps_test_util.h"

namespace dtrain {
namespace {

constexpr double kNone = std::numeric_limits<double>::infinity();

Config EveryTwo() {
  Config config = LinearCluster(1, 3, 10);
  config.eval.every_steps = 2;
  config.eval.patience = 2;
  return config;
}

// Workers 1 and 2 have the rows; all three take part.
struct Run : PsFixture {
  Run() : PsFixture(EveryTwo()) {
    for (int index = 0; index < 3; ++index) {
      members.Worker(index)->takes_part = true;
      members.Worker(index)->evaluates = index > 0;
    }
    evaluations.Begin(0, kNone);
  }
  uint64_t Steps(int worker, int64_t taken) {
    members.Worker(worker)->taken = taken;
    evaluations.OnStep(*members.Worker(worker));
    return evaluations.DueFor(*members.Worker(worker));
  }
  static std::string TextOf(double loss) {
    EvaluationFigures figures;
    figures.rows = 5;
    figures.loss = loss;
    figures.accuracy = 0.5;
    return EvaluationToJson(figures);
  }
  Evaluations::Verdict Take(int worker, uint64_t local_step, double loss, bool kept = true) {
    const std::string text = TextOf(loss);
    const net::Message said = Make([&](auto& builder) {
      return wire::CreateEvaluatedDirect(builder, local_step, 3 * local_step, nullptr, text.c_str());
    });
    return evaluations.Take(*members.Worker(worker), *net::Decode(said)->body_as_Evaluated(), kept);
  }
  RunHistory history;
  Logger log{"ps 0", LogOptions{LogLevel::kError, false, "", false}};
  Evaluations evaluations{config, members, history, log};
};

TEST_CASE("evaluations: the lowest worker that has the rows is asked at each multiple of its local steps") {
  Run run;
  CHECK(run.Steps(0, 2) == 0);  // it has no rows
  CHECK(run.Steps(2, 2) == 0);  // it is not the lowest with rows
  CHECK(run.Steps(1, 1) == 0);
  CHECK(run.Steps(1, 2) == 2);
}

TEST_CASE("evaluations: where the lowest worker is slow a faster one evaluates, one at a time") {
  Run run;
  for (int64_t step = 2; step < 20; step += 2) CHECK(run.Steps(2, step) == 0);
  CHECK(run.Steps(2, 20) == 20);
  CHECK(run.Steps(1, 2) == 0);  // worker 2 is at it
  run.Take(2, 20, 0.5);
  for (int64_t step = 22; step < 40; step += 2) CHECK(run.Steps(2, step) == 0);
  CHECK(run.Steps(1, 4) == 4);
  run.Take(1, 4, 0.4);
  CHECK(run.Steps(2, 40) == 0);  // counted anew
  CHECK(run.history.patience->best() == 0.4);
}

TEST_CASE("evaluations: behind the end of patience nobody is asked, also not a faster worker") {
  Run run;
  for (int64_t step = 2; step <= 6; step += 2) {
    CHECK(run.Steps(1, step) == static_cast<uint64_t>(step));
    CHECK(run.Take(1, static_cast<uint64_t>(step), 0.5).end.empty() == (step < 6));
  }
  for (int64_t step = 2; step <= 20; step += 2) CHECK(run.Steps(2, step) == 0);
  CHECK(run.Steps(1, 8) == 0);
}

TEST_CASE("evaluations: by an auc that no evaluation has the run ends, and says so") {
  Run run;
  run.config.eval.metric = EvalMetric::kAuc;
  run.history.patience.emplace(run.config.eval.patience, EvalMetric::kAuc);
  std::string end;
  for (int64_t step = 2; step <= 20 && end.empty(); step += 2) {
    CHECK(run.Steps(1, step) == static_cast<uint64_t>(step));
    end = run.Take(1, static_cast<uint64_t>(step), 0.5).end;
  }
  CHECK(end == fmt::format("{} evaluations in a row without a larger auc (eval.patience); none had one",
                           run.config.eval.patience));
}

TEST_CASE("evaluations: figures on the other set than that of eval.on change nothing") {
  Run run;
  run.config.eval.on = EvalOn::kValidation;
  run.Steps(1, 2);
  run.Take(1, 2, 0.5);  // on the test set
  CHECK_FALSE(std::isfinite(run.history.patience->best()));
}

TEST_CASE("evaluations: a worker is asked with every answer until its figures are here, which count once") {
  Run run;
  run.Steps(1, 2);
  CHECK(run.Steps(1, 3) == 2);
  run.Take(1, 2, 0.5);
  CHECK(run.evaluations.DueFor(*run.members.Worker(1)) == 0);
  run.Take(1, 2, 0.5);
  CHECK(run.history.patience->in_vain() == 0);
}

TEST_CASE(
    "evaluations: a worker that was lost behind its figures is not asked for them again, but for the next") {
  Run run;
  run.Steps(1, 2);
  run.Take(1, 2, 0.5);
  CHECK(run.Steps(1, 2) == 0);  // it was lost, came back, and has its last gradient answered again
  CHECK(run.Steps(1, 4) == 4);
}

TEST_CASE("evaluations: another worker takes the place of one that is lost, unless the run waits for that") {
  for (const WorkerLost lost : {WorkerLost::kContinue, WorkerLost::kWait}) {
    Run run;
    run.config.failure.worker_lost = lost;
    run.Steps(1, 2);
    run.members.Worker(1)->takes_part = false;
    run.members.Worker(1)->lost = true;
    CHECK(run.Steps(2, 4) == (lost == WorkerLost::kContinue ? 4 : 0));
  }
}

TEST_CASE("evaluations: behind a rollback those of later steps have not happened") {
  Run run;
  run.Steps(1, 2);
  run.Take(1, 2, 0.5);
  run.Steps(1, 4);
  run.Take(1, 4, 0.6);
  Evaluations again(run.config, run.members, run.history, run.log);
  again.Begin(6, kNone);  // the second evaluation, at step 12, is later than that
  CHECK(run.history.patience->in_vain() == 0);
  CHECK(run.history.patience->best() == 0.5);
}

TEST_CASE("evaluations: the best are weights that can be saved, among them the final ones") {
  Run run;
  run.config.eval.keep_best = true;
  run.Steps(1, 2);
  CHECK_FALSE(run.Take(1, 2, 0.5, /*kept=*/false).best);
  run.Steps(1, 4);
  CHECK(run.Take(1, 4, 0.6).best);
  const auto final_loss = [&](double loss) {
    const std::string text = Run::TextOf(loss);
    const net::Message said = run.Make(
        [&](auto& builder) { return wire::CreateEvaluatedDirect(builder, 0, 10, nullptr, text.c_str()); });
    return run.evaluations.TakeFinal(*net::Decode(said)->body_as_Evaluated());
  };
  CHECK_FALSE(final_loss(0.6));
  const std::optional<EvaluationFigures> best = final_loss(0.4);
  REQUIRE(best);
  CHECK(best->loss == 0.4);
  run.evaluations.Begin(12, 0.3);
  CHECK_FALSE(final_loss(0.35));
}

TEST_CASE("evaluations: a loss that is not finite is never the best one") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double loss : {-kInfinity, kInfinity, std::nan("")}) {
    CAPTURE(loss);
    Run run;
    run.config.eval.keep_best = true;
    run.Steps(1, 2);
    CHECK_FALSE(run.Take(1, 2, loss).best);
    CHECK(run.history.patience->in_vain() == 1);
  }
}

}  // namespace
}  // namespace dtrain
