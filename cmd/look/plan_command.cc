#include "cmd/look/look.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/console.h"
#include "base/json.h"
#include "base/names.h"

#include "cmd/common/load_config.h"
#include "cmd/common/signal_pipe.h"

#include "trainer/config/config.h"
#include "trainer/model/layout.h"
#include "trainer/order/order.h"
#include "trainer/sets/source.h"
#include "trainer/survey/data_shape.h"
#include "trainer/table/row_store.h"
#include "trainer/task/memory_need.h"
#include "trainer/task/run_task.h"
#include "trainer/task/traffic.h"

namespace dtrain {
namespace {

constexpr int64_t kNoLimit = -1;

int64_t BytesOf(const Range& range) { return range.size() * static_cast<int64_t>(sizeof(float)); }

// Prints a row of the table, for one ps or for all.
void PrintRow(const std::string& who, int64_t bytes, double share, const Traffic& step,
              const std::optional<Traffic>& run) {
  const bool limited = bytes != kNoLimit;
  fmt::print("{:>4}  {:>14}  {:>10}  {:>5.1f} %  {:>10}  {:>10}", who,
             limited ? fmt::format("{}", bytes) : "no limit",
             limited ? BytesText(static_cast<double>(bytes)) : "", 100 * share, BytesText(step.in),
             BytesText(step.out));
  if (run) fmt::print("  {:>10}  {:>10}", BytesText(run->in), BytesText(run->out));
  fmt::print("\n");
}

// The bytes of a ps's parameters; of a table those if all its rows were written, with the optimizer's slots;
// kNoLimit: a hash table without model.max_rows.
int64_t BytesOf(const Config& config, const Layout& layout, size_t ps) {
  const int64_t of_range = BytesOf(layout.ps[ps]);
  if (!layout.table) return of_range;
  const double of_rows = MaxTableBytes(config, *layout.table, static_cast<int>(ps));
  return std::isfinite(of_rows) ? of_range + static_cast<int64_t>(of_rows) : kNoLimit;
}

std::string TensorsText(const Layout& layout) {
  return fmt::format("{}, {}", Plural(layout.parameters(), "parameter"),
                     BytesText(static_cast<double>(layout.parameters()) * sizeof(float)));
}

double ShareOf(const Layout& layout, size_t ps) {
  if (!layout.table) return static_cast<double>(layout.ps[ps].size()) / static_cast<double>(layout.size);
  const RowRange rows = layout.table->PartOf(static_cast<int64_t>(ps));
  return static_cast<double>(rows.size()) / static_cast<double>(layout.table->rows());
}

void PrintBalance(const Layout& layout) {
  const auto smaller = [](const Range& a, const Range& b) { return a.size() < b.size(); };
  const auto [min, max] = std::minmax_element(layout.ps.begin(), layout.ps.end(), smaller);
  const std::string ratio =
      min->size() == 0
          ? "a ps without parameters"
          : fmt::format("{:.3f}", static_cast<double>(max->size()) / static_cast<double>(min->size()));
  fmt::print("largest / smallest: {}\n", ratio);
}

// PsLoad: what one ps holds, and what travels to and from it.
struct PsLoad {
  int64_t bytes = 0;         // or kNoLimit
  double replica_bytes = 0;  // of the ps whose replica it holds; may be infinite
  double share = 0;          // of all parameters, or of the table's rows
  Traffic step;
  double step_us = 0;          // of its processor
  std::optional<Traffic> run;  // unset: the run's length is not known
};

void PrintPs(const Layout& layout, size_t ps, const PsLoad& load) {
  PrintRow(fmt::format("{}", ps), load.bytes, load.share, load.step, load.run);
  if (layout.table) {
    const RowRange rows = layout.table->PartOf(static_cast<int64_t>(ps));
    fmt::print("        {}[{}:{})\n", kTableName, rows.begin, rows.end);
  }
  for (const Segment& segment : layout.SegmentsOf(static_cast<int>(ps))) {
    fmt::print("        {}\n", layout.RowsText(segment));
  }
}

std::vector<PsLoad> LoadsOf(const Config& config, const Layout& layout, int workers,
                            const std::optional<int64_t>& gradients, bool local, double keys) {
  std::vector<PsLoad> loads;
  for (size_t i = 0; i < layout.ps.size(); ++i) {
    const int ps = static_cast<int>(i);
    PsLoad& load = loads.emplace_back();
    load.bytes = BytesOf(config, layout, i);
    load.replica_bytes = ReplicaBytes(config, layout, ps);
    load.share = ShareOf(layout, i);
    load.step = StepTraffic(config, layout, ps, keys);
    load.step_us = PushMicroseconds(layout, ps, local, keys);
    if (gradients) load.run = RunTraffic(config, layout, ps, workers, *gradients, keys);
  }
  return loads;
}

void PrintTable(const Layout& layout, const std::vector<PsLoad>& loads, bool knows_run) {
  fmt::print("{:>4}  {:>14}  {:>10}  {:>7}  {:>10}  {:>10}{}\n", "ps",
             layout.table ? "at most bytes" : "bytes", "", "share", "in / step", "out / step",
             knows_run ? fmt::format("  {:>10}  {:>10}", "in / run", "out / run") : "");
  PsLoad all;
  for (size_t ps = 0; ps < loads.size(); ++ps) {
    const PsLoad& load = loads[ps];
    PrintPs(layout, ps, load);
    all.bytes = load.bytes == kNoLimit || all.bytes == kNoLimit ? kNoLimit : all.bytes + load.bytes;
    all.step += load.step;
    if (load.run) (all.run ? *all.run : all.run.emplace()) += *load.run;
  }
  PrintRow("all", all.bytes, 1, all.step, all.run);
}

Json LoadJson(const Layout& layout, size_t ps, const PsLoad& load) {
  Json tensors = Json::array();
  for (const Segment& segment : layout.SegmentsOf(static_cast<int>(ps))) {
    tensors.push_back(layout.RowsText(segment));
  }
  Json json = {
      {"index", static_cast<int64_t>(ps)},
      {"bytes", load.bytes == kNoLimit ? Json(nullptr) : Json(load.bytes)},
      {"replica_bytes",
       std::isfinite(load.replica_bytes) ? Json(static_cast<int64_t>(load.replica_bytes)) : Json(nullptr)},
      {"share", load.share},
      {"in_bytes_per_step", load.step.in},
      {"out_bytes_per_step", load.step.out},
      {"processor_us_per_step", load.step_us},
      {"in_bytes_per_run", load.run ? Json(load.run->in) : Json(nullptr)},
      {"out_bytes_per_run", load.run ? Json(load.run->out) : Json(nullptr)},
      {"tensors", tensors}};
  if (layout.table) {
    const RowRange rows = layout.table->PartOf(static_cast<int64_t>(ps));
    json["first_row"] = rows.begin;
    json["rows"] = rows.size();
  }
  return json;
}

void PrintJson(const Layout& layout, const std::vector<PsLoad>& loads, int workers,
               const std::optional<int64_t>& gradients, const std::optional<BatchKeys>& keys) {
  Json ps = Json::array();
  for (size_t i = 0; i < loads.size(); ++i) ps.push_back(LoadJson(layout, i, loads[i]));
  const Json document = {{"parameters", layout.parameters()},
                         {"workers", workers},
                         {"gradients", gradients ? Json(*gradients) : Json(nullptr)},
                         {"rows_per_batch", keys ? Json(keys->keys) : Json(nullptr)},
                         {"ps", ps}};
  fmt::print("{}\n", document.dump(2));
}

// Returns a value above 0 with two digits: "8300", "0.61".
std::string TwoDigits(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
  return fmt::format("{:.12g}", std::round(value / unit) * unit);
}

// Says how many steps the processor of the busiest ps allows.
void PrintProcessorTime(const std::vector<PsLoad>& loads, int workers, bool local, bool replicas) {
  const auto less = [](const PsLoad& a, const PsLoad& b) { return a.step_us < b.step_us; };
  const auto busiest = std::max_element(loads.begin(), loads.end(), less);
  const double steps_per_s = 1e6 / busiest->step_us;
  fmt::print(
      "A step takes ps {} about {} us of a processor{}, measured {} on another machine: at most {} "
      "steps/s of all workers, {} of each of {}.\n",
      busiest - loads.begin(), TwoDigits(busiest->step_us), replicas ? " without replicas" : "",
      local ? "with dtrain local" : "over TCP", TwoDigits(steps_per_s), TwoDigits(steps_per_s / workers),
      workers);
}

// Says what the traffic of a table was reckoned from.
void PrintKeys(const Config& config, const std::optional<BatchKeys>& keys) {
  if (!keys) {
    fmt::print(
        "How many rows a batch touches is not known, as {} cannot be read here: steps have headers alone.\n",
        PathText(config.data.train));
    return;
  }
  fmt::print(
      "A step is one gradient of one worker: to each ps the gradient of the rows that its batch touches and "
      "the "
      "keys of another batch, and back the weights of those.\n"
      "A batch touches {:.0f} rows, as in the first {} of {}, on all ps alike: that is assumed of all "
      "batches.\n",
      keys->keys, Plural(keys->rows, "row"), PathText(config.data.train));
}

// Says what replicas take, which the bytes of the table do not have and the traffic does.
void PrintReplicas(const Config& config, const Layout& layout) {
  if (config.failure.replicas == 0) return;
  double all = 0, largest = -1;
  int where = 0;
  for (int ps = 0; ps < static_cast<int>(layout.ps.size()); ++ps) {
    const double bytes = ReplicaBytes(config, layout, ps);
    all += bytes;
    if (bytes > largest) where = ps;
    largest = std::max(largest, bytes);
  }
  const auto text = [](double bytes) { return std::isfinite(bytes) ? BytesText(bytes) : "no limit"; };
  fmt::print(
      "Replicas (failure.replicas) take {} more on all ps, with the optimizer's slots, of which ps {} holds "
      "{}, and up to 64 MiB on each ps for what is on its way.\nIn and out have what a ps sends to the next "
      "ps: {}.\n",
      text(all), where, text(largest),
      config.train.mode == TrainMode::kSync ? "the sum of each round" : "each gradient once more");
}

// Says what huge pages would cost and bring, where rows lie in the order in which they come. The rates are
// those of docs/performance.md, Large tables.
void PrintPages(const Config& config, const TableLayout& table) {
  if (table.hashed() || config.model.table_pages != TablePages::kAuto) return;
  double all = 0, largest = 0;
  for (int ps = 0; ps < static_cast<int>(config.cluster.ps.size()); ++ps) {
    const double bytes = MaxTableBytes(config, table, ps);
    all += bytes;
    largest = std::max(largest, bytes);
  }
  if (largest <= static_cast<double>(RowStore::kMaxWholeBytes)) return;
  fmt::print(
      "With model.table_pages: huge a row takes one access to memory in place of two (2^32 rows had 0.71 of "
      "the rate of 10,000,000, in place of 0.47), and all ps take {} as soon as one row in each 2 MiB is "
      "written.\n",
      BytesText(all));
}

// Prints the traffic of the batches that worker 0 feeds to the others, for about the largest batch.
void PrintFeed(const Config& config, int workers, const std::optional<int64_t>& gradients) {
  if (config.data.split != Split::kFeed || workers < 2) return;
  const DataSize data = EstimateDataSize(config);
  const bool counted = data.train_rows.value_or(1) > 0;
  const int64_t rows = counted ? MaxBatchRows(config, data.train_rows, 0) : config.train.batch_size;
  const Traffic batch = FeedTraffic(config, rows, data.as_bytes, data.row_features);
  fmt::print("feed: for each batch of another worker, worker 0 receives {} and sends {}", BytesText(batch.in),
             BytesText(batch.out));
  if (gradients) {
    const double batches = static_cast<double>(*gradients) * (workers - 1) / workers;
    fmt::print("; in a run about {} and {}", BytesText(batches * batch.in), BytesText(batches * batch.out));
  }
  fmt::print(".\n");
}

// Returns how many gradients all workers send; in sync, each worker sends one per round. Unset if the end of
// the epochs depends on rows that were not counted.
std::optional<int64_t> KnownGradients(const Config& config, const DataShape& shape, int workers) {
  const bool uncounted = !shape.rows && config.data.train.format != DataFormat::kSynthetic;
  if (uncounted && config.train.epochs) return std::nullopt;
  const std::optional<int64_t> steps = TotalSteps(config, shape.rows, workers);
  if (!steps || config.train.mode != TrainMode::kSync) return steps;
  return std::min(*steps, std::numeric_limits<int64_t>::max() / workers) * workers;
}

}  // namespace

void WarnOfMemory(const Config& config, const Layout& layout) {
  const MachineMemory memory = ReadMachineMemory();
  const auto warn = [&](const MemoryNeed& need) {
    const std::string why = WhyTooLarge(need, memory);
    if (!why.empty()) StandardError().Write(fmt::format("dtrain: warning: {}\n", why));
    return !why.empty();
  };
  for (size_t ps = 0; ps < layout.ps.size(); ++ps) {
    if (warn(PsNeed(config, layout, static_cast<int>(ps)))) break;
  }
  warn(WorkerNeed(config, layout, EstimateDataSize(config), 0));  // no other worker needs more
}

int RunPlanCommand(const PlanArguments& arguments) {
  EndWithReader();
  const LoadOptions options = SizedOptions(arguments.size);
  if (arguments.config.dump) return DumpEffectiveConfig(arguments.config, options);
  Config config = LoadConfig(arguments.config.path, arguments.config.sets, options);
  const bool local = NeedsLocal(arguments.size, config.cluster);
  if (local) MakeLocal(arguments.size, &config);
  const DataShape shape = ResolveShape(&config);
  const Layout layout = MakeLayout(config, static_cast<int>(config.cluster.ps.size()));
  const auto workers = static_cast<int>(config.cluster.worker.size());
  const std::optional<int64_t> gradients = KnownGradients(config, shape, workers);
  std::optional<BatchKeys> keys;
  if (layout.table) keys = MeasureBatchKeys(config);
  if (const std::string warning = ReplicaHostWarning(config); !warning.empty()) {
    StandardError().Write(fmt::format("dtrain: warning: {}\n", warning));
  }
  const std::vector<PsLoad> loads = LoadsOf(config, layout, workers, gradients, local, keys ? keys->keys : 0);
  if (arguments.json) {
    PrintJson(layout, loads, workers, gradients, keys);
    WarnOfMemory(config, layout);
    return 0;
  }
  if (layout.table) {
    fmt::print("{}: {}\n{} ps; {}\n", kTableName, TableText(config, *layout.table), layout.ps.size(),
               Plural(workers, "worker"));
    PrintTable(layout, loads, gradients.has_value());
    if (layout.size > 0) {
      fmt::print("Beside the table there are {}, which travel whole.\n", TensorsText(layout));
    }
    PrintPages(config, *layout.table);
    PrintKeys(config, keys);
  } else {
    fmt::print("{} on {} ps; {}\n", TensorsText(layout), layout.ps.size(), Plural(workers, "worker"));
    PrintTable(layout, loads, gradients.has_value());
    PrintBalance(layout);
    fmt::print(
        "A step is one gradient of one worker: to each ps its part of the gradient, and back its new "
        "weights.\n");
  }
  PrintReplicas(config, layout);
  fmt::print("In and out are messages with their headers; ZMTP, TCP and IP add their own.\n");
  if (gradients && layout.table) {
    fmt::print(
        "A run is {}, and the rows of each worker's first batch; those that it evaluates come on top.\n",
        Plural(*gradients, "step"));
  } else if (gradients) {
    fmt::print("A run is {}, and the weights that the workers pull before, after and to evaluate.\n",
               Plural(*gradients, "step"));
  } else if (!config.train.epochs) {
    fmt::print("How long a run is depends on its steps per second: train.max_secs ends it.\n");
  } else {
    fmt::print("How long a run is depends on the rows of the data: dtrain check reads them.\n");
  }
  if (keys || !layout.table) PrintProcessorTime(loads, workers, local, config.failure.replicas > 0);
  PrintFeed(config, workers, gradients);
  WarnOfMemory(config, layout);
  return 0;
}

}  // namespace dtrain
