#include "trainer/task/memory_need.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

#include "base/error.h"
#include "base/names.h"
#include "gpu/ops.h"
#include "trainer/config/config.h"
#include "trainer/data/files/held_out.h"
#include "trainer/data/order.h"
#include "trainer/data/source.h"
#include "trainer/feed/feed_batch.h"
#include "trainer/model/layout.h"
#include "trainer/model/model.h"
#include "trainer/optim/optimizer.h"

namespace dtrain {
namespace {

void Lower(int64_t bytes, const std::string& source, MachineMemory* memory) {
  if (bytes <= 0 || (memory->bytes != 0 && memory->bytes <= bytes)) return;
  *memory = {bytes, source};
}

std::string Named(const std::string& source, int64_t swap) {
  return swap > 0 ? source + ", and swap" : source;
}

// A value of /proc/meminfo in bytes; 0: not there.
int64_t MemInfo(const std::string& root, const std::string& wanted) {
  std::ifstream file(root + "proc/meminfo");
  std::string key;
  int64_t kib = 0;
  for (std::string rest; file >> key >> kib; std::getline(file, rest)) {
    if (key == wanted) return kib * 1024;
  }
  return 0;
}

// `path` without `root` is the source in messages. "max" is no limit. A group's limits do not count swap.
void LowerByFile(const std::string& root, const std::string& path, MachineMemory* memory) {
  std::ifstream file(root + path);
  std::string text;
  file >> text;
  int64_t bytes = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), bytes);
  const int64_t swap = MemInfo(root, "SwapTotal:");
  if (result.ec == std::errc() && bytes < INT64_MAX - swap)
    Lower(bytes + swap, Named("/" + path, swap), memory);
}

// Takes the limits of `group`, such as "/user.slice/job", and of its ancestors. In a container the path may
// exist only on the host; then the mount's own limit counts.
void LowerByGroup(const std::string& root, const std::string& mount, std::string group,
                  const std::string& name, MachineMemory* memory) {
  while (!group.empty()) {
    LowerByFile(root, mount + (group == "/" ? "" : group) + "/" + name, memory);
    group.erase(group == "/" ? 0 : std::max<size_t>(group.rfind('/'), 1));
  }
}

// A line is "number:controllers:group"; version 2 has no controllers.
void LowerByGroups(const std::string& root, MachineMemory* memory) {
  std::ifstream file(root + "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos || line.compare(second + 1, 1, "/") != 0) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") LowerByGroup(root, "sys/fs/cgroup", group, "memory.max", memory);
    if (controllers.find(",memory,") != std::string::npos) {
      LowerByGroup(root, "sys/fs/cgroup/memory", group, "memory.limit_in_bytes", memory);
    }
  }
}

}  // namespace

MachineMemory ReadMachineMemory(const std::string& root) {
  MachineMemory memory;
  const int64_t swap = MemInfo(root, "SwapTotal:"), total = MemInfo(root, "MemTotal:");
  if (total > 0) Lower(total + swap, Named("MemTotal of /proc/meminfo", swap), &memory);
  LowerByGroups(root, &memory);
  return memory;
}

std::string BytesText(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < std::size(units); ++unit) bytes /= 1024;
  return fmt::format(unit == 0 ? "{:.0f} {}" : "{:.1f} {}", bytes, units[unit]);
}

namespace {

int64_t RowValues(const Config& config, const TableLayout& table) {
  return table.width() * static_cast<int64_t>(1 + SlotNames(config).size());
}

constexpr const char* kSmallerModel = "Use a smaller model";
constexpr const char* kSmallerBatch = "Lower train.batch_size";
constexpr const char* kLessData = "Use less data";

double BytesOfFloats(int64_t values) { return 4.0 * static_cast<double>(values); }

double Product(int64_t a, int64_t b) { return static_cast<double>(a) * static_cast<double>(b); }

// The features of a batch as floats; 0 if the first layer reads them as bytes, or if they are sparse and few.
double InputBytes(const Config& config, const DataSize& data, int64_t rows) {
  if (UsesTable(config)) return 0;
  const ModelConfig& model = config.model;
  const int64_t first_outputs = model.kind == ModelKind::kMlp ? model.hidden.front() : *model.outputs;
  if (data.as_bytes && gpu::BytesAreFaster(gpu::Stream(), rows, first_outputs)) return 0;
  return 4 * Product(rows, *model.inputs);
}

// 4 bytes per row, once for an epoch.
double OrderBytes(const Config& config, const DataSize& data) {
  if (!config.data.shuffle) return 0;
  const int64_t all = data.train_rows.value_or(0);
  const int64_t rows = std::max<int64_t>(0, all - HeldOutRows(config.data, all));
  const int64_t window = WindowRows(config);
  return BytesOfFloats(window > 0 ? std::min(2 * window, rows) : rows);
}

// data.split: feed: on worker 0 the batches that it has ready for the others; on another worker those that it
// has read ahead and works on.
double FeedBytes(const Config& config, const DataSize& data, int worker) {
  if (!FeedsOthers(config)) return 0;
  const int64_t bytes =
      FedBatchBytes(MaxFedRows(config, data.train_rows), *config.model.inputs, data.as_bytes);
  const auto others = static_cast<int64_t>(config.cluster.worker.size()) - 1;
  return Product(bytes, (BatchesAhead(bytes) + 1) * (worker == 0 ? others : 1));
}

void Add(const MemoryNeed& need, MemoryNeed* sum) {
  for (const MemoryPart& part : need.parts) {
    const auto same = std::find_if(sum->parts.begin(), sum->parts.end(),
                                   [&](const MemoryPart& other) { return other.what == part.what; });
    if (same == sum->parts.end()) {
      sum->parts.push_back(part);
    } else {
      same->bytes += part.bytes;
    }
  }
}

}  // namespace

