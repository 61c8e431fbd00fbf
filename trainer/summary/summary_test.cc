#include "trainer/summary/summary.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/testing/files.h"
#include "trainer/model/model.h"
#include "trainer/summary/event_test_util.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

// The x of every point of `loss` in the one file of `directory`.
std::vector<int64_t> LossSteps(const std::string& directory) {
  std::vector<int64_t> steps;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    for (const event::Event& event : ReadEvents(entry.path().string())) {
      for (const auto& value : event.summary().value()) {
        if (value.tag() == "loss") steps.push_back(event.step());
      }
    }
  }
  return steps;
}

TEST_CASE("schedule: points by steps are as set, and in a long run farther and farther apart") {
  SummaryConfig config;
  config.every_steps = 10;
  Schedule schedule(config);
  constexpr int64_t kSteps = 100'000'000, kExact = 10 * Schedule::kPointsInARow;
  int64_t exact = 0, all = 0, last = 0;
  for (int64_t step = 1; step <= kSteps; ++step) {
    if (!schedule.Due(step)) continue;
    exact += step <= kExact ? 1 : 0;
    ++all;
    last = step;
  }
  CHECK(exact == Schedule::kPointsInARow);
  CHECK(all < 8 * Schedule::kPointsInARow);  // not 100 times as many
  CHECK(all > 5 * Schedule::kPointsInARow);
  CHECK(kSteps - last < 10 << 7);
}

TEST_CASE("worker summary: a point that is due waits for the global step to move on") {
  Config config = LinearCluster(1, 2, 100);
  config.summary.dir = testing::NewDirectory();
  config.summary.every_steps = 2;
  LogOptions quiet;
  quiet.standard_error = false;
  Logger log("worker 1", quiet);
  ExitHooks hooks;
  {
    const auto summary = WorkerSummary::Open(config, 1, "cpu:0", Layout(), hooks, log);
    summary->Begin(0);
    const int64_t global_steps[] = {0, 0, 0, 4, 5, 5, 5, 7};  // after the local steps 1, 2, ...
    int64_t local_step = 0;
    for (const int64_t step : global_steps) {
      if (summary->Due(++local_step) && summary->Moved(step)) summary->OnStep({step, 0.5f, 0, 1, {}});
    }
  }
  CHECK(LossSteps(config.summary.dir + "/worker-1") == std::vector<int64_t>{4, 5, 7});
}

// All events of a directory's files, in the order in which TensorBoard reads them.
std::vector<event::Event> EventsOf(const std::string& directory) {
  std::set<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.is_regular_file()) paths.insert(entry.path().string());
  }
  std::vector<event::Event> all;
  for (const std::string& path : paths) {
    for (event::Event& event : ReadEvents(path)) all.push_back(std::move(event));
  }
  return all;
}

std::vector<int64_t> Starts(const std::string& directory) {
  std::vector<int64_t> steps;
  for (const event::Event& event : EventsOf(directory)) {
    if (event.session_log().status() == event::SessionLog::START) steps.push_back(event.step());
  }
  return steps;
}

// What the first value of a tag of the plugin for hyperparameters says.
event::HParamsPluginData FirstOf(const std::string& directory, const std::string& tag) {
  event::HParamsPluginData data;
  for (const event::Event& event : EventsOf(directory)) {
    for (const auto& value : event.summary().value()) {
      if (value.tag() != tag || data.data_case() != event::HParamsPluginData::DATA_NOT_SET) continue;
      data.ParseFromString(value.metadata().plugin_data().content());
    }
  }
  return data;
}

struct SummaryJob {
  Config config = LinearCluster(1, 1, 100);
  Logger log;
  ExitHooks hooks;

  SummaryJob() : log("worker 0", Quiet()) {
    config.summary.dir = testing::NewDirectory();
    config.summary.every_steps = 10;
    config.checkpoint.dir = config.summary.dir + "/none";
  }
  static LogOptions Quiet() {
    LogOptions quiet;
    quiet.standard_error = false;
    return quiet;
  }
  std::unique_ptr<WorkerSummary> Open() {
    const Layout layout = PlaceVariables(ModelVariables(config.model), 1, config.placement);
    return WorkerSummary::Open(config, 0, "cpu:0", layout, hooks, log);
  }
  // How a start ends for TensorBoard, which keeps the first end.
  event::SessionEndInfo::Status EndAfter(const std::vector<ExitCode>& codes) {
    for (const ExitCode code : codes) Open()->End(code);
    return FirstOf(config.summary.dir, "_hparams_/session_end_info").session_end_info().status();
  }
};

TEST_CASE("worker summary: where a run begins or goes back the steps from there on are taken anew") {
  SummaryJob job;
  const auto summary = job.Open();
  summary->Begin(0);
  summary->Begin(40);
  CHECK(Starts(job.config.summary.dir) == std::vector<int64_t>{1, 41});
}

