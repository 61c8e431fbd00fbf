#include "trainer/order/positions.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <numeric>
#include <string_view>

#include "base/json.h"
#include "base/names.h"
#include "trainer/config/config.h"
#include "trainer/config/fields.h"
#include "trainer/order/held_out.h"
#include "trainer/order/order.h"

namespace dtrain {
namespace {

constexpr const char* kHeldOut = "data.validation";
constexpr const char* kSplit = "data.split";
constexpr const char* kOrderKeys[] = {kSplit,   "data.seed",       "data.shuffle",
                                      kHeldOut, "data.last_batch", "train.batch_size"};
constexpr const char* kCache = "data.cache";  // has no value where all rows lie in memory
constexpr const char* kRows = "rows of data.train";

// Returns what determines the order of the data, by its key; null: it is not known.
const std::string* OrderText(const Positions& positions, std::string_view key) {
  for (const auto& [name, text] : positions.order) {
    if (name == key) return &text;
  }
  return nullptr;
}

// Returns the number of rows; unset: not known, or without end.
std::optional<int64_t> RowsOf(const Positions& positions) {
  const std::string* const text = OrderText(positions, kRows);
  int64_t rows = 0;
  if (text == nullptr) return std::nullopt;
  if (std::from_chars(text->data(), text->data() + text->size(), rows).ec != std::errc()) return std::nullopt;
  return rows;
}

int64_t Workers(const Positions& positions) { return static_cast<int64_t>(positions.local_steps.size()); }

// Returns "3 workers of 2 devices".
std::string Size(const Positions& positions, bool with_devices) {
  const std::string devices = with_devices ? " of " + Plural(positions.devices, "device") : "";
  return Plural(Workers(positions), "worker") + devices;
}

// Whether the local steps do not tell which batches they are of: data.split is dynamic.
bool IsLeased(const Positions& positions) {
  const std::string* const split = OrderText(positions, kSplit);
  return split != nullptr && *split == "dynamic";
}

// What was taken since the plan.
TakenSteps TakenOf(const Positions& positions) {
  TakenSteps taken{positions.devices, positions.local_steps, positions.in_step, positions.chunk};
  if (IsLeased(positions)) taken = {positions.devices, {}, false, 1, positions.runs};
  return taken;
}

// Returns how the numbering of local steps has changed.
std::string Sizes(const Positions& saved, const Positions& now) {
  const bool with_devices = saved.devices != now.devices;
  if (!with_devices && Workers(saved) == Workers(now)) {
    if (IsLeased(saved) != IsLeased(now)) {
      return fmt::format("{} = {} here and {} in the checkpoint", kSplit, *OrderText(now, kSplit),
                         *OrderText(saved, kSplit));
    }
    return now.in_step ? "the workers end each epoch in step here, and did not in the checkpoint"
                       : "the workers ended each epoch in step in the checkpoint, and do not here";
  }
  return fmt::format("the checkpoint has {}, this run {}", Size(saved, with_devices),
                     Size(now, with_devices));
}

int64_t SumOfSteps(const Positions& positions) {
  return std::accumulate(positions.local_steps.begin(), positions.local_steps.end(), int64_t{0});
}

// Keeps the totals of what was done; all workers begin at local step 0.
void KeepTotals(const Positions& saved, Positions* now) {
  now->plan.earlier_steps = saved.plan.earlier_steps + SumOfSteps(saved);
  now->other_examples = saved.other_examples;
  now->other_progress = saved.other_progress;
  for (size_t worker = 0; worker < saved.examples.size(); ++worker) {
    int64_t& sum = worker < now->examples.size() ? now->examples[worker] : now->other_examples;
    sum += saved.examples[worker];
    if (worker < now->losses.size()) now->losses[worker] = saved.losses[worker];
    (worker < now->progress.size() ? now->progress[worker] : now->other_progress) += saved.progress[worker];
  }
}

// Continues split full, where each worker has an order of its own. A worker that existed continues; if its
// devices changed, at the batch where its step began. A new worker begins at the earliest epoch of any
// worker.
std::string ResumeFull(const Positions& saved, int64_t batches, Positions* now) {
  const int64_t steps_before = CeilDiv(batches, saved.devices), steps_now = CeilDiv(batches, now->devices);
  const int64_t earliest =
      *std::min_element(saved.local_steps.begin(), saved.local_steps.end()) / steps_before;
  for (size_t worker = 0; worker < now->local_steps.size(); ++worker) {
    int64_t& step = now->local_steps[worker];
    step = earliest * steps_now;
    if (worker < saved.local_steps.size()) {
      const int64_t was = saved.local_steps[worker];
      step = was / steps_before * steps_now + was % steps_before * saved.devices / now->devices;
    }
  }
  now->plan.earlier_steps -= SumOfSteps(*now);
  std::string said = Sizes(saved, *now) + ": who was there goes on in its data";
  if (Workers(*now) > Workers(saved)) said += fmt::format(", the new ones begin with epoch {}", earliest + 1);
  return said;
}

// Continues data without end. A gap that a slow worker left is not filled.
std::string ResumeEndless(const Positions& saved, Positions* now) {
  int64_t next = saved.plan.first_batch;
  for (int64_t worker = 0; worker < Workers(saved); ++worker) {
    const int64_t steps = saved.local_steps[static_cast<size_t>(worker)];
    if (steps == 0) continue;
    int64_t rounds = 0, last = 0;
    if (__builtin_mul_overflow(steps, saved.devices, &rounds) ||
        __builtin_mul_overflow(rounds - 1, Workers(saved), &last) ||
        __builtin_add_overflow(last, saved.plan.first_batch + worker + 1, &last)) {
      last = std::numeric_limits<int64_t>::max();  // overflow; refused when they are read
    }
    next = std::max(next, last);
  }
  now->plan.first_batch = next;
  return fmt::format("{}: the data go on with batch {}", Sizes(saved, *now), next + 1);
}

// Returns "epoch 3" or "epochs 3 to 5".
std::string EpochsText(const RemainingData& remaining) {
  const int64_t first = remaining.plan().epoch + 1, last = remaining.first_whole();
  return first == last ? fmt::format("epoch {}", first) : fmt::format("epochs {} to {}", first, last);
}

std::string ResumeShares(const Positions& saved, int64_t batches, Positions* now) {
  const std::optional<DataPlan> plan = Replan(saved.plan, TakenOf(saved), batches);
  if (!plan) {
    // As many epochs as the fastest worker has begun.
    const int64_t steps = *std::max_element(saved.local_steps.begin(), saved.local_steps.end());
    now->plan.epoch = saved.plan.epoch + CeilDiv(steps, CeilDiv(batches, Workers(saved) * saved.devices));
    return fmt::format(
        "{}: too many epochs were left in the middle to deal them anew; the data go on with epoch {}",
        Sizes(saved, *now), now->plan.epoch + 1);
  }
  now->plan.epoch = plan->epoch;
  now->plan.taken = plan->taken;
  const std::shared_ptr<const RemainingData> remaining = RemainingData::Of(now->plan, batches);
  if (remaining->begun().empty()) {
    return fmt::format("{}: the data go on with epoch {}", Sizes(saved, *now), plan->epoch + 1);
  }
  int64_t left = 0;
  for (const RemainingBatches& epoch : remaining->begun()) left += epoch.count();
  return fmt::format("{}: the {} left of {} {} dealt anew", Sizes(saved, *now),
                     Plural(left, "batch", "batches"), EpochsText(*remaining), left == 1 ? "is" : "are");
}

// feed and dynamic deal the same batches as shard.
std::string Meaning(const std::string& key, const std::string& text) {
  return key == kSplit && (text == "feed" || text == "dynamic") ? "shard" : text;
}

// Whether a local step has the same rows in step or not: all workers have as many steps in each epoch.
bool StepsAreEqual(const Positions& saved, int64_t batches) {
  const auto equal = [&](int64_t of_epoch) {
    const int64_t workers = Workers(saved);
    return StepsOf(of_epoch, 0, workers, saved.devices, false, saved.chunk) ==
           StepsOf(of_epoch, workers - 1, workers, saved.devices, false, saved.chunk);
  };
  const std::shared_ptr<const RemainingData> remaining = RemainingData::Of(saved.plan, batches);
  return remaining != nullptr && equal(batches) &&
         std::all_of(remaining->begun().begin(), remaining->begun().end(),
                     [&](const RemainingBatches& left) { return equal(left.count()); });
}

constexpr size_t kMaxText = 1 << 22;
constexpr const char* kLosses = "recent_losses";
constexpr const char* kProgress = "progressive_losses";
constexpr size_t kMaxLosses = 10000;  // of all workers: a manifest has no room for more of very many
constexpr int64_t kMaxNumber = int64_t{1} << 53;  // exact in every reader of JSON
constexpr int64_t kMaxDevices = 1 << 16;
constexpr const char* kRuns = "runs";
constexpr const char* kDataOfWorkers = "data_of_workers";

// A run is [epoch, first, batches].
Json ToValue(const std::vector<TakenRun>& runs) {
  Json value = Json::array();
  for (const TakenRun& run : runs) {
    Json one = Json::array();
    for (const int64_t number : {run.epoch, run.first, run.batches}) one.push_back(number);
    value.push_back(std::move(one));
  }
  return value;
}

// The member names are those of existing checkpoints.
Json ToValue(const DataPlan& plan) {
  Json taken = Json::array();
  for (const TakenSteps& steps : plan.taken) {
    Json one = {{"devices", steps.devices}};
    steps.runs.empty() ? one["local_steps"] = steps.local_steps : one[kRuns] = ToValue(steps.runs);
    if (steps.in_step) one["in_step"] = true;
    if (steps.chunk > 1) one["chunk"] = steps.chunk;
    taken.push_back(std::move(one));
  }
  return {{"epoch", plan.epoch},
          {"deals", std::move(taken)},
          {"first_batch", plan.first_batch},
          {"other_steps", plan.earlier_steps}};
}

// Reads an integer in [min, max] from `object`, which may be any value.
bool Read(const Json& object, const char* key, int64_t min, int64_t max, int64_t* out) {
  const Json* const found = object.Find(key);
  if (found == nullptr || !found->is_number_integer()) return false;
  if (found->is_number_unsigned() && found->get<uint64_t>() > static_cast<uint64_t>(max)) return false;
  *out = found->get<int64_t>();
  return *out >= min && *out <= max;
}

// Reads a list of at least one number, each 0 or more.
bool Read(const Json& object, const char* key, std::vector<int64_t>* out) {
  const Json* const found = object.Find(key);
  if (found == nullptr || !found->is_array() || found->empty()) return false;
  for (const Json& value : *found) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(kMaxNumber))
      return false;
    out->push_back(value.get<int64_t>());
  }
  return true;
}