double MaxTableBytes(const Config& config, const TableLayout& table, int ps) {
  return 4 * Product(static_cast<int64_t>(table.PartOf(ps).size()), RowValues(config, table));
}

std::string TableText(const Config& config, const TableLayout& table) {
  const int64_t values = RowValues(config, table);
  const std::string slots =
      values == table.width() ? "" : fmt::format(", {} with the optimizer's slots", values);
  return fmt::format(
      "{} and the bias, {} each{}; at most {} on all ps: rows take memory when they are first written",
      Plural(table.features(), "feature"), Plural(table.width(), "value"), slots,
      BytesText(4 * Product(static_cast<int64_t>(table.rows()), values)));
}

double MemoryNeed::bytes() const {
  double sum = 0;
  for (const MemoryPart& part : parts) sum += part.bytes;
  return sum;
}

const MemoryPart& MemoryNeed::largest() const {
  return *std::max_element(parts.begin(), parts.end(),
                           [](const MemoryPart& a, const MemoryPart& b) { return a.bytes < b.bytes; });
}

MemoryNeed PsNeed(const Config& config, const Layout& layout, int ps) {
  const Range range = layout.ps.at(static_cast<size_t>(ps));
  // Whole gradients wait for their norm; late ones may add to them.
  const auto workers = static_cast<int64_t>(config.cluster.worker.size());
  const int64_t held = NormOfRounds(config.train) ? config.train.aggregate.value_or(workers) : 0;
  const int64_t open = std::min(BlockCount(range), config.train.in_flight);
  const auto slots = static_cast<int64_t>(MakeOptimizer(config, 0)->Slots().size());
  MemoryNeed need{fmt::format("ps {}", ps),
                  {{"weights on ps", "Use a smaller model or more ps", BytesOfFloats(range.size())},
                   {"the optimizer's slots", "Use more ps, or sgd", Product(slots, 4 * range.size())},
                   {"gradients that wait for their norm (train.optimizer.clip_norm)",
                    "Use more ps, or clip_value", Product(held, 4 * range.size())},
                   {"spare blocks of ps", kSmallerModel, Product(open, 4 * BlockOf(range, 0).size())}}};
  if (!config.checkpoint.dir.empty()) {  // what updates change while a checkpoint is written
    need.parts.push_back(
        {"the weights and slots that a checkpoint keeps while it is written (checkpoint.dir)", "Use more ps",
         Product(1 + slots, 4 * range.size())});
  }
  if (RoundsWaitForLost(config)) {
    need.parts.push_back(
        {"the version before, on ps", "Use failure.worker_lost: continue", BytesOfFloats(range.size())});
  }
  return need;
}

MemoryNeed WorkerNeed(const Config& config, const Layout& layout, const DataSize& data, int worker) {
  const bool fed = IsFed(config, worker);
  const int64_t rows = MaxBatchRows(config, data.train_rows, data.test_rows);
  const double gradients = static_cast<double>(config.train.in_flight + 1);
  const auto towers = static_cast<double>(config.device.towers());
  return {
      fmt::format("worker {}", worker),
      {{"a worker's copy of the weights", kSmallerModel, BytesOfFloats(layout.size)},
       {"gradients (train.in_flight + 1)", kSmallerModel, gradients * BytesOfFloats(layout.size)},
       {"gradients of further devices", "Use fewer device.ids", (towers - 1) * BytesOfFloats(layout.size)},
       {"the model's values for a batch", kSmallerBatch,
        towers * 4 * Product(rows, ValuesPerRow(config.model))},
       {"the rows of a batch", kSmallerBatch,
        fed ? 0 : towers * (InputBytes(config, data, rows) + 12.0 * static_cast<double>(rows))},
       {"data", kLessData, fed ? 0 : data.bytes},
       {"the order of the rows", "Set data.shuffle: false, or use less data",
        fed ? 0 : OrderBytes(config, data) * (worker == 0 && FeedsOthers(config) ? 2 : 1)},
       {"batches on their way", kSmallerBatch, FeedBytes(config, data, worker)}}};
}

MemoryNeed DataNeed(const DataSize& data, const std::string& who) {
  return {who, {{"data", kLessData, data.bytes}}};
}

MemoryNeed ClusterNeed(const Config& config, const Layout& layout, const DataSize& data) {
  const int ps = static_cast<int>(config.cluster.ps.size());
  const int workers = static_cast<int>(config.cluster.worker.size());
  MemoryNeed sum{fmt::format("the cluster of {} ps and {}", ps, Plural(workers, "worker")), {}};
  for (int i = 0; i < ps; ++i) Add(PsNeed(config, layout, i), &sum);
  for (int i = 0; i < workers; ++i) Add(WorkerNeed(config, layout, data, i), &sum);
  return sum;
}

std::string WhyTooLarge(const MemoryNeed& need, const MachineMemory& memory) {
  if (memory.bytes == 0 || need.bytes() <= static_cast<double>(memory.bytes)) return "";
  const MemoryPart& largest = need.largest();
  return fmt::format(
      "{} needs about {} of memory, and this machine has {} ({}); most of it: {}, {}. {}, or a machine "
      "with more memory.",
      need.who, BytesText(need.bytes()), BytesText(static_cast<double>(memory.bytes)), memory.source,
      largest.what, BytesText(largest.bytes), largest.remedy);
}

void CheckFits(const MemoryNeed& need) {
  const std::string why = WhyTooLarge(need, ReadMachineMemory());
  if (!why.empty()) throw UserError("{}", why);
}

}  // namespace dtrain
