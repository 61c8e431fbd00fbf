#include "trainer/summary/summary.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/json.h"
#include "trainer/config/config.h"
#include "trainer/config/dump.h"
#include "trainer/optim/optimizer.h"
#include "trainer/summary/event.pb.h"
#include "trainer/summary/event_reader.h"

namespace dtrain {
namespace {

// What TensorBoard says of a curve.
constexpr char kLoss[] =
    "The loss of each row before its update: the mean over the rows since the last point, by their weights.";
constexpr char kAccuracy[] =
    "The fraction of the rows since the last point that were classified correctly before their update.";
constexpr char kLinearRate[] = "The same of the linear part (train.optimizer.wide, .linear).";
constexpr char kLearningRate[] = "The learning rate of the update (train.optimizer.schedule).";
constexpr char kStepsPerS[] = "Global steps of all workers in a second, since the last point.";
constexpr char kExamplesPerS[] = "Examples of this worker in a second, since the last point.";
constexpr char kStaleness[] =
    "How many other updates the weights of a gradient had missed when it was applied: the mean since "
    "the last point.";
constexpr char kStalenessP50[] = "The median of the staleness since the last point.";
constexpr char kStalenessP95[] = "The 95 % quantile of the staleness since the last point.";
constexpr char kStalenessMax[] = "The largest staleness since the last point.";
constexpr char kEvaluation[] =
    "A figure of the weights: validation/ on the held-out rows, test/ on the set of data.test.";
constexpr char kWorkers[] = "Workers that are connected.";

// Worker 0 writes into the directory of the run itself, and all others below: so TensorBoard lists them.
std::string DirectoryOf(const std::string& root, int index) {
  return index == 0 ? root : fmt::format("{}/worker-{}", root, index);
}

double WallSeconds() { return static_cast<double>(WallNanos()) * 1e-9; }

std::vector<std::string> EventFiles(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(directory, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    if (entry->path().filename().string().find("tfevents") != std::string::npos) {
      paths.push_back(entry->path().string());
    }
  }
  return paths;
}

bool HasEvaluation(const std::string& directory, EvalOn set, int64_t step) {
  const std::string tag = fmt::format("{}/loss", SetName(set));
  bool found = false;
  for (const std::string& path : EventFiles(directory)) {
    ReadCurves(path, [&](const std::string& curve, const CurvePoint& point) {
      found |= point.step == step && curve == tag;
    });
  }
  return found;
}

// These names are TensorBoard's.
constexpr char kHparams[] = "hparams";
constexpr char kStartTag[] = "_hparams_/session_start_info";
constexpr char kEndTag[] = "_hparams_/session_end_info";

bool BeginsWith(const std::string& text, const char* start) { return text.rfind(start, 0) == 0; }

event::HParam HParamOf(const Json& value) {
  event::HParam hparam;
  if (value.is_boolean()) {
    hparam.set_bool_value(value.get<bool>());
  } else if (value.is_number()) {
    hparam.set_number_value(value.get<double>());
  } else {
    hparam.set_string_value(value.is_string() ? value.get<std::string>() : value.dump());
  }
  return hparam;
}

// The keys of model and train that have a value, and the size of the cluster.
void AddHParams(const Config& config, event::SessionStartInfo* start) {
  auto& hparams = *start->mutable_hparams();
  const Json all = FlatConfig(config);
  for (const auto& [key, value] : all.items()) {
    const bool counts = BeginsWith(key, "model.") || BeginsWith(key, "train.") || key == "data.scale";
    if (counts && !value.is_null()) hparams[key] = HParamOf(value);
  }
  hparams["cluster.ps"] = HParamOf(Json(config.cluster.ps.size()));
  hparams["cluster.worker"] = HParamOf(Json(config.cluster.worker.size()));
}

void AddHParamsValue(const char* tag, const event::HParamsPluginData& data, event::Summary* summary) {
  event::Summary::Value& value = *summary->add_value();
  value.set_tag(tag);
  // A value must have one: a tensor without elements.
  value.mutable_tensor()->set_dtype(event::DT_FLOAT);
  value.mutable_tensor()->mutable_tensor_shape()->add_dim();
  event::SummaryMetadata::PluginData& plugin = *value.mutable_metadata()->mutable_plugin_data();
  plugin.set_plugin_name(kHparams);
  plugin.set_content(data.SerializeAsString());
}

// Markdown: a block of code, a line for each key that has a value.
void AddConfigText(const Config& config, event::Summary* summary) {
  std::string text;
  const Json all = FlatConfig(config);
  for (const auto& [key, value] : all.items()) {
    if (!value.is_null()) text += "    " + key + ": " + value.dump() + "\n";
  }
  event::Summary::Value& value = *summary->add_value();
  value.set_tag("config");
  value.mutable_tensor()->set_dtype(event::DT_STRING);
  value.mutable_tensor()->mutable_tensor_shape();
  value.mutable_tensor()->add_string_val(text);
  value.mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
  value.mutable_metadata()->set_summary_description("Every key of the config with its value in effect.");
}

// What TensorBoard shows of a run beside curves: its config as text (Text), and the keys that runs are
// compared by, with when and how it ended (HParams). Each returns a serialised Summary for
// EventWriter::WriteSummary(); times are seconds since 1970. What may be a secret is not in it (FlatConfig).
std::string SessionStart(const Config& config, double start_s) {
  event::Summary summary;
  event::HParamsPluginData data;
  data.mutable_session_start_info()->set_start_time_secs(start_s);
  AddHParams(config, data.mutable_session_start_info());
  AddHParamsValue(kStartTag, data, &summary);
  AddConfigText(config, &summary);
  return summary.SerializeAsString();
}

std::string SessionEnd(bool is_done, double end_s) {
  event::Summary summary;
  event::HParamsPluginData data;
  event::SessionEndInfo& end = *data.mutable_session_end_info();
  end.set_status(is_done ? event::SessionEndInfo::SUCCESS : event::SessionEndInfo::FAILURE);
  end.set_end_time_secs(end_s);
  AddHParamsValue(kEndTag, data, &summary);
  return summary.SerializeAsString();
}

}  // namespace

// Only the final evaluation has the AUC.
void EvaluationPoints::Write(EvalOn set, int64_t global_step, const EvaluationFigures& figures,
                             EventWriter* writer) {
  std::optional<int64_t>& at = at_[set == EvalOn::kTest ? 0 : 1];
  const bool again = at == global_step;
  if (again && !figures.auc) return;
  at = global_step;
  const auto add = [&](const char* name, const std::optional<double>& figure) {
    if (figure) writer->Add(fmt::format("{}/{}", SetName(set), name), *figure, kEvaluation);
  };
  if (!again) add("loss", figures.loss);
  if (!again) add("accuracy", figures.accuracy);
  add("auc", figures.auc);
  writer->WriteScalars(global_step, Clock::now());
  writer->Flush();
}

std::unique_ptr<WorkerSummary> WorkerSummary::Open(const Config& config, int index, const std::string& device,
                                                   const Layout& layout, ExitHooks& hooks, Logger& log) {
  if (config.summary.dir.empty()) return nullptr;
  return std::unique_ptr<WorkerSummary>(new WorkerSummary(config, index, device, layout, hooks, log));
}

WorkerSummary::WorkerSummary(const Config& config, int index, const std::string& device, const Layout& layout,
                             ExitHooks& hooks, Logger& log)
    : directory_(DirectoryOf(config.summary.dir, index)),
      hooks_(hooks),
      log_(log),
      optimizer_(OptimizerOf(config.train, ModelHalf::kOther).values),
      linear_(OptimizerOf(config.train, ModelHalf::kLinear).values),
      has_two_(OptimizersOf(config.train).size() > 1),
      saves_(!config.checkpoint.dir.empty()),
      is_first_(index == 0),
      classifies_(HasClasses(config.model)),
      goes_on_(!EventFiles(directory_).empty()),
      writer_(directory_, hooks, log),
      schedule_(config.summary),
      point_at_(Clock::now()) {
  if (is_first_) {
    writer_.WriteGraph(ModelGraph(config, layout, device));
    WriteSession(SessionStart(config, WallSeconds()));
  }
  log.Detail("summaries for TensorBoard: {}", writer_.path());
}

// TensorBoard shows the first keys and the first end that it reads of a directory; those of this start are to
// be shown, not those of an earlier one.
void WorkerSummary::WriteSession(const std::string& session) {
  writer_.WriteSummary(session);
  if (goes_on_) EventWriter(directory_, hooks_, log_, EventWriter::Order::kFirst).WriteSummary(session);
}

void WorkerSummary::End(ExitCode code) {
  if (!is_first_ || std::exchange(has_ended_, true)) return;
  // A fault in the data (kUser) is mended and the run started again: it is saved before, as after a signal.
  if (code == ExitCode::kInterrupted || code == ExitCode::kTerminated) return;
  if (code == ExitCode::kUser && saves_) return;
  try {
    WriteSession(SessionEnd(code == ExitCode::kOk, WallSeconds()));
  } catch (const Failure& failure) {
    log_.Warning("{}", failure.what());
  }
}

void WorkerSummary::Begin(int64_t global_step) {
  writer_.WriteStart(global_step);
  evaluations_ = {};
  begun_at_ = global_step;
  point_at_ = Clock::now();
  point_step_ = global_step;
  examples_ = 0;
}

void WorkerSummary::OnStep(const StepFigures& step) {
  const TimePoint now = Clock::now();
  const double seconds = std::max(SecondsBetween(point_at_, now), 1e-9);
  writer_.Add("loss", step.loss, kLoss);
  if (classifies_ && step.rows > 0) {
    writer_.Add("accuracy", static_cast<double>(step.correct) / static_cast<double>(step.rows), kAccuracy);
  }
  if (is_first_) {
    const int64_t update = std::max<int64_t>(step.global_step, 1);
    writer_.Add("learning_rate", LearningRate(optimizer_, update, decay_steps_), kLearningRate);
    if (has_two_) {
      writer_.Add("learning_rate/linear", LearningRate(linear_, update, decay_steps_), kLinearRate);
    }
  }
  writer_.Add("global_step/sec", static_cast<double>(step.global_step - point_step_) / seconds, kStepsPerS);
  writer_.Add("examples/sec", static_cast<double>(examples_) / seconds, kExamplesPerS);
  if (step.staleness) {
    writer_.Add("staleness", step.staleness->mean, kStaleness);
    writer_.Add("staleness/p50", step.staleness->p50, kStalenessP50);
    writer_.Add("staleness/p95", step.staleness->p95, kStalenessP95);
    writer_.Add("staleness/max", step.staleness->max, kStalenessMax);
  }
  writer_.WriteScalars(step.global_step, now);
  point_at_ = now;
  point_step_ = step.global_step;
  examples_ = 0;
  due_ = false;
}

void WorkerSummary::OnEvaluation(EvalOn set, int64_t global_step, const EvaluationFigures& figures) {
  // A run that was done evaluates its last step again when it is started again.
  if (goes_on_ && global_step == begun_at_ && HasEvaluation(directory_, set, global_step)) return;
  evaluations_.Write(set, global_step, figures, &writer_);
}

std::unique_ptr<PsSummary> PsSummary::Open(const Config& config, ExitHooks& hooks, Logger& log) {
  if (config.summary.dir.empty()) return nullptr;
  return std::unique_ptr<PsSummary>(new PsSummary(config, hooks, log));
}

PsSummary::PsSummary(const Config& config, ExitHooks& hooks, Logger& log)
    : writer_(config.summary.dir + "/ps-0", hooks, log), schedule_(config.summary) {
  log.Detail("summaries for TensorBoard: {}", writer_.path());
}

PsSummary::~PsSummary() {
  if (step_ > point_step_) WritePoint();
}

void PsSummary::Begin(int64_t global_step) {
  writer_.WriteStart(global_step);
  point_at_ = Clock::now();
  step_ = point_step_ = global_step;
}

void PsSummary::WritePoint() {
  const TimePoint now = Clock::now();
  const double seconds = std::max(SecondsBetween(point_at_, now), 1e-9);
  writer_.Add("global_step/sec", static_cast<double>(step_ - point_step_) / seconds, kStepsPerS);
  writer_.Add("workers", workers_, kWorkers);
  writer_.WriteScalars(step_, now);
  point_at_ = now;
  point_step_ = step_;
}

void EvaluationCurves::Add(EvalOn set, int64_t global_step, const EvaluationFigures& figures) {
  // Whoever follows the run may be started again, and the run may go back.
  if (!step_ || global_step <= *step_) {
    writer_.WriteStart(global_step - 1);
    points_ = {};
  }
  step_ = global_step;
  points_.Write(set, global_step, figures, &writer_);
}

}  // namespace dtrain