TEST_CASE("worker summary: an evaluation of one step is there once, with what only the last one has") {
  SummaryJob job;
  {
    const auto summary = job.Open();
    summary->Begin(0);
    EvaluationFigures figures;
    figures.loss = 0.5;
    for (const int64_t step : {10, 20}) summary->OnEvaluation(EvalOn::kValidation, step, figures);
    figures.auc = 0.75;
    for (const EvalOn set : {EvalOn::kValidation, EvalOn::kTest}) summary->OnEvaluation(set, 20, figures);
    summary->Begin(10);
    summary->OnEvaluation(EvalOn::kValidation, 20, figures);
  }
  std::vector<std::string> points;
  for (const event::Event& event : EventsOf(job.config.summary.dir)) {
    for (const auto& value : event.summary().value()) {
      if (value.tag().find('/') != std::string::npos && value.has_simple_value())
        points.push_back(value.tag() + " " + std::to_string(event.step()));
    }
  }
  CHECK(points == std::vector<std::string>{"validation/loss 10", "validation/loss 20", "validation/auc 20",
                                           "test/loss 20", "test/auc 20", "validation/loss 20",
                                           "validation/auc 20"});
}

TEST_CASE("worker summary: the last step of a run that is started again after its end is evaluated once") {
  SummaryJob job;
  EvaluationFigures figures;
  figures.loss = 0.5;
  const auto count = [&] {
    const std::vector<event::Event> events = EventsOf(job.config.summary.dir);
    return std::count_if(events.begin(), events.end(), [](const event::Event& event) {
      return event.summary().value_size() > 0 && event.summary().value(0).tag() == "test/loss";
    });
  };
  job.Open()->Begin(20);  // killed before it was evaluated
  for (const int start : {1, 2}) {
    CAPTURE(start);
    const auto summary = job.Open();
    summary->Begin(20);
    summary->OnEvaluation(EvalOn::kTest, 20, figures);
    CHECK(count() == 1);
  }
}

TEST_CASE("worker summary: a run that was saved to go on has no end, and the newest end is the first") {
  using Info = event::SessionEndInfo;
  CHECK(SummaryJob().EndAfter({ExitCode::kOk}) == Info::SUCCESS);
  CHECK(SummaryJob().EndAfter({ExitCode::kDiverged}) == Info::FAILURE);
  for (const ExitCode code : {ExitCode::kInterrupted, ExitCode::kTerminated, ExitCode::kUser}) {
    CHECK(SummaryJob().EndAfter({code}) == Info::UNKNOWN);
    CHECK(SummaryJob().EndAfter({code, ExitCode::kOk}) == Info::SUCCESS);
  }
  CHECK(SummaryJob().EndAfter({ExitCode::kPeerLost, ExitCode::kOk}) == Info::SUCCESS);
  SummaryJob unsaved;
  unsaved.config.checkpoint.dir.clear();
  CHECK(unsaved.EndAfter({ExitCode::kUser}) == Info::FAILURE);
}

TEST_CASE("worker summary: a learning rate that was changed between starts is the one that is shown") {
  SummaryJob job;
  for (const double rate : {0.5, 0.25}) {
    job.config.train.optimizer.learning_rate = rate;
    job.Open();
  }
  const auto start = FirstOf(job.config.summary.dir, "_hparams_/session_start_info").session_start_info();
  CHECK(start.hparams().at("train.optimizer.learning_rate").number_value() == 0.25);
}

TEST_CASE("ps summary: the last step has a point, and where the run goes back that is told") {
  SummaryJob job;
  {
    const auto summary = PsSummary::Open(job.config, job.hooks, job.log);
    summary->Begin(5);
    for (int64_t step = 6; step <= 14; ++step) summary->OnStep(step, 2);
    summary->Begin(10);
    for (int64_t step = 11; step <= 13; ++step) summary->OnStep(step, 1);
  }
  const std::string directory = job.config.summary.dir + "/ps-0";
  CHECK(Starts(directory) == std::vector<int64_t>{6, 11});
  std::vector<std::pair<int64_t, float>> workers;
  for (const event::Event& event : EventsOf(directory)) {
    for (const auto& value : event.summary().value()) {
      if (value.tag() == "workers") workers.emplace_back(event.step(), value.simple_value());
    }
  }
  CHECK(workers == std::vector<std::pair<int64_t, float>>{{10, 2}, {13, 1}});
}

TEST_CASE("evaluation curves: a step that comes again replaces the older point") {
  const std::string directory = testing::NewDirectory();
  {
    EvaluationCurves curves(directory);
    EvaluationFigures figures;
    figures.loss = 1;
    for (const int64_t step : {100, 200, 300, 200, 300}) curves.Add(EvalOn::kTest, step, figures);
  }
  CHECK(Starts(directory) == std::vector<int64_t>{100, 200});
}

}  // namespace
}  // namespace dtrain