// Reads runs; only with data.split: dynamic are there any.
bool ReadRuns(const Json& object, std::vector<TakenRun>* out) {
  const Json* const found = object.Find(kRuns);
  if (found == nullptr) return true;
  if (!found->is_array() || found->empty()) return false;
  for (const Json& one : *found) {
    int64_t numbers[3] = {};
    if (!one.is_array() || one.size() != std::size(numbers)) return false;
    for (size_t i = 0; i < std::size(numbers); ++i) {
      if (!one.at(i).is_number_unsigned() || one.at(i).get<uint64_t>() > static_cast<uint64_t>(kMaxNumber))
        return false;
      numbers[i] = one.at(i).get<int64_t>();
    }
    if (numbers[2] == 0) return false;
    out->push_back({numbers[0], numbers[1], numbers[2]});
  }
  return true;
}

bool ReadDevices(const Json& object, int64_t* out) { return Read(object, "devices", 1, kMaxDevices, out); }

// Reads whether epochs end in step; checkpoints in which they do not leave it out.
bool ReadFlag(const Json& object, const char* key, bool* out) {
  const Json* const found = object.Find(key);
  if (found == nullptr) return true;
  if (!found->is_boolean()) return false;
  *out = found->get<bool>();
  return true;
}

// Reads an integer that some checkpoints leave out.
bool ReadIfThere(const Json& object, const char* key, int64_t min, int64_t max, int64_t* out) {
  return object.Find(key) == nullptr || Read(object, key, min, max, out);
}

