#include "trainer/task/memory_need.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/names.h"
#include "gpu/ops.h"
#include "trainer/config/config.h"
#include "trainer/feed/feed_batch.h"
#include "trainer/model/layout.h"
#include "trainer/model/model.h"
#include "trainer/optim/optimizer.h"
#include "trainer/order/held_out.h"
#include "trainer/order/order.h"
#include "trainer/sets/source.h"
#include "trainer/table/hash_store.h"
#include "trainer/table/row_optimizer.h"

namespace dtrain {
namespace {

constexpr const char* kSmallerModel = "Use a smaller model";
constexpr const char* kSmallerBatch = "Lower train.batch_size";
constexpr const char* kLessData = "Use less data";

double BytesOfFloats(int64_t values) { return 4.0 * static_cast<double>(values); }

double Product(int64_t a, int64_t b) { return static_cast<double>(a) * static_cast<double>(b); }

// The features of a batch as floats; 0 if the first layer reads them as bytes, or if they are sparse and few.
double InputBytes(const Config& config, const DataSize& data, int64_t rows) {
  if (UsesTable(config)) return 0;
  const ModelConfig& model = config.model;
  const int64_t first_outputs = HasLayers(model) ? model.hidden.front() : *model.outputs;
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
      FedBatchBytes(FedForm(config, MaxFedRows(config, data.train_rows), data.as_bytes, data.row_features),
                    *config.model.inputs);
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

namespace {

// The memory of a hash table on all ps.
double HashBytes(const Config& config, const TableLayout& table, int64_t rows,
                 HashStore::Filled filled = HashStore::Filled::kRows) {
  const auto of_range = static_cast<uint64_t>(rows / TableLayout::kHashRanges);
  return static_cast<double>(HashStore::BytesOfRanges(of_range, RowValues(config, table.width()), filled));
}

}  // namespace

double MaxTableBytes(const Config& config, const TableLayout& table, int ps) {
  if (table.hashed()) {
    if (!config.model.max_rows) return std::numeric_limits<double>::infinity();
    const double share = static_cast<double>(table.PartOf(ps).size()) / static_cast<double>(table.rows());
    return share * HashBytes(config, table, *config.model.max_rows);
  }
  return 4 * Product(static_cast<int64_t>(table.PartOf(ps).size()), RowValues(config, table.width()));
}

std::string TableText(const Config& config, const TableLayout& table) {
  const int64_t values = RowValues(config, table.width());
  const std::string slots =
      values == table.width() ? "" : fmt::format(", {} with the optimizer's slots", values);
  if (table.hashed()) {
    constexpr int64_t kMany = 10'000'000;
    const int64_t rows = config.model.max_rows.value_or(kMany);
    const double candidates = HashBytes(config, table, rows, HashStore::Filled::kCandidates);
    return fmt::format(
        "any keys and the bias, {} each{}; {} on all ps for {} rows{}{}", Plural(table.width(), "value"),
        slots, BytesText(HashBytes(config, table, rows)), rows,
        config.model.max_rows ? ", the max" : ", and no limit (model.max_rows)",
        config.model.admit_after > 1
            ? fmt::format("; {} if all are candidates (model.admit_after)", BytesText(candidates))
            : "");
  }
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

namespace {

// The records that wait at a ps for the holder of its replica, at most.
constexpr double kMaxRecordBytes = 64 << 20;

// What a replica has of a range: weights, slots, and the version before where it is kept.
double RangeBytes(const Config& config, Range range) {
  const auto slots = static_cast<int64_t>(SlotNames(config).size());
  return Product(1 + slots + (RoundsWaitForLost(config) ? 1 : 0), 4 * range.size());
}

}  // namespace

double ReplicaBytes(const Config& config, const Layout& layout, int ps) {
  const std::optional<int> of = HeldReplica(config, ps);
  if (!of) return 0;
  const double of_range = RangeBytes(config, layout.ps.at(static_cast<size_t>(*of)));
  return layout.table ? of_range + MaxTableBytes(config, *layout.table, *of) : of_range;
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
  if (layout.has_hash_table() && config.model.max_rows) {
    need.parts.push_back({"rows of the table (model.max_rows)", "Use a smaller model.max_rows or more ps",
                          MaxTableBytes(config, *layout.table, ps)});
  }
  if (!config.checkpoint.dir.empty()) {  // what updates change while a checkpoint is written
    need.parts.push_back(
        {"the weights and slots that a checkpoint keeps while it is written (checkpoint.dir)", "Use more ps",
         Product(1 + slots, 4 * range.size())});
  }
  if (RoundsWaitForLost(config)) {
    need.parts.push_back(
        {"the version before, on ps", "Use failure.worker_lost: continue", BytesOfFloats(range.size())});
  }
  const char* const remedy = "Use more ps, or failure.replicas: 0";
  if (const std::optional<int> of = HeldReplica(config, ps)) {
    const bool all = !layout.table || (layout.has_hash_table() && config.model.max_rows);
    need.parts.push_back({"the replica of another ps (failure.replicas)", remedy,
                          all ? ReplicaBytes(config, layout, ps)
                              : RangeBytes(config, layout.ps.at(static_cast<size_t>(*of)))});
  }
  if (HasReplica(config)) need.parts.push_back({"records for its replica", remedy, kMaxRecordBytes});
  return need;
}

MemoryNeed WorkerNeed(const Config& config, const Layout& layout, const DataSize& data, int worker) {
  const bool fed = IsFed(config, worker);
  const bool in_message = fed && !HasSparseRows(config.data);  // batches are read in place
  const int64_t rows = MaxBatchRows(config, data.train_rows, data.test_rows);
  const double gradients = static_cast<double>(config.train.in_flight + 1);
  const auto towers = static_cast<double>(config.device.towers());
  return {
      fmt::format("worker {}", worker),
      {{"a worker's copy of the weights", kSmallerModel, BytesOfFloats(layout.size)},
       {"the weights that are evaluated (eval.keep_best)", kSmallerModel,
        config.eval.keep_best && !layout.table ? BytesOfFloats(layout.size) : 0},
       {"gradients (train.in_flight + 1)", kSmallerModel, gradients * BytesOfFloats(layout.size)},
       {"what compressed gradients have left out (net.compress.push)", "Use net.compress.push: none",
        config.net.compress.push == net::Compression::kNone ? 0 : BytesOfFloats(layout.size)},
       {"gradients of further devices", "Use fewer device.ids", (towers - 1) * BytesOfFloats(layout.size)},
       {"the model's values for a batch", kSmallerBatch,
        towers * 4 * Product(rows, ValuesPerRow(config.model))},
       {"the rows of a batch", kSmallerBatch,
        in_message ? 0 : towers * (InputBytes(config, data, rows) + 12.0 * static_cast<double>(rows))},
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
