#include "trainer/leader/evaluations.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/names.h"
#include "trainer/config/config.h"

namespace dtrain {
namespace {

// The multiples of eval.every_steps after which a faster worker evaluates.
constexpr int kPassedWithout = 10;

}  // namespace

EvaluationFigures FiguresIn(const flatbuffers::String* text) {
  return text == nullptr ? EvaluationFigures() : EvaluationFromJson(text->string_view());
}

Evaluations::Evaluations(const Config& config, TaskTable& members, RunHistory& history, Logger& log)
    : config_(config),
      members_(members),
      history_(history),
      log_(log),
      every_steps_(config.eval.every_steps) {
  if (!history.patience) history.patience.emplace(config.eval.patience, config.eval.metric);
}

void Evaluations::Begin(int64_t global_step, double best_saved) {
  history_.patience->GoBackTo(global_step);
  best_saved_ = best_saved;
  const bool has_rows =
      config_.eval.on == EvalOn::kValidation || config_.data.test.format != DataFormat::kNone;
  if ((every_steps_ > 0 || (config_.eval.at_end && has_rows)) && Evaluator() < 0) {
    log_.Warning("no worker has the rows of eval.on: nothing is evaluated (eval.{})",
                 every_steps_ > 0 ? "every_steps" : "at_end");
  }
}

// An evaluator that the run waits for stays the evaluator: the other workers cannot go on without it.
bool Evaluations::CanEvaluate(const Member& worker) const {
  return worker.is_worker() && worker.evaluates && (worker.takes_part || members_.IsAwaited(worker));
}

int Evaluations::Evaluator() const {
  const std::vector<Member>& all = members_.all();
  const auto lowest = std::find_if(all.begin(), all.end(), [&](const Member& m) { return CanEvaluate(m); });
  return lowest == all.end() ? -1 : lowest->task.index;
}

void Evaluations::AskFor(const Member& worker) {
  const int index = worker.task.index;
  if (ended_) return;  // the last steps in flight
  const bool waits = due_ != 0 && index != evaluator_ && CanEvaluate(*members_.Worker(evaluator_));
  if (waits || !CanEvaluate(worker)) return;
  if (index != Evaluator() && ++passed_[index] < kPassedWithout) return;
  evaluator_ = index;
  passed_.clear();
  if (index != taken_from_ || worker.taken != taken_) due_ = worker.taken;
}

EvaluationFigures Evaluations::EvaluatedFigures(const wire::Evaluated& said) const {
  return FiguresIn(config_.eval.on == EvalOn::kTest ? said.test() : said.validation());
}

bool Evaluations::IsBest(const EvaluationFigures& figures) {
  const double score = ScoreOf(config_.eval.metric, FigureOf(figures, config_.eval.metric));
  if (!config_.eval.keep_best || !(score < best_saved_)) return false;
  best_saved_ = score;
  return true;
}

std::optional<EvaluationFigures> Evaluations::TakeFinal(const wire::Evaluated& said) {
  const EvaluationFigures figures = EvaluatedFigures(said);
  return IsBest(figures) ? std::make_optional(figures) : std::nullopt;
}

Evaluations::Verdict Evaluations::Take(const Member& worker, const wire::Evaluated& said, bool kept) {
  Verdict verdict;
  if (DueFor(worker) == 0 || DueFor(worker) != said.local_step()) return verdict;
  taken_from_ = worker.task.index;
  taken_ = std::exchange(due_, 0);
  const EvaluationFigures figures = EvaluatedFigures(said);
  if (figures.rows.value_or(0) <= 0) return verdict;
  const EvalMetric metric = config_.eval.metric;
  const double figure = FigureOf(figures, metric);
  if (std::isnan(figure) && figures.loss && !std::exchange(told_none_, true)) {
    log_.Warning("an evaluation has no {} (eval.metric), so it is never better{}", MetricName(metric),
                 metric == EvalMetric::kAuc
                     ? ": its rows are of one class. Shuffle the file, or hold out more rows"
                     : "");
  }
  if (kept && IsBest(figures)) verdict.best = figures;
  Patience& patience = *history_.patience;
  const auto step = static_cast<int64_t>(std::min<uint64_t>(said.global_step(), uint64_t{1} << 62));
  if (!patience.Exhausted(figure, step)) return verdict;
  ended_ = true;
  verdict.end =
      fmt::format("{} in a row without a {} {} (eval.patience); ", Plural(patience.in_vain(), "evaluation"),
                  ScoreOf(metric, 1) > 0 ? "smaller" : "larger", MetricName(metric));
  verdict.end += std::isfinite(patience.best()) ? fmt::format("the best was {:.6g} at global step {}",
                                                              patience.best(), patience.best_step())
                                                : "none had one";
  return verdict;
}

const Member* Evaluations::FinalEvaluator() const {
  for (const Member& member : members_.all()) {
    const bool waits = member.takes_part || member.end_request != 0;
    if (member.task.role != Role::kWorker || !member.here() || !waits) continue;
    const bool feeds = FeedsOthers(config_) && member.task.index == 0;
    if (feeds || (config_.eval.at_end && member.evaluates)) return &member;
  }
  return nullptr;
}

}  // namespace dtrain