// Reads the batches of a turn; checkpoints in which it is one leave it out.
bool ReadChunk(const Json& object, int64_t* out) { return ReadIfThere(object, "chunk", 1, kMaxNumber, out); }

bool FromValue(const Json& value, DataPlan* plan) {
  if (!Read(value, "epoch", 0, kMaxNumber, &plan->epoch) ||
      !Read(value, "first_batch", 0, kMaxNumber, &plan->first_batch) ||
      !Read(value, "other_steps", -kMaxNumber, kMaxNumber, &plan->earlier_steps)) {
    return false;
  }
  const Json* const taken = value.Find("deals");
  if (taken == nullptr || !taken->is_array()) return false;
  for (const Json& one : *taken) {
    TakenSteps steps;
    if (!ReadDevices(one, &steps.devices) || !ReadRuns(one, &steps.runs) ||
        (steps.runs.empty() && !Read(one, "local_steps", &steps.local_steps)) ||
        !ReadFlag(one, "in_step", &steps.in_step) || !ReadChunk(one, &steps.chunk)) {
      return false;
    }
    plan->taken.push_back(std::move(steps));
  }
  return true;
}

std::string BestKey(EvalMetric metric) { return std::string("best_") + MetricName(metric); }

bool FromValue(const Json& value, CountedEvaluations* counted) {
  const Json* best = nullptr;
  for (const EvalMetric metric : kEvalMetrics) {
    const Json* const found = value.Find(BestKey(metric));
    if (found == nullptr) continue;
    best = found;
    counted->metric = metric;
  }
  if (best == nullptr || !best->is_number()) return false;
  counted->best = best->get<double>();
  return Read(value, "best_step", 0, kMaxNumber, &counted->best_step) &&
         Read(value, "in_vain", 0, kMaxNumber, &counted->in_vain);
}

