#include "trainer/task/run_log.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/machine_memory.h"
#include "base/names.h"
#include "trainer/config/config.h"
#include "trainer/config/fields.h"
#include "trainer/config/user_text.h"
#include "trainer/device/choice.h"
#include "trainer/model/model.h"
#include "trainer/order/held_out.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/task/memory_need.h"

namespace dtrain {
namespace {

std::string WhenText(const CheckpointConfig& config) {
  const std::string by_time = config.every_secs > 0 ? fmt::format(" every {} s", config.every_secs) : "";
  const std::string by_steps =
      config.every_steps > 0 ? fmt::format(" every {}", Plural(config.every_steps, "global step")) : "";
  if (by_time.empty() && by_steps.empty()) return " at the start and at the end";
  return by_time + (by_time.empty() || by_steps.empty() ? "" : " and") + by_steps;
}

}  // namespace

std::string CheckpointLine(const Config& config) {
  const CheckpointConfig& checkpoint = config.checkpoint;
  if (checkpoint.dir.empty()) {
    return "no checkpoint.dir: a lost ps or a signal ends the run with nothing saved";
  }
  std::string deltas;
  if (checkpoint.delta > 0) {
    deltas = fmt::format(", up to {} after each of all rows", Plural(checkpoint.delta, "delta"));
  }
  return fmt::format("checkpoints: {}{}{}, the newest {}{} kept", checkpoint.dir, WhenText(checkpoint),
                     deltas, checkpoint.keep == 1 ? "one" : fmt::format("{}", checkpoint.keep),
                     config.eval.keep_best  ? " and the best are"
                     : checkpoint.keep == 1 ? " is"
                                            : " are");
}

namespace {

std::string WorkerPath(const Config& config, int worker, const DeviceChoice& choice, size_t tower) {
  return fmt::format("/job:worker/task:{}/{}", worker, DeviceName(config.device, choice, tower));
}

std::string ProcessorText(const DeviceConfig& device) {
  return fmt::format("{}, {}, {}", ProcessorName(), InstructionSet(), Plural(device.threads, "thread"));
}

std::string GpuText(const gpu::cuda::DeviceInfo& gpu, double memory_fraction) {
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  return fmt::format("{}, compute capability {}.{}, {:.1f} GiB ({:.4g} % allowed), pci {}", gpu.name,
                     gpu.major, gpu.minor, static_cast<double>(gpu.total_bytes) / kGiB, 100 * memory_fraction,
                     gpu.pci);
}

// "2 towers: cpu 0, cpu 3; a step is 8 rows of each"
std::string TowersText(const Config& config, const DeviceChoice& choice) {
  const char* kind = choice.on_gpu() ? "gpu" : "cpu";
  return fmt::format("{} towers: {} {}; a step is {} rows of each", config.device.towers(), kind,
                     fmt::join(config.device.ids, fmt::format(", {} ", kind)), config.train.batch_size);
}

const char* ActivationName(Activation activation) {
  switch (activation) {
    case Activation::kSigmoid:
      return "sigmoid";
    case Activation::kTanh:
      return "tanh";
    case Activation::kRelu:
      break;
  }
  return "relu";
}

const char* LossName(const ModelConfig& model) {
  if (model.loss) return gpu::LossRowOf(*model.loss).name;
  switch (HeadOf(model)) {
    case ModelHead::kLinear:
      return "mean_squared_error";
    case ModelHead::kLogistic:
      return "sigmoid_cross_entropy";
    case ModelHead::kSoftmax:
      break;
  }
  return "softmax_cross_entropy";
}

}  // namespace

std::vector<std::string> DeviceLines(const Config& config, TaskId task, const DeviceChoice& choice) {
  if (task.role == Role::kPs) {
    return {fmt::format("device /job:ps/task:{}/cpu:0: {}", task.index, ProcessorText(config.device))};
  }
  std::vector<std::string> lines;
  const auto add = [&](const std::string& what) {
    lines.push_back(fmt::format("device {}: {}", WorkerPath(config, task.index, choice, lines.size()), what));
  };
  for (const gpu::cuda::DeviceInfo& gpu : choice.gpus) add(GpuText(gpu, config.device.memory_fraction));
  if (!choice.on_gpu()) add(ProcessorText(config.device));
  if (config.device.towers() > 1) lines.push_back(TowersText(config, choice));
  return lines;
}

std::vector<std::string> TowerLines(const Config& config, TaskId task, const DeviceChoice& choice) {
  std::vector<std::string> lines;
  if (task.role == Role::kPs || config.device.towers() == 1) return lines;
  for (size_t i = 0; i < config.device.ids.size(); ++i) {
    lines.push_back(fmt::format("tower {} -> {}", i, WorkerPath(config, task.index, choice, i)));
  }
  return lines;
}

std::vector<std::string> OperationLines(const Config& config, const Layout& layout,
                                        const DeviceChoice& choice, const std::string& parameters) {
  const size_t hidden = HasLayers(config.model) ? config.model.hidden.size() : 0;
  const int64_t towers = config.device.towers();
  const std::string where =
      towers == 1 ? WorkerPath(config, 0, choice, 0) : fmt::format("towers 0 to {}", towers - 1);
  std::vector<std::string> lines;
  for (size_t i = 0; i <= hidden; ++i) {
    const std::string activation =
        i < hidden ? std::string(", ") + ActivationName(config.model.activation) : "";
    lines.push_back(fmt::format("layer {} matmul, bias{} -> {}", i + 1, activation, where));
  }
  const bool fm = config.model.kind == ModelKind::kFm;
  if (layout.table && layout.size > 0) {
    lines.push_back(fmt::format("embeddings of {} values, and the weights of features -> {}",
                                config.model.embedding, where));
  }
  if (fm) lines.push_back(fmt::format("pairs of features, {} factors -> {}", config.model.factors, where));
  lines.push_back(fmt::format("loss {} -> {}", LossName(config.model), where));
  for (size_t i = layout.variables.empty() ? 0 : hidden + 1; i > 0; --i) {
    const LayerNames names = LayerNamesOf(config.model, i);
    lines.push_back(fmt::format("gradient {}, {} -> {}", names.weights, names.biases, where));
  }
  if (layout.table) lines.push_back(fmt::format("gradient rows of {} in a batch -> {}", kTableName, where));
  const Field& optimizer = *FindField("train.optimizer.kind");
  const std::string kind = ValueText(optimizer, optimizer.get(config));
  for (size_t ps = 0; ps < layout.ps.size(); ++ps) {
    lines.push_back(fmt::format("update {} -> /job:ps/task:{}/{}", kind, ps, parameters));
  }
  return lines;
}

namespace {

void LogDetails(const std::vector<std::string>& lines, Logger& log) {
  for (const std::string& line : lines) log.Detail("{}", line);
}

void LogDevices(const Config& config, TaskId task, const DeviceChoice& choice, Logger& log) {
  if (!choice.why_cpu.empty()) {
    choice.warn ? log.Warning("{}", choice.why_cpu) : log.Detail("{}", choice.why_cpu);
  }
  const std::vector<std::string> lines = DeviceLines(config, task, choice);
  // One for all: mostly the others compute on the same.
  const bool first = task.role == Role::kWorker && task.index == 0 && lines.size() == 1;
  first ? log.Info("{}", lines[0]) : LogDetails(lines, log);
  const int64_t towers = config.device.towers();
  if (task.role == Role::kWorker && !choice.on_gpu() && towers > 1 && towers > Processors()) {
    log.Warning(
        "device.ids lists {} devices, and this process may use {}: they take turns, and no step is faster",
        towers, Plural(Processors(), "processor"));
  }
}

void LogPlacement(const Layout& layout, const std::string& parameters, Logger& log) {
  for (size_t ps = 0; layout.table && ps < layout.ps.size(); ++ps) {
    const RowRange rows = layout.table->PartOf(static_cast<int64_t>(ps));
    log.Detail("{}[{}:{}) -> /job:ps/task:{}/{}", kTableName, rows.begin, rows.end, ps, parameters);
  }
  for (size_t ps = 0; ps < layout.ps.size(); ++ps) {
    for (const Segment& segment : layout.SegmentsOf(static_cast<int>(ps))) {
      log.Detail("{} -> /job:ps/task:{}/{}", layout.RowsText(segment), ps, parameters);
    }
  }
}

}  // namespace

void LogStart(const Config& config, TaskId task, const Layout& layout, const DeviceChoice& choice,
              const std::string& parameters, Logger& log) {
  const ClusterConfig& cluster = config.cluster;
  log.Detail("cluster: {} ps {}, {}", cluster.ps.size(), fmt::join(cluster.ps, " "), WorkersText(cluster));
  LogDevices(config, task, choice, log);
  if (layout.table && task.index == 0) log.Detail("{}: {}", kTableName, TableText(config, *layout.table));
  if (config.placement.log) LogDetails(TowerLines(config, task, choice), log);
  if (task.index != 0) return;
  if (config.placement.log) {
    LogPlacement(layout, parameters, log);
    if (task.role == Role::kWorker) LogDetails(OperationLines(config, layout, choice, parameters), log);
  }
  if (task.role != Role::kPs) return;
  log.Info("{}", CheckpointLine(config));
  const std::string key = FirstNondeterministicKey(config);
  if (!key.empty()) log.Detail("the run is not deterministic: {}", key);
}

namespace {

// A loss this many times that of the first step is not the noise of a batch of kRows; fewer rows say less.
constexpr double kRisen = 5;
constexpr double kRows = 20;
// A cross-entropy that only outputs reach whose probabilities are 0 in float32.
constexpr double kSaturated = 100;

}  // namespace

bool TellsForAll(TaskId task, const RunSummary& summary) {
  if (task.role != Role::kWorker) return false;
  const auto is_in = [](const std::vector<int64_t>& workers, int64_t worker) {
    return std::find(workers.begin(), workers.end(), worker) != workers.end();
  };
  int64_t first = 0;
  while (is_in(summary.lost_workers, first) || is_in(summary.absent_workers, first)) ++first;
  return task.index == first;
}

std::string NoTestLine(const Config& config, const RunSummary& summary) {
  const bool nothing = !HoldsOut(config.data) && config.data.test.format == DataFormat::kNone;
  if (!config.eval.at_end || summary.test.rows || !nothing) return "";
  const char* const figure = HasClasses(config.model) ? "accuracy" : "test loss";
  return fmt::format("no test data, so no {}: set data.test, or data.validation", figure);
}

std::string RisenLossLine(const Config& config, const RunSummary& summary) {
  if (!summary.first_loss || !summary.final_loss) return "";
  const double first = *summary.first_loss, last = *summary.final_loss;
  const auto rows = static_cast<double>(config.train.batch_size * config.device.towers());
  if (!std::isfinite(last) || !(last > kRisen * std::max(kRows / rows, 1.0) * first)) return "";
  const bool raw = IsTable(config.data.train.format) && !HasSparseRows(config.data) &&
                   config.data.scale == FeatureScale::kNone;
  return fmt::format(
      "the loss has risen from {:.6g} in the first step to {:.6g}: the training may have diverged. {}", first,
      last,
      raw ? "Set data.scale: standard if features are larger than some 10, or lower "
            "train.optimizer.learning_rate."
          : "Lower train.optimizer.learning_rate.");
}

std::string SaturatedLine(const Config& config, const RunSummary& summary) {
  const bool exact = summary.final_loss == 0.0;
  const auto wrong_on = [](const EvaluationFigures& set) { return set.loss && *set.loss > kSaturated; };
  const bool wrong = wrong_on(summary.validation) || wrong_on(summary.test);
  if (!HasClasses(config.model) || HasScores(config.model) || (!exact && !wrong)) return "";
  std::vector<std::string> losses;
  const auto add = [&](const char* of, const std::optional<double>& loss) {
    if (loss) losses.push_back(fmt::format("{} {:.6g}", of, *loss));
  };
  add("the loss of the last steps is", summary.final_loss);
  add("that of the held-out rows", summary.validation.loss);
  add("that of the test rows", summary.test.loss);
  return fmt::format(
      "the outputs have grown so large that their probabilities are 0 and 1 and nothing between ({}). Lower "
      "train.optimizer.learning_rate, or look for a column that gives the label away.",
      fmt::join(losses, ", "));
}

double WaitedPercent(const WorkerFigures& figures) {
  return figures.total_s() > 0 ? 100 * figures.wait.total_s / figures.total_s() : 0;
}

std::string AlreadyDoneLine(const RunSummary& summary) {
  const auto known = summary.test.accuracy ? summary.test.accuracy : summary.validation.accuracy;
  const char* const set = SetName(summary.test.accuracy ? EvalOn::kTest : EvalOn::kValidation);
  const std::string accuracy = known ? fmt::format(", {} accuracy {:.4f}", set, *known) : "";
  return fmt::format("already done: {} has the last step, {}{}, model crc {}",
                     summary.checkpoint.value_or("-"), summary.global_step, accuracy,
                     summary.model_crc.value_or("-"));
}

std::string DoneLine(const RunSummary& summary) {
  std::vector<std::string> lost;
  for (const int64_t worker : summary.lost_workers) lost.push_back(fmt::format("{}", worker));
  if (lost.empty()) return "done";
  return fmt::format("done, but {} {} lost",
                     (lost.size() == 1 ? "worker " : "workers ") + ListText(lost, "and"),
                     lost.size() == 1 ? "was" : "were");
}

namespace {

std::string PartText(const char* name, const TimeSpread& part) {
  return fmt::format("{} {:.2f} s ({:.3f}, {:.3f})", name, part.total_s, part.p50_ms, part.p95_ms);
}

void LogWorker(int worker, const WorkerFigures& figures, Logger& log) {
  log.RecordResult(TimesLine(worker, figures), {{"worker", int64_t{worker}},
                                                {"waited_percent", WaitedPercent(figures)},
                                                {"data_s", figures.data.total_s},
                                                {"compute_s", figures.compute.total_s},
                                                {"hooks_s", figures.hooks.total_s},
                                                {"wait_s", figures.wait.total_s},
                                                {"network_s", figures.network.total_s}});
  if (!figures.staleness) return;
  log.RecordResult(StalenessLine(worker, *figures.staleness), {{"worker", int64_t{worker}},
                                                               {"staleness_mean", figures.staleness->mean},
                                                               {"staleness_p50", figures.staleness->p50},
                                                               {"staleness_p95", figures.staleness->p95},
                                                               {"staleness_max", figures.staleness->max}});
}

}  // namespace

std::string TimesLine(int worker, const WorkerFigures& figures) {
  return fmt::format(
      "worker {}: waited {:.0f} % for others; of {:.2f} s in {} (p50 and p95 of a step in ms): {}, {}, {}, "
      "{}, {}",
      worker, WaitedPercent(figures), figures.total_s(), Plural(figures.steps, "step"),
      PartText("data", figures.data), PartText("compute", figures.compute), PartText("hooks", figures.hooks),
      PartText("wait", figures.wait), PartText("network", figures.network));
}

std::string StalenessLine(int worker, const StalenessSpread& staleness) {
  return fmt::format("worker {}: staleness {:.1f} in the mean, p50 {:.0f}, p95 {:.0f}, at most {:.0f}",
                     worker, staleness.mean, staleness.p50, staleness.p95, staleness.max);
}

void LogWorkers(TaskId task, const RunSummary& summary, Logger& log) {
  if (task.role != Role::kWorker) return;
  for (size_t worker = 0; worker < summary.workers.size(); ++worker) {
    const auto index = static_cast<int>(worker);
    const bool mine = task.index == 0 || task.index == index;
    if (mine && summary.workers[worker].steps > 0) LogWorker(index, summary.workers[worker], log);
  }
}

namespace {

constexpr char kToGoOn[] =
    "; raise train.steps or train.epochs to go on, or set checkpoint.resume: never to train anew";

// Worker 0 logs the lines about every worker.
constexpr TaskId kChief{Role::kWorker, 0};

// True: there is nothing else to log.
bool LogAlreadyDone(const RunSummary& summary, Logger& log) {
  if (summary.status != "already_done") return false;
  if (summary.other_data) {
    log.Event(kEventRunEnded, LogLevel::kWarning,
              fmt::format("{}; but these are other data: {}. To train its model on them, name another "
                          "checkpoint.dir, and checkpoint.start_from: {}",
                          AlreadyDoneLine(summary), *summary.other_data, summary.checkpoint.value_or("-")));
  } else {
    log.RecordResult(AlreadyDoneLine(summary) + kToGoOn, {{"event", kEventRunEnded}});
  }
  return true;
}

// Logs the workers that were missing at the end.
void LogLosses(const RunSummary& summary, Logger& log) {
  for (const int64_t worker : summary.lost_workers) {
    const auto index = static_cast<size_t>(worker);
    const int64_t steps = index < summary.local_steps.size() ? summary.local_steps[index] : 0;
    log.Warning("worker {} was lost after {} and did not come back", worker, Plural(steps, "local step"));
  }
  for (const int64_t worker : summary.absent_workers) log.Result("worker {} took no part", worker);
}

void LogTotals(const RunSummary& summary, Logger& log) {
  const int64_t before = AddCounts(summary.bytes_sent, summary.bytes_saved);
  log.Result("{}, {}, {:.1f} steps/s, {:.0f} examples/s, {} bytes sent{}",
             Plural(summary.global_step, "global step"), Plural(summary.examples, "example"),
             summary.steps_per_s.value_or(0), summary.examples_per_s.value_or(0), summary.bytes_sent,
             summary.bytes_saved > 0 ? fmt::format(" ({} before compression)", before) : "");
  if (const std::optional<TableFigures>& table = summary.table) {
    log.Result("{}: {}", kTableName, TableText(*table));
  }
  LogLosses(summary, log);
  for (const auto& [name, values] : summary.weights) {
    if (values.size() <= 4) log.Result("{} = {:.6g}", name, fmt::join(values, " "));
  }
}

void LogFinalWeights(const RunSummary& summary, Logger& log) {
  for (const EvaluationFigures* const set : {&summary.validation, &summary.test}) {
    const char* const name = set == &summary.test ? "test" : "validation";
    if (set->accuracy) log.Result("{} accuracy of the final weights: {:.4f}", name, *set->accuracy);
    if (set->loss) log.Result("{} loss of the final weights: {:.6g}", name, *set->loss);
  }
}

// Logs what the user may want to change.
void LogAdvice(const Config& config, const RunSummary& summary, Logger& log) {
  const std::string risen = RisenLossLine(config, summary);
  if (!risen.empty()) log.Event(kEventDivergence, LogLevel::kWarning, risen);
  const std::string saturated = SaturatedLine(config, summary);
  if (!saturated.empty() && risen.empty()) log.Event(kEventDivergence, LogLevel::kWarning, saturated);
  const std::string no_test = NoTestLine(config, summary);
  if (!no_test.empty()) log.Result("{}", no_test);
}

void LogTime(const RunSummary& summary, Logger& log) {
  const std::string loss = summary.final_loss ? fmt::format("{:.6g}", *summary.final_loss) : "-";
  log.Result("total time: {:.2f} s, loss of the last 100 steps: {}, model crc {}", summary.wall_s, loss,
             summary.model_crc.value_or("-"));
}

}  // namespace

void LogEnd(const Config& config, TaskId task, const RunSummary& summary, Logger& log) {
  if (LogAlreadyDone(summary, log)) return;
  LogTotals(summary, log);
  if (task.role == Role::kWorker) {
    const auto& own = summary.worker_accuracy;
    const auto index = static_cast<size_t>(task.index);
    if (index < own.size() && own[index]) {
      log.Result("{} accuracy of this worker: {:.4f}", SetName(config.eval.on), *own[index]);
    }
    LogFinalWeights(summary, log);
  }
  LogWorkers(task, summary, log);
  LogTime(summary, log);
  if (TellsForAll(task, summary)) LogAdvice(config, summary, log);
  log.RecordAlways(LogLevel::kInfo, DoneLine(summary), {{"event", kEventRunEnded}});
}

void LogRunEnd(const Config& config, const RunSummary& summary, Logger& log) {
  if (LogAlreadyDone(summary, log)) return;
  LogTotals(summary, log);
  for (size_t worker = 0; worker < summary.worker_accuracy.size(); ++worker) {
    const auto& accuracy = summary.worker_accuracy[worker];
    if (!accuracy) continue;
    log.Result("{} accuracy of worker {}: {:.4f}", SetName(config.eval.on), worker, *accuracy);
  }
  LogFinalWeights(summary, log);
  LogWorkers(kChief, summary, log);
  LogTime(summary, log);
  LogAdvice(config, summary, log);
  log.RecordResult(DoneLine(summary), {{"event", kEventRunEnded}});
}

}  // namespace dtrain
