#include "trainer/summary/summary.h"

#include <fmt/core.h>

#include <algorithm>

#include "trainer/summary/graph.h"

namespace dtrain {
namespace {

std::string DirectoryOf(const std::string& root, int index) {
  return index == 0 ? root + "/chief" : fmt::format("{}/worker-{}", root, index);
}

}  // namespace

std::unique_ptr<WorkerSummary> WorkerSummary::Open(const Config& config, int index, const std::string& device,
                                                   const Layout& layout, ExitHooks& hooks, Logger& log) {
  if (config.summary.dir.empty()) return nullptr;
  return std::unique_ptr<WorkerSummary>(new WorkerSummary(config, index, device, layout, hooks, log));
}

WorkerSummary::WorkerSummary(const Config& config, int index, const std::string& device, const Layout& layout,
                             ExitHooks& hooks, Logger& log)
    : classifies_(HasClasses(config.model)),
      writer_(DirectoryOf(config.summary.dir, index), hooks, log),
      schedule_(config.summary),
      point_at_(Clock::now()) {
  if (index == 0) writer_.WriteGraph(ModelGraph(config, layout, device));
  log.Info("summaries for TensorBoard: {}", writer_.path());
}

void WorkerSummary::Begin(int64_t global_step) {
  point_at_ = Clock::now();
  point_step_ = global_step;
}

void WorkerSummary::OnStep(const StepFigures& step) {
  const TimePoint now = Clock::now();
  const double seconds = std::max(SecondsBetween(point_at_, now), 1e-9);
  writer_.Add("cost", static_cast<double>(step.loss));
  if (classifies_ && step.rows > 0) {
    writer_.Add("accuracy", static_cast<double>(step.correct) / static_cast<double>(step.rows));
  }
  writer_.Add("global_step/sec", static_cast<double>(step.global_step - point_step_) / seconds);
  writer_.Add("examples/sec", static_cast<double>(examples_) / seconds);
  if (step.staleness) {
    writer_.Add("staleness", step.staleness->mean);
    writer_.Add("staleness/p50", step.staleness->p50);
    writer_.Add("staleness/p95", step.staleness->p95);
    writer_.Add("staleness/max", step.staleness->max);
  }
  writer_.WriteScalars(step.global_step, now);
  point_at_ = now;
  point_step_ = step.global_step;
  examples_ = 0;
  due_ = false;
}

void WorkerSummary::OnEvaluation(int64_t global_step, const Evaluation& evaluation) {
  writer_.Add("eval/loss", evaluation.loss());
  if (evaluation.classifies) writer_.Add("eval/accuracy", evaluation.accuracy());
  writer_.WriteScalars(global_step, Clock::now());
  writer_.Flush();
}

std::unique_ptr<PsSummary> PsSummary::Open(const Config& config, ExitHooks& hooks, Logger& log) {
  if (config.summary.dir.empty()) return nullptr;
  return std::unique_ptr<PsSummary>(new PsSummary(config, hooks, log));
}

PsSummary::PsSummary(const Config& config, ExitHooks& hooks, Logger& log)
    : writer_(config.summary.dir + "/ps-0", hooks, log), schedule_(config.summary) {
  log.Info("summaries for TensorBoard: {}", writer_.path());
}

void PsSummary::Begin(int64_t global_step) {
  point_at_ = Clock::now();
  point_step_ = global_step;
}

void PsSummary::OnUpdate(int64_t global_step, int workers) {
  const TimePoint now = Clock::now();
  const auto steps = static_cast<double>(global_step - point_step_);
  if (steps > 0) writer_.Add("global_step/sec", steps / std::max(SecondsBetween(point_at_, now), 1e-9));
  writer_.Add("workers", workers);
  writer_.WriteScalars(global_step, now);
  point_at_ = now;
  point_step_ = global_step;
}

}  // namespace dtrain