// Reads the losses of each of so many workers, as the bits of each; older checkpoints have none.
bool ReadLosses(const Json& object, size_t workers, std::vector<RecentLosses>* out) {
  out->resize(workers);
  const Json* const found = object.Find(kLosses);
  if (found == nullptr) return true;
  if (!found->is_array() || found->size() != workers) return false;
  for (size_t worker = 0; worker < workers; ++worker) {
    const Json& losses = found->at(worker);
    if (!losses.is_array() || losses.size() > RecentLosses::kMax) return false;
    for (const Json& one : losses) {
      if (!one.is_number_unsigned() || one.get<uint64_t>() > std::numeric_limits<uint32_t>::max())
        return false;
      const auto bits = static_cast<uint32_t>(one.get<uint64_t>());
      float loss = 0;
      std::memcpy(&loss, &bits, sizeof(loss));
      (*out)[worker].Add(loss);
    }
  }
  return true;
}

bool ReadDataOfWorkers(const Json& object, size_t workers, std::vector<DataFingerprint>* out) {
  const Json* const found = object.Find(kDataOfWorkers);
  if (found == nullptr) return true;
  if (!found->is_array() || found->size() != workers) return false;
  for (const Json& one : *found) {
    const auto known = [](const Json& number) { return number.is_number_unsigned(); };
    if (!one.is_array() || one.size() != 3 || !std::all_of(one.begin(), one.end(), known)) return false;
    const auto rows = one[0].get<uint64_t>(), labels = one[1].get<uint64_t>();
    if (rows > uint64_t{kMaxNumber} || labels > std::numeric_limits<uint32_t>::max()) return false;
    out->push_back({static_cast<int64_t>(rows), static_cast<uint32_t>(labels), one[2].get<uint64_t>()});
  }
  return true;
}

