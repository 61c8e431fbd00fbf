#include "cmd/look/look.h"

#include <errno.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "base/names.h"

#include "cmd/common/load_config.h"
#include "cmd/common/report.h"
#include "cmd/common/signal_pipe.h"

#include "trainer/batch/input_form.h"
#include "trainer/checkpoint/check_meaning.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_errors.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/config/config.h"
#include "trainer/config/user_text.h"
#include "trainer/feed/feed_batch.h"
#include "trainer/input/sources.h"
#include "trainer/keys/cluster_keys.h"
#include "trainer/model/layout.h"
#include "trainer/model/model.h"
#include "trainer/monitor/run_monitor.h"
#include "trainer/optim/optimizer.h"
#include "trainer/order/held_out.h"
#include "trainer/order/order.h"
#include "trainer/order/positions.h"
#include "trainer/sets/cache_file.h"
#include "trainer/sets/load_data.h"
#include "trainer/sets/source.h"
#include "trainer/survey/data_shape.h"
#include "trainer/survey/data_warnings.h"
#include "trainer/task/memory_need.h"
#include "trainer/task/run_task.h"

namespace dtrain {
namespace {

// Whether ps 0, which chooses the checkpoint and tells the metrics, runs on this machine.
bool LeadsHere(const Config& config) {
  if (config.cluster.ps.empty()) return true;
  const std::string host = HostOf(config.cluster.ps.front());
  return IsLoopbackHost(host) || OwnNames().count(host) > 0;
}

// Whether checkpoint.resume is a path.
bool NamesCheckpoint(const CheckpointConfig& checkpoint) {
  return checkpoint.resume != "auto" && checkpoint.resume != "never";
}

struct StartOfRun {
  std::string path;     // of a checkpoint; empty: initial values
  bool begins = false;  // it is that of checkpoint.start_from
};

// Returns the first checkpoint of checkpoint.start_from whose bytes are all intact.
std::string ChooseStart(const std::string& start_from, const ErrorLines& errors) {
  const std::string named = CheckpointsOf(start_from);
  std::vector<std::string> unreadable;
  const std::vector<std::string> choices = ChoicesOf(named, &unreadable);
  for (const std::string& line : unreadable) errors.Print(fmt::format("warning: {}: {}", named, line));
  for (const std::string& path : choices) {
    try {
      CheckpointReader(path).Verify();
      return path;
    } catch (const BadCheckpoint& bad) {
      if (path == named) throw;
      errors.Print(fmt::format("warning: {}: {}; skipped", path, bad.problem()));
    }
  }
  throw NothingToBeginWith(start_from);
}

// Returns what the run would begin with. Prints which checkpoints are damaged.
StartOfRun Choose(const CheckpointConfig& checkpoint, const ErrorLines& errors) {
  std::vector<std::string> skipped;
  if (NamesCheckpoint(checkpoint)) {
    const std::string path = NamedCheckpoint(CheckpointsOf(checkpoint.resume), &skipped);
    for (const std::string& line : skipped) {
      errors.Print(fmt::format("warning: {}: {}", checkpoint.resume, line));
    }
    return {path};
  }
  if (checkpoint.resume == "auto" && !checkpoint.dir.empty()) {
    const std::optional<std::string> newest = CheckpointDirectory(checkpoint.dir).FindNewest(&skipped);
    for (const std::string& line : skipped) {
      errors.Print(fmt::format("warning: {}: {}", checkpoint.dir, line));
    }
    if (!newest && !skipped.empty()) throw NoneComplete(checkpoint.dir);
    if (newest) return {*newest};
  }
  if (checkpoint.start_from.empty()) return {};
  return {ChooseStart(checkpoint.start_from, errors), true};
}

std::string StartLine(const Config& config, const Layout& layout, const LoadedData& loaded,
                      const ErrorLines& errors, DataPlan* plan) {
  const StartOfRun start = Choose(config.checkpoint, errors);
  if (start.path.empty())
    return fmt::format("start: anew, since {} has no checkpoint", config.checkpoint.dir);
  CheckpointReader checkpoint(start.path);
  const Manifest& manifest = checkpoint.manifest();
  CheckMeaning(start.path, manifest, config, loaded.form, start.begins ? kStartWords : MeaningWords());
  start.begins ? checkpoint.BeginWith(config, layout) : checkpoint.CheckFits(layout, SlotsOf(config));
  const std::optional<InputForm>& saved = manifest.inputs;
  const bool fitted = saved && !HasHashedColumns(*saved) && !(saved->columns.empty() && saved->scale.empty());
  const std::string fit = fitted ? ", and reads its rows with its categories, fill values and scale" : "";
  const std::vector<std::string> changed = ChangedKeys(start.path, config);
  if (!start.begins) {
    Positions positions;
    if (FromJson(manifest.positions, &positions)) {
      *plan = ResumeAt(manifest.step, positions, config, loaded.train->rows()).positions.plan;
    }
    return fmt::format("start: from {}, at global step {}{}{}{}", start.path, manifest.step, fit,
                       changed.empty() ? "" : "\n", fmt::join(changed, "\n"));
  }
  return fmt::format("start: at global step 0, with the weights of {}, of its global step {}{}{}", start.path,
                     manifest.step,
                     checkpoint.slots_begin_anew()
                         ? fmt::format("; its optimizer was {}: the slots begin anew", manifest.optimizer)
                         : "",
                     fit);
}

// Checks the checkpoint that the run would resume from: reads all of it, verifies every byte, and compares it
// with the model and the run's data. Sets `plan` to what it has done of these. If ps 0 runs on this machine,
// a problem is a UserError in the run's words; otherwise a warning, because the files may be good on ps 0's
// machine. Returns a line for the user that begins with "start: "; empty if only other machines know, or if
// no checkpoint is asked for.
std::string CheckResume(const Config& config, const Layout& layout, const LoadedData& loaded,
                        const ErrorLines& errors, DataPlan* plan) {
  const CheckpointConfig& checkpoint = config.checkpoint;
  const bool own = NamesCheckpoint(checkpoint) || (checkpoint.resume == "auto" && !checkpoint.dir.empty());
  if (!own && checkpoint.start_from.empty()) return "";
  const bool here = LeadsHere(config);
  try {
    const std::string line = StartLine(config, layout, loaded, errors, plan);
    return here ? line : "";
  } catch (const UserError& error) {
    if (here) throw;
    const char* key = NamesCheckpoint(checkpoint)      ? "checkpoint.resume"
                      : !checkpoint.start_from.empty() ? "checkpoint.start_from"
                                                       : "checkpoint.dir";
    errors.Print(fmt::format("warning: {}, as this machine sees it: {} ps 0 reads it where it runs.", key,
                             error.what()));
    return "";
  }
}

// Returns the errno of the first file that a path or a pattern names and that cannot be read; 0: there is
// none.
int WhyUnreadable(const DataFile& file) {
  if (!FirstMissing({file.path}).empty()) return ENOENT;
  for (const std::string& each : SourceFiles({file.path}, file.key)) {
    if (access(each.c_str(), R_OK) != 0) return errno;
  }
  return 0;
}

// Reports all missing files at once.
void CheckFilesExist(const DataConfig& data) {
  std::string missing;
  const char* where =
      data.split == Split::kFeed ? ", or check where worker 0 runs: nobody else needs it" : "";
  for (const DataFile& file : DataFiles(data)) {
    const int why = WhyUnreadable(file);
    if (why == 0) continue;
    missing += fmt::format("{}{}: cannot be read: {}. Set {} to where the file is{}.",
                           missing.empty() ? "" : "\n", file.path, ErrnoText(why), file.key, where);
  }
  if (!missing.empty()) throw UserError("{}", missing);
}

// `local`: the tasks of `dtrain local`, which have no addresses to show.
void PrintTasks(const ClusterConfig& cluster, bool local) {
  if (local) {
    fmt::print("tasks: {} ps and {}, of dtrain local\n", cluster.ps.size(),
               Plural(static_cast<int64_t>(cluster.worker.size()), "worker"));
    return;
  }
  fmt::print("tasks:\n");
  for (size_t i = 0; i < cluster.ps.size(); ++i) fmt::print("  ps {}      {}\n", i, cluster.ps[i]);
  for (size_t i = 0; i < cluster.worker.size(); ++i) {
    fmt::print("  worker {}  {}{}\n", i, cluster.worker[i], i == 0 ? "  (chief)" : "");
  }
}

// Prints what --from found in the environment.
void PrintAssignment(const Config& config, const Scheduled& scheduled) {
  const Assignment& assignment = *scheduled.assignment;
  if (assignment.task) {
    fmt::print("this process: {}, {}\n", TaskName(*assignment.task), assignment.name);
  } else {
    fmt::print("this process: {}, which evaluates each new checkpoint of {}\n", assignment.name,
               EvaluatedDirectory(config, scheduled));
  }
  if (!scheduled.replaced.empty()) fmt::print("{}\n", scheduled.replaced);
}

// Prints what a table may take, and on which ps.
void PrintTable(const Config& config, const Layout& layout) {
  const TableLayout& table = *layout.table;
  fmt::print("  {}: {}\n", kTableName, TableText(config, table));
  const TrainConfig& train = config.train;
  const std::vector<NamedOptimizer> optimizers = OptimizersOf(train);
  const bool scaled = std::any_of(optimizers.begin(), optimizers.end(), [](const NamedOptimizer& each) {
    constexpr double kSmall = 0.001;  // the squares of mean gradients count beside such an accumulator
    const OptimizerKind kind = each.values.kind;
    return (kind == OptimizerKind::kAdagrad || kind == OptimizerKind::kFtrl) &&
           each.values.initial_accumulator > kSmall;
  });
  if (scaled && train.reduce == Reduce::kMean && train.batch_size >= 32) {
    fmt::print(
        "  train.reduce = mean: a feature of one row gets 1/{} of its gradient; for rare features try sum\n",
        train.batch_size);
  }
  for (size_t ps = 0; ps < config.cluster.ps.size(); ++ps) {
    const RowRange rows = table.PartOf(static_cast<int64_t>(ps));
    fmt::print("  ps {}: {}[{}:{}), at most {}\n", ps, kTableName, rows.begin, rows.end,
               table.hashed() && !config.model.max_rows
                   ? "as many as come"
                   : BytesText(MaxTableBytes(config, table, static_cast<int>(ps))));
  }
}

void PrintTensors(const Layout& layout) {
  for (size_t ps = 0; ps < layout.ps.size(); ++ps) {
    fmt::print("  ps {}: {}, {}:", ps, Plural(layout.ps[ps].size(), "parameter"),
               Plural(layout.ps[ps].size() * static_cast<int64_t>(sizeof(float)), "byte"));
    for (const Segment& segment : layout.SegmentsOf(static_cast<int>(ps))) {
      fmt::print(" {}", layout.RowsText(segment));
    }
    fmt::print("\n");
  }
}

void PrintModel(const Config& config, const Layout& layout) {
  const ModelConfig& model = config.model;
  std::string head = !HasHeadKey(model) || HasOutputPerClass(model) ? ""
                     : HasClasses(model)                            ? " with a logistic head"
                                                                    : " with a linear head";
  if (model.loss) head += fmt::format(", loss {}", gpu::LossRowOf(*model.loss).name);
  if (layout.table) {
    fmt::print("model: {}{}, {}, {}\n", KindName(model.kind), head,
               layout.table->hashed() ? "any keys" : Plural(*model.inputs, "input"),
               Plural(*model.outputs, "output"));
    PrintTable(config, layout);
    if (layout.size > 0) PrintTensors(layout);
    return;
  }
  fmt::print("model: {}{}, {}, {}, {} ({})\n", KindName(model.kind), head, Plural(*model.inputs, "input"),
             Plural(*model.outputs, "output"), Plural(layout.parameters(), "parameter"),
             Plural(layout.parameters() * static_cast<int64_t>(sizeof(float)), "byte"));
  PrintTensors(layout);
}

std::string SourceText(const DataSourceConfig& source, const DataSet* set) {
  if (set == nullptr) return "none";
  const std::string rows = set->rows() ? Plural(*set->rows(), "row") : "rows without end";
  if (source.format != DataFormat::kSynthetic) return fmt::format("{} of {}", rows, PathText(source));
  return fmt::format("{}, synthetic {}", rows, source.name == SyntheticName::kLinear ? "linear" : "digits");
}

void PrintData(const DataConfig& data, const LoadedData& loaded) {
  fmt::print("data:\n  train: {}", SourceText(data.train, loaded.train.get()));
  if (const int64_t held_out = HeldOutRows(data, loaded.train->rows()); held_out > 0) {
    const bool first = data.validation_by == HeldOutBy::kFirst;
    fmt::print(", of which {}{} are held out{}", first ? "the first " : "", held_out,
               first                                          ? ""
               : data.validation_by == HeldOutBy::kStratified ? ", drawn by data.seed of each class"
                                                              : ", drawn by data.seed");
  }
  fmt::print("\n  test: {}\n", SourceText(data.test, loaded.test.get()));
  if (!loaded.form.features.empty()) fmt::print("  {}\n", FeatureNamesText(loaded.form));
  if (!loaded.form.classes.empty()) fmt::print("  {}\n", ClassNamesText(loaded.form.classes));
  if (!data.offset.empty()) {
    fmt::print("  offset: {} is added to the output of its row\n", data.train.format == DataFormat::kVw
                                                                       ? "the initial prediction"
                                                                       : Shown(ColumnNameIn(data.offset)));
  }
  const PassFacts* const facts = loaded.train->facts();
  if (facts != nullptr && !facts->why_parsed.empty()) {
    fmt::print("  a run parses all rows before its first step: {}\n", facts->why_parsed);
  }
  if (data.split == Split::kFeed) fmt::print("  only worker 0 needs it: it sends the others their batches\n");
}

void PrintLength(const Config& config, const DataShape& shape, std::optional<int64_t> steps,
                 int64_t auto_decay) {
  std::string epochs;
  if (config.train.epochs && shape.rows) {
    epochs = fmt::format(", {} per worker", Plural(*config.train.epochs, "epoch"));
  }
  const int64_t devices = config.device.towers();
  const std::string where = devices == 1 ? "" : fmt::format(" on each of {} devices", devices);
  const std::string by_steps = steps ? fmt::format(", ends at global step {}", *steps) : std::string();
  const std::string by_time = config.train.max_secs
                                  ? fmt::format(", ends after {} s of training", *config.train.max_secs)
                                  : std::string();
  std::string decay;
  for (const auto& [key, optimizer] : OptimizersOf(config.train)) {
    const ScheduleConfig& schedule = optimizer.schedule;
    if (schedule.kind == ScheduleKind::kConstant) continue;
    decay = fmt::format(", decay_steps {}",
                        schedule.decay_steps == kAutoDecay ? auto_decay : schedule.decay_steps);
  }
  fmt::print("run: batches of {}{}{}{}{}{}\n", config.train.batch_size, where, epochs, by_steps, by_time,
             decay);
}

Json TextOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json SourceJson(const DataSourceConfig& source, const DataSet* set) {
  if (set == nullptr) return nullptr;
  return {{"source", SourceText(source, set)}, {"rows", set->rows() ? Json(*set->rows()) : Json(nullptr)}};
}

Json DataJson(const DataConfig& data, const LoadedData& loaded) {
  return {{"train", SourceJson(data.train, loaded.train.get())},
          {"held_out_rows", HeldOutRows(data, loaded.train->rows())},
          {"test", SourceJson(data.test, loaded.test.get())},
          {"offset", TextOrNull(data.offset)},
          {"features", loaded.form.features},
          {"classes", loaded.form.classes}};
}

Json ModelJson(const Config& config, const Layout& layout) {
  Json ps = Json::array();
  for (size_t i = 0; i < layout.ps.size(); ++i) {
    Json tensors = Json::array();
    for (const Segment& segment : layout.SegmentsOf(static_cast<int>(i))) {
      tensors.push_back(layout.RowsText(segment));
    }
    ps.push_back({{"parameters", layout.ps[i].size()}, {"tensors", tensors}});
  }
  const ModelConfig& model = config.model;
  return {{"kind", KindName(model.kind)},
          {"inputs", layout.table && layout.table->hashed() ? Json(nullptr) : Json(*model.inputs)},
          {"outputs", *model.outputs},
          {"parameters", layout.parameters()},
          {"table", layout.table ? Json(TableText(config, *layout.table)) : Json(nullptr)},
          {"ps", ps}};
}

Json LengthJson(const Config& config, std::optional<int64_t> steps) {
  return {{"batch_size", config.train.batch_size},
          {"epochs", config.train.epochs ? Json(*config.train.epochs) : Json(nullptr)},
          {"steps", steps ? Json(*steps) : Json(nullptr)},
          {"max_secs", config.train.max_secs ? Json(*config.train.max_secs) : Json(nullptr)}};
}

// Checks the keys that are on this machine. Returns a line for the user; empty: the run has no key files.
std::string CheckKeys(const Config& config) {
  const std::string& path = config.security.keys;
  if (path.empty() || path == kAutoKeys) return "";
  const KeyDirectory keys(path, config.cluster);
  if (access(keys.ListPath().c_str(), F_OK) != 0) {
    return fmt::format("keys: {}: {} here; the tasks need it on their machines (dtrain keygen)",
                       keys.ListPath(), ErrnoText(errno));
  }
  const std::vector<std::string> here = keys.Check();
  return fmt::format("keys: {} lists every task; secret keys here: {}", keys.ListPath(),
                     here.empty() ? "none" : fmt::format("{}", fmt::join(here, ", ")));
}

// Checks what each task would check at its start: whether a ps may listen, whether a worker has data.
void CheckTasks(const Config& config, const LoadedData& loaded) {
  for (size_t i = 0; i < config.cluster.ps.size(); ++i) {
    ListenAddress(config, {Role::kPs, static_cast<int>(i)});
  }
  const int workers = static_cast<int>(config.cluster.worker.size());
  for (int i = 0; i < workers; ++i) MakeBatchSource(config, loaded.train, i, workers);
  if (!FeedsOthers(config)) return;
  ListenAddress(config, {Role::kWorker, 0});
  CheckFedBatch(config, MaxBatchRows(config, loaded.train->rows(), 0), loaded.train->inputs(),
                loaded.train->bytes().data != nullptr);
}

}  // namespace

int RunCheckCommand(const CheckArguments& arguments) {
  EndWithReader();
  LoadOptions options = SizedOptions(arguments.size);
  options.placed = !arguments.from.has_value();
  Scheduled scheduled;
  UseScheduler(arguments.from, arguments.config, &options, &scheduled);
  if (arguments.config.dump) return DumpEffectiveConfig(arguments.config, options);
  Config config = LoadConfig(arguments.config.path, arguments.config.sets, options);
  if (arguments.from) {
    RefuseInputOfMpi(EnvironmentOf(environ), arguments.from->scheduler == Scheduler::kMpi, config.data);
  }
  const bool local = NeedsLocal(arguments.size, config.cluster);
  if (local) MakeLocal(arguments.size, &config);
  CheckFilesExist(config.data);
  DataShape shape = ResolveShape(&config, Scan::kAny);
  const Layout layout = MakeLayout(config, static_cast<int>(config.cluster.ps.size()));
  WarnOfMemory(config, layout);
  CheckFits(DataNeed(EstimateDataSize(config), "dtrain check, which reads the data,"));
  const ErrorLines errors;
  const LoadedData loaded = LoadData(config, &shape.form, {}, /*checks=*/true);
  DataPlan plan;
  const std::string start = CheckResume(config, layout, loaded, errors, &plan);
  if (!shape.rows && loaded.train->rows())
    shape.rows = *loaded.train->rows() - HeldOutRows(config.data, loaded.train->rows());
  const std::optional<int64_t> steps =
      TotalSteps(config, shape.rows, static_cast<int>(config.cluster.worker.size()), plan);
  const int64_t auto_decay = AutoDecaySteps(config, steps);
  CheckTasks(config, loaded);
  if (LeadsHere(config)) CheckMetrics(config);
  const std::string keys = local ? "" : CheckKeys(config);
  std::vector<std::string> warnings = DataWarnings(config, loaded);
  const std::string of_schedule = ScheduleWarning(config.train, steps);
  if (!of_schedule.empty()) warnings.push_back(of_schedule);
  const std::string of_hosts = ReplicaHostWarning(config);
  if (!of_hosts.empty()) warnings.push_back(of_hosts);
  const bool evaluator = scheduled.assignment && !scheduled.assignment->task;
  if (evaluator) EvaluatedDirectory(config, scheduled);
  if (arguments.json) {
    const Json document = {
        {"file", arguments.config.path},
        {"this_process", scheduled.assignment ? Json(scheduled.assignment->name) : Json(nullptr)},
        {"ps", config.cluster.ps},
        {"worker", config.cluster.worker},
        {"keys", TextOrNull(keys)},
        {"model", ModelJson(config, layout)},
        {"data", DataJson(config.data, loaded)},
        {"run", LengthJson(config, steps)},
        {"start", TextOrNull(start)},
        {"warnings", warnings}};
    fmt::print("{}\n", document.dump(2));
    return 0;
  }
  for (const std::string& warning : warnings) errors.Print("warning: " + warning);
  fmt::print("{}: good\n", arguments.config.path);
  if (scheduled.assignment) PrintAssignment(config, scheduled);
  PrintTasks(config.cluster, local);
  if (!keys.empty()) fmt::print("{}\n", keys);
  PrintModel(config, layout);
  PrintData(config.data, loaded);
  PrintLength(config, shape, steps, auto_decay);
  if (!start.empty()) fmt::print("{}\n", start);
  return 0;
}

}  // namespace dtrain