Json ToValue(const std::vector<DataFingerprint>& of_workers) {
  Json value = Json::array();
  for (const DataFingerprint& of : of_workers) value.push_back({of.rows, of.labels, of.features});
  return value;
}

Json ToValue(const std::vector<RecentLosses>& losses) {
  Json value = Json::array();
  for (const RecentLosses& of_worker : losses) {
    Json one = Json::array();
    for (const float loss : of_worker.Latest(kMaxLosses / losses.size())) {
      uint32_t bits = 0;
      std::memcpy(&bits, &loss, sizeof(bits));
      one.push_back(bits);
    }
    value.push_back(std::move(one));
  }
  return value;
}

// [rows, weight, loss], where null is a sum that is not finite.
Json ToValue(const LossSums& sums) {
  Json value = Json::array();
  value.push_back(sums.rows);
  for (const double sum : {sums.weight, sums.loss}) {
    value.push_back(std::isfinite(sum) ? Json(sum) : Json(nullptr));
  }
  return value;
}

bool FromValue(const Json& value, LossSums* sums) {
  if (!value.is_array() || value.size() != 3 || !value.at(0).is_number_unsigned()) return false;
  if (value.at(0).get<uint64_t>() > static_cast<uint64_t>(kMaxNumber)) return false;
  sums->rows = value.at(0).get<int64_t>();
  for (const size_t at : {1, 2}) {
    double& sum = at == 1 ? sums->weight : sums->loss;
    if (!value.at(at).is_number() && !value.at(at).is_null()) return false;
    sum = value.at(at).is_number() ? value.at(at).get<double>() : std::nan("");
  }
  return !(sums->weight < 0);
}

// Reads the sums of each of so many workers, and behind them those of the others; where hooks.progressive
// was not set there are none.
bool ReadProgress(const Json& object, size_t workers, Positions* positions) {
  positions->progress.resize(workers);
  const Json* const found = object.Find(kProgress);
  if (found == nullptr) return true;
  if (!found->is_array() || found->size() != workers + 1) return false;
  for (size_t i = 0; i < workers; ++i) {
    if (!FromValue(found->at(i), &positions->progress[i])) return false;
  }
  return FromValue(found->at(workers), &positions->other_progress);
}

Json ProgressValue(const Positions& positions) {
  Json value = Json::array();
  for (const LossSums& sums : positions.progress) value.push_back(ToValue(sums));
  value.push_back(ToValue(positions.other_progress));
  return value;
}

bool AnyProgress(const Positions& positions) {
  const auto any = [](const LossSums& sums) { return sums.rows > 0; };
  return any(positions.other_progress) ||
         std::any_of(positions.progress.begin(), positions.progress.end(), any);
}

bool FromValue(const Json& value, Positions* positions) {
  if (!Read(value, "local_steps", &positions->local_steps) ||
      !Read(value, "examples", &positions->examples) ||
      positions->examples.size() != positions->local_steps.size() ||
      !ReadLosses(value, positions->local_steps.size(), &positions->losses) ||
      !ReadProgress(value, positions->local_steps.size(), positions) ||
      !Read(value, "other_examples", 0, kMaxNumber, &positions->other_examples) ||
      !ReadDevices(value, &positions->devices) || !ReadFlag(value, "in_step", &positions->in_step) ||
      !ReadFlag(value, "disturbed", &positions->disturbed) || !ReadChunk(value, &positions->chunk) ||
      !ReadRuns(value, &positions->runs) ||
      !ReadDataOfWorkers(value, positions->local_steps.size(), &positions->of_workers)) {
    return false;
  }
  const Json *const dealt = value.Find("dealt"), *const order = value.Find("order");
  if (dealt == nullptr || !FromValue(*dealt, &positions->plan)) return false;
  if (order == nullptr || !order->is_object()) return false;
  for (const auto& [key, text] : order->items()) {
    if (!text.is_string()) return false;
    positions->order.emplace_back(key, text.get<std::string>());
  }
  int64_t labels = -1, features = 0;
  if (!ReadIfThere(value, "labels", 0, UINT32_MAX, &labels) ||
      !ReadIfThere(value, "features", 0, INT64_MAX, &features)) {
    return false;
  }
  if (labels >= 0) positions->labels = static_cast<uint32_t>(labels);
  positions->features = static_cast<uint64_t>(features);
  const Json* const evaluations = value.Find("evaluations");
  return evaluations == nullptr || FromValue(*evaluations, &positions->evaluations.emplace());
}

template <typename T>
bool FromText(const std::string& text, T* out) {
  if (text.size() > kMaxText) return false;
  const Json value = Json::Parse(text);
  T read;
  if (!FromValue(value, &read)) return false;
  *out = std::move(read);
  return true;
}

}  // namespace

Positions StartOfData(const Config& config, std::optional<int64_t> train_rows) {
  Positions positions;
  positions.local_steps.resize(config.cluster.worker.size());
  positions.examples.resize(config.cluster.worker.size());
  positions.losses.resize(config.cluster.worker.size());
  positions.progress.resize(config.cluster.worker.size());
  positions.devices = config.device.towers();
  positions.in_step = EndsInStep(config) && train_rows;
  const auto add = [&](const char* key) {
    const Field& field = *FindField(key);
    positions.order.emplace_back(key, ValueText(field, field.get(config)));
  };
  for (const char* key : kOrderKeys) {
    add(key);
    // Part of the same entry, so that older checkpoints, which do not know the key, stay equal.
    const HeldOutBy by = config.data.validation_by;
    if (std::string_view(key) == kHeldOut && by != HeldOutBy::kFirst) {
      positions.order.back().second += by == HeldOutBy::kSeed ? " by seed" : " stratified";
    }
  }
  if (WindowRows(config) > 0) {
    for (const char* key : {kCache, "data.shuffle_rows"}) add(key);
    // Earlier builds drew the blocks of a window from anywhere.
    if (train_rows && config.data.shuffle && *train_rows > WindowRows(config)) {
      positions.order.back().second += " of all stretches of the data";
    }
    const int64_t workers = Workers(positions);
    if (train_rows) positions.chunk = OrderSpecOf(config, *train_rows, 0, static_cast<int>(workers)).chunk;
  }
  positions.order.emplace_back(kRows, train_rows ? fmt::format("{}", *train_rows) : "without end");
  return positions;
}

bool HasOtherHoldOut(const Positions& saved, const Positions& now) {
  const auto of = [](const Positions& positions, const char* key) {
    const std::string* const text = OrderText(positions, key);
    return text == nullptr ? "" : *text;
  };
  const std::string then = of(saved, kHeldOut), here = of(now, kHeldOut);
  const bool anywhere = (then + here).find(" by seed") != std::string::npos ||
                        (then + here).find(" stratified") != std::string::npos;
  return anywhere && (then != here || of(saved, "data.seed") != of(now, "data.seed"));
}

std::string OtherData(const Positions& saved, const Positions& now) {
  const std::string *const then = OrderText(saved, kRows), *const here = OrderText(now, kRows);
  if (then != nullptr && here != nullptr && *then != *here) {
    return fmt::format("data.train has {} rows here and had {} there", *here, *then);
  }
  if (!saved.labels || !now.labels) return "";
  if (HasOtherLabels(*saved.labels, *now.labels))
    return "the rows of data.train have other labels here than there";
  return HasOtherFeatures(saved.features, now.features)
             ? "the rows of data.train have other features here than there"
             : "";
}

DataFingerprint FingerprintIn(const Positions& saved, size_t worker) {
  if (worker < saved.of_workers.size()) return saved.of_workers[worker];
  if (!saved.labels || !saved.of_workers.empty()) return {};
  return {RowsOf(saved).value_or(0), *saved.labels, saved.features};
}

bool AllEpochsTaken(const Positions& saved, const Config& config) {
  const std::optional<int64_t> rows = RowsOf(saved);
  if (!config.train.epochs || !rows || *rows <= HeldOutRows(config.data, rows)) return false;
  if (IsLeased(saved)) {
    const int64_t batches = BatchesPerEpoch(OrderSpecOf(config, *rows, 0, 1));
    const std::optional<DataPlan> plan = Replan(saved.plan, TakenOf(saved), batches);
    return plan && plan->epoch >= *config.train.epochs;
  }
  for (size_t worker = 0; worker < saved.local_steps.size(); ++worker) {
    OrderSpec spec = OrderSpecOf(config, *rows, static_cast<int>(worker), static_cast<int>(Workers(saved)));
    spec.devices = saved.devices;
    spec.in_step = saved.in_step;
    spec.chunk = saved.chunk;
    if (spec.split == Split::kDynamic) spec.split = Split::kShard;  // as the checkpoint's steps were dealt
    StepRows order(spec);
    if (order.steps_per_epoch() == 0) continue;
    order.Follow(RemainingData::Of(saved.plan, BatchesPerEpoch(spec)));
    if (order.PlaceOf(saved.local_steps[worker]).epoch < *config.train.epochs) return false;
  }
  return true;
}

std::string PositionsDiffer(const Positions& saved, const Positions& now) {
  for (const auto& [key, text] : now.order) {
    const std::string* const was = OrderText(saved, key);
    if (was != nullptr && Meaning(key, *was) == Meaning(key, text)) continue;
    const char* const unsaid = key == kCache ? "memory" : "not known";
    return fmt::format("{} = {} here and {} in the checkpoint", key, text, was == nullptr ? unsaid : *was);
  }
  for (const auto& [key, text] : saved.order) {
    if (OrderText(now, key) != nullptr) continue;
    if (key == kCache) return fmt::format("{} = memory here and {} in the checkpoint", key, text);
    return fmt::format("{} = {} in the checkpoint, and not here", key, text);
  }
  return "";
}

Resumption Resume(const Positions& saved, const Config& config, std::optional<int64_t> train_rows) {
  Positions now = StartOfData(config, train_rows);
  const std::string other = PositionsDiffer(saved, now);
  const int64_t batches = train_rows ? BatchesPerEpoch(OrderSpecOf(config, *train_rows, 0, 1)) : 0;
  const bool by_steps = !IsLeased(saved) && !IsLeased(now);
  if (other.empty() && by_steps && Workers(saved) == Workers(now) && saved.devices == now.devices &&
      saved.chunk == now.chunk && (saved.in_step == now.in_step || StepsAreEqual(saved, batches))) {
    Positions same = saved;
    same.in_step = now.in_step;
    return {same, ""};
  }
  KeepTotals(saved, &now);
  now.evaluations = saved.evaluations;
  if (!other.empty()) return {now, other + ": the workers begin anew with the first epoch of the data"};
  std::string said;
  if (!train_rows) {
    said = ResumeEndless(saved, &now);
  } else if (batches > 0) {  // if no worker has a batch, that is reported elsewhere
    said = config.data.split == Split::kFull ? ResumeFull(saved, batches, &now)
                                             : ResumeShares(saved, batches, &now);
  }
  if (IsLeased(saved) && IsLeased(now) && Workers(saved) == Workers(now)) {
    // The leases tell which batches come, and the workers count their steps on.
    now.local_steps = saved.local_steps;
    if (saved.devices == now.devices) said.clear();
  }
  return {now, said};
}

namespace {

// Returns the local steps of `now` that need not be made any more until the epochs are over. Those behind the
// last epoch are none of these, and in sync the run ends with the worker that has the most rounds to go.
int64_t StepsThatCount(const Positions& now, const Config& config, std::optional<int64_t> train_rows) {
  const int64_t batches = train_rows ? BatchesPerEpoch(OrderSpecOf(config, *train_rows, 0, 1)) : 0;
  const auto remaining = RemainingData::Of(now.plan, batches);
  if (config.data.split == Split::kDynamic) return 0;  // `now.plan` has them
  if (!config.train.epochs || batches <= 0 || remaining == nullptr) return SumOfSteps(now);
  const bool full = config.data.split == Split::kFull;  // every worker has all batches
  const int64_t epochs = *config.train.epochs, first_whole = remaining->first_whole();
  int64_t sum = 0, min = std::numeric_limits<int64_t>::max();
  for (int64_t worker = 0; worker < Workers(now); ++worker) {
    const auto steps_of = [&](int64_t of_epoch) {
      return StepsOf(of_epoch, full ? 0 : worker, full ? 1 : Workers(now), now.devices, now.in_step,
                     now.chunk);
    };
    const int64_t steps = now.local_steps[static_cast<size_t>(worker)];
    int64_t behind = steps;  // the epochs so far
    for (int64_t epoch = now.plan.epoch; epoch < std::min(epochs, first_whole); ++epoch)
      behind -= std::min(behind, steps_of(remaining->OfEpoch(epoch)->count()));
    const int64_t whole = epochs - first_whole, one = steps_of(batches);
    if (whole > 0) behind -= one > behind / whole ? behind : one * whole;
    sum += steps - behind;
    min = std::min(min, steps - behind);
  }
  return config.train.mode == TrainMode::kSync ? min * Workers(now) : sum;
}

}  // namespace

Resumption ResumeAt(int64_t step, const Positions& saved, const Config& config,
                    std::optional<int64_t> train_rows) {
  Resumption resumption = Resume(saved, config, train_rows);
  Positions& now = resumption.positions;
  const int64_t together = config.train.mode == TrainMode::kSync ? Workers(now) : 1;  // local steps in a step
  now.plan.earlier_steps =
      std::min(step, kMaxNumber / together) * together - StepsThatCount(now, config, train_rows);
  return resumption;
}

std::string ToJson(const DataPlan& plan) { return ToValue(plan).dump(); }
bool FromJson(const std::string& text, DataPlan* plan) { return FromText(text, plan); }

std::string ToJson(const Positions& positions) {
  Json order = Json::object();
  for (const auto& [key, text] : positions.order) order[key] = text;
  Json value = {{"local_steps", positions.local_steps},       {"examples", positions.examples},
                {"other_examples", positions.other_examples}, {"devices", positions.devices},
                {"dealt", ToValue(positions.plan)},           {"order", std::move(order)},
                {kLosses, ToValue(positions.losses)}};
  if (AnyProgress(positions)) value[kProgress] = ProgressValue(positions);
  if (positions.labels) value["labels"] = *positions.labels;
  if (positions.features != 0) value["features"] = positions.features;
  if (!positions.of_workers.empty()) value[kDataOfWorkers] = ToValue(positions.of_workers);
  if (positions.in_step) value["in_step"] = true;
  if (positions.disturbed) value["disturbed"] = true;
  if (positions.chunk > 1) value["chunk"] = positions.chunk;
  if (!positions.runs.empty()) value[kRuns] = ToValue(positions.runs);
  if (const std::optional<CountedEvaluations>& counted = positions.evaluations) {
    value["evaluations"] = {{BestKey(counted->metric), counted->best},
                            {"best_step", counted->best_step},
                            {"in_vain", counted->in_vain}};
  }
  return value.dump();
}
bool FromJson(const std::string& text, Positions* positions) { return FromText(text, positions); }

}  // namespace dtrain
