#include "trainer/order/order.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "base/names.h"
#include "trainer/config/config.h"
#include "trainer/order/held_out.h"

namespace dtrain {
namespace {

// Returns the steps of all workers in one epoch.
int64_t StepsPerEpoch(int64_t batches, const OrderSpec& spec) {
  const int64_t workers = spec.workers;
  if (spec.split == Split::kFull) return workers * CeilDiv(batches, spec.devices);
  if (spec.split == Split::kDynamic) return CeilDiv(batches, spec.devices);
  const auto steps = [&](int64_t worker) {
    return StepsOf(batches, worker, workers, spec.devices, spec.in_step, spec.chunk);
  };
  // Of the last round of turns the first workers have a whole one, and the next one what is left.
  const int64_t with_more = batches / spec.chunk % workers;
  return with_more * steps(0) + steps(with_more) + (workers - with_more - 1) * steps(workers - 1);
}

// Returns the steps of all workers in epochs before `epochs` that are not whole, plus the steps taken before
// these were dealt.
int64_t PartialSteps(const RemainingData& remaining, const OrderSpec& spec, int64_t epochs) {
  int64_t steps = remaining.plan().earlier_steps;
  for (int64_t epoch = remaining.plan().epoch; epoch < std::min(epochs, remaining.first_whole()); ++epoch) {
    steps += StepsPerEpoch(remaining.OfEpoch(epoch)->count(), spec);
  }
  return steps;
}

// The largest row of data without end, far below the limit of a row number.
constexpr int64_t kMaxRow = std::numeric_limits<int64_t>::max() / 4;

// Returns "3 workers of 2 devices need".
std::string NeedText(const OrderSpec& spec) {
  const std::string devices = spec.devices == 1 ? "" : fmt::format(" of {} devices", spec.devices);
  return spec.workers == 1 ? fmt::format("1 worker{} needs", devices)
                           : fmt::format("{} workers{} need", spec.workers, devices);
}

// Every device must get a batch: one that idles unnoticed would be a run of another size.
void CheckEnough(const Config& config, const OrderSpec& spec) {
  if (spec.rows <= 0) {
    throw UserError("data.validation = {}; must be below the number of training rows, {}. Hold out fewer.",
                    HeldOutText(config.data), spec.rows + spec.first_row);
  }
  if (spec.shuffle && spec.window == 0 && spec.rows > UINT32_MAX) {
    throw UserError("data.train has {} rows; a shuffled set may have at most {}. Set data.shuffle: false.",
                    spec.rows, UINT32_MAX);
  }
  const int64_t batches = BatchesPerEpoch(spec);
  const bool each = spec.split != Split::kFull && spec.split != Split::kDynamic;  // each must have one
  const int64_t needed = (each ? spec.workers : 1) * spec.devices;
  if (batches < needed) {
    throw UserError(
        "train.batch_size = {}; makes {} of {}, and {} at least {}. Use a smaller batch or fewer {}.",
        spec.batch_size, Plural(batches, "batch", "batches"), Plural(spec.rows, "training row"),
        NeedText(spec), needed, spec.devices == 1 ? "workers" : "device.ids");
  }
}

}  // namespace

bool EndsInStep(const Config& config) {
  const auto workers = static_cast<int64_t>(config.cluster.worker.size());
  return config.train.mode == TrainMode::kSync && config.train.aggregate.value_or(workers) == workers &&
         config.data.split != Split::kFull && config.data.split != Split::kDynamic;
}

int64_t WindowRows(const Config& config) {
  constexpr int64_t kMaxBytes = 16 << 20;
  const DataConfig& data = config.data;
  if (data.cache != DataCache::kNone && data.cache != DataCache::kFile) return 0;
  const auto row_bytes =
      static_cast<int64_t>(sizeof(float)) * std::max<int64_t>(1, config.model.inputs.value_or(1));
  // How long sparse rows are nobody knows before they are read.
  const int64_t max = HasSparseRows(data) ? data.shuffle_rows : kMaxBytes / row_bytes;
  const int64_t rows = std::min(data.shuffle_rows, max);
  return std::max<int64_t>(1, rows / config.train.batch_size) * config.train.batch_size;
}

namespace {

// Returns the batches of a turn: a window, so that each is read by one worker, but so few that the workers
// have about equally many.
int64_t ChunkOf(const Config& config, const OrderSpec& spec) {
  if (spec.window > 0 && spec.split == Split::kDynamic) return spec.window / spec.batch_size;
  constexpr int64_t kTurns = 4;  // of each worker in an epoch, at least
  const bool uneven = config.train.mode == TrainMode::kSync && !spec.in_step;  // rounds would wait for nobody
  if (spec.window == 0 || spec.split == Split::kFull || uneven) return 1;
  const int64_t max = BatchesPerEpoch(spec) / (kTurns * spec.workers);
  return std::max<int64_t>(1, std::min(max, spec.window / spec.batch_size));
}

// The spec for the rows that are trained on, behind `first_row`.
OrderSpec SpecOfRows(const Config& config, int64_t first_row, int64_t rows, int worker, int workers) {
  OrderSpec spec;
  spec.first_row = first_row;
  spec.rows = rows;
  spec.batch_size = config.train.batch_size;
  spec.drop_short = config.data.last_batch == LastBatch::kDrop;
  spec.shuffle = config.data.shuffle;
  spec.split = config.data.split;
  spec.seed = config.data.seed;
  spec.worker = worker;
  spec.workers = workers;
  spec.devices = config.device.towers();
  spec.in_step = EndsInStep(config);
  spec.window = WindowRows(config);
  spec.chunk = ChunkOf(config, spec);
  return spec;
}

}  // namespace

OrderSpec OrderSpecOf(const Config& config, int64_t rows, int worker, int workers) {
  const int64_t held_out = HeldOutRows(config.data, rows);
  return SpecOfRows(config, held_out, rows - held_out, worker, workers);
}

int64_t BatchesPerEpoch(const OrderSpec& spec) {
  const int64_t whole = spec.rows / spec.batch_size;
  return whole + (!spec.drop_short && spec.rows % spec.batch_size != 0 ? 1 : 0);
}

std::optional<int64_t> TotalSteps(const Config& config, std::optional<int64_t> rows, int workers,
                                  const DataPlan& plan) {
  std::optional<int64_t> total = config.train.steps;
  if (!config.train.epochs.has_value() || !rows.has_value()) return total;
  const bool sync = config.train.mode == TrainMode::kSync;
  if (sync && config.train.aggregate.value_or(workers) < workers) return total;
  const OrderSpec spec = SpecOfRows(config, 0, *rows, 0, workers);
  // In sync, one step of all workers: as many as the worker with the most has.
  const int64_t together = sync ? workers : 1;
  const auto rounds = [&](int64_t steps) { return steps / together + (steps % together == 0 ? 0 : 1); };
  const int64_t of_epoch = rounds(StepsPerEpoch(BatchesPerEpoch(spec), spec));
  const std::shared_ptr<const RemainingData> remaining = RemainingData::Of(plan, BatchesPerEpoch(spec));
  if (remaining == nullptr) return total;  // an error of the plan is reported where it is read
  const int64_t epochs = *config.train.epochs;
  const int64_t beside = rounds(PartialSteps(*remaining, spec, epochs));
  int64_t of_whole = 0, all = 0;
  if (__builtin_mul_overflow(of_epoch, std::max<int64_t>(0, epochs - remaining->first_whole()), &of_whole) ||
      __builtin_add_overflow(of_whole, beside, &all)) {
    all = std::numeric_limits<int64_t>::max();  // overflow: 10^9 epochs of 10^12 batches
  }
  return std::min(total.value_or(all), all);
}

std::optional<int64_t> StepsOfRun(const Config& config, std::optional<int64_t> train_rows,
                                  const DataPlan& plan) {
  if (train_rows) *train_rows -= HeldOutRows(config.data, train_rows);
  return TotalSteps(config, train_rows, static_cast<int>(config.cluster.worker.size()), plan);
}

Permutations::Rows Permutations::Of(const OrderSpec& spec, int64_t epoch) {
  std::weak_ptr<const std::vector<uint32_t>>& known = made_[epoch];
  Rows rows = known.lock();
  if (rows == nullptr) known = rows = std::make_shared<const std::vector<uint32_t>>(Make(spec, epoch));
  for (auto other = made_.begin(); other != made_.end();) {
    other = other->second.expired() ? made_.erase(other) : std::next(other);
  }
  return rows;
}

// It shuffles the identity, so that the order does not depend on earlier epochs.
std::vector<uint32_t> Permutations::Make(const OrderSpec& spec, int64_t epoch) const {
  CounterRandom random = CounterRandom(spec.seed).Stream("order").Stream(static_cast<uint64_t>(epoch));
  if (spec.split == Split::kFull) random = random.Stream(static_cast<uint64_t>(spec.worker));
  std::vector<uint32_t> rows(static_cast<size_t>(spec.rows));
  std::iota(rows.begin(), rows.end(), 0u);
  Shuffle(random, &rows, [&] {
    if (pause_) pause_();
  });
  return rows;
}

namespace {

// The spec of data.train, with enough batches for all workers.
OrderSpec CheckedSpec(const Config& config, std::optional<int64_t> rows, int worker, int workers,
                      RowBlocks blocks) {
  OrderSpec spec = OrderSpecOf(config, rows.value_or(0), worker, workers);
  if (rows) CheckEnough(config, spec);
  spec.blocks = std::move(blocks);
  spec.endless = !rows;
  return spec;
}

}  // namespace

StepRows::StepRows(const Config& config, std::optional<int64_t> rows, int worker, int workers,
                   std::shared_ptr<Permutations> permutations, RowBlocks blocks, WillNeed will_need)
    : StepRows(CheckedSpec(config, rows, worker, workers, std::move(blocks)), config.train.epochs,
               std::move(permutations), std::move(will_need)) {}

StepRows::StepRows(const OrderSpec& spec, std::optional<int64_t> epochs,
                   std::shared_ptr<Permutations> permutations, WillNeed will_need)
    : spec_(spec),
      epochs_(epochs),
      permutations_(permutations != nullptr ? std::move(permutations) : std::make_shared<Permutations>()),
      will_need_(std::move(will_need)),
      steps_(spec.endless ? 0 : StepsOfEpoch(nullptr)) {
  DT_CHECK(spec.worker >= 0 && spec.worker < spec.workers, spec.worker, spec.workers);
  DT_CHECK(spec.endless || !spec.shuffle || spec.window > 0 || spec.rows <= UINT32_MAX, spec.rows);
  if (spec.window == 0 || spec.rows <= 0) return;
  constexpr int64_t kBlockRows = 1024;
  CounterRandom random = CounterRandom(spec.seed).Stream("windows");
  if (spec.split == Split::kFull) random = random.Stream(static_cast<uint64_t>(spec.worker));
  RowBlocks blocks =
      spec.blocks != nullptr ? spec.blocks : EqualBlocks(spec.first_row + spec.rows, kBlockRows);
  windows_.emplace(std::move(blocks), spec.first_row, spec.rows, spec.window, spec.shuffle, random);
}

void StepRows::Follow(std::shared_ptr<const RemainingData> remaining) {
  remaining_ = std::move(remaining);
  begins_ = {0};
  leases_.clear();
  if (remaining_ == nullptr) return;
  for (const RemainingBatches& left : remaining_->begun()) {
    begins_.push_back(begins_.back() + StepsOfEpoch(&left));
  }
}

std::shared_ptr<const RemainingData> StepRows::RemainingOf(const DataPlan& plan) const {
  // Data without end has no epochs that could be incomplete.
  std::shared_ptr<const RemainingData> remaining =
      RemainingData::Of(plan, spec_.endless ? 0 : BatchesPerEpoch(spec_));
  if (remaining != nullptr && plan.first_batch <= kMaxRow / spec_.batch_size) return remaining;
  throw Failure(ExitCode::kInternal,
                "where the workers are in their data cannot be read: the checkpoint is not of this data");
}

const RemainingBatches* StepRows::LeftOf(int64_t epoch) const {
  return remaining_ == nullptr ? nullptr : remaining_->OfEpoch(epoch);
}

void StepRows::Take(const Lease& lease) {
  DT_CHECK(spec_.split == Split::kDynamic);
  const RemainingBatches* const left = LeftOf(lease.epoch);
  const int64_t batches = left == nullptr ? BatchesPerEpoch(spec_) : left->count();
  if (lease.step < 0 || lease.epoch < 0 || lease.first < 0 || lease.batches < 1 || lease.first >= batches ||
      lease.batches > batches - lease.first) {
    throw Failure(ExitCode::kInternal, "ps 0 leases batches that the data do not have");
  }
  while (!leases_.empty() && leases_.back().step >= lease.step) leases_.pop_back();
  if (!leases_.empty()) {
    Lease& before = leases_.back();
    const int64_t steps = lease.step - before.step;
    if (steps < before.Steps(spec_.devices)) before.batches = steps * spec_.devices;
  }
  leases_.push_back(lease);
  if (!will_need_ || leases_.size() == 1) return;
  // Where the last window of the lease before it is being read, nothing was told behind that.
  const Lease& before = leases_[leases_.size() - 2];
  const int64_t end = before.first + before.batches;
  if (before.epoch == window_epoch_ && WindowOf(before.epoch, end - 1) == window_) {
    Announce(WindowBehind(before.epoch, end));
  }
}

// Returns the lease that has the step; null: none has.
const Lease* StepRows::LeaseOf(int64_t local_step) const {
  for (const Lease& lease : leases_) {
    if (local_step >= lease.step && local_step - lease.step < lease.Steps(spec_.devices)) return &lease;
  }
  return nullptr;
}

bool StepRows::ReadLeased(int64_t local_step, gpu::Span<const int64_t>* rows) {
  // The step before this one may be the last that was returned, and its place is asked for.
  while (!leases_.empty() && local_step - leases_.front().step > leases_.front().Steps(spec_.devices)) {
    leases_.erase(leases_.begin());
  }
  const Lease* const lease = LeaseOf(local_step);
  if (lease == nullptr) return false;
  const int64_t begin = lease->first + (local_step - lease->step) * spec_.devices;
  const int64_t share = lease->first + lease->batches;
  *rows = Gather(lease->epoch, begin, std::min(share, begin + spec_.devices), share);
  return true;
}

StepPlace StepRows::PlaceOf(int64_t local_step) const {
  if (spec_.endless) return {0, local_step, 0};
  if (spec_.split == Split::kDynamic) {
    const Lease* const lease = LeaseOf(local_step);
    if (lease == nullptr) return {remaining_ == nullptr ? 0 : remaining_->plan().epoch, 0, 0};
    return {lease->epoch, local_step - lease->step, lease->Steps(spec_.devices)};
  }
  // The last epoch that begins there: an epoch in which this worker has nothing begins with the next one.
  const auto next = std::upper_bound(begins_.begin(), begins_.end(), local_step);
  const int64_t step = local_step - *std::prev(next);
  const int64_t epoch = (remaining_ == nullptr ? 0 : remaining_->plan().epoch) + (next - begins_.begin()) - 1;
  if (next != begins_.end()) return {epoch, step, *next - *std::prev(next)};
  return {epoch + step / steps_, step % steps_, steps_};
}

bool StepRows::Read(int64_t local_step, gpu::Span<const int64_t>* rows) {
  if (spec_.split == Split::kDynamic) return ReadLeased(local_step, rows);
  const StepPlace place = PlaceOf(local_step);
  if (!spec_.endless && epochs_.has_value() && place.epoch >= *epochs_) return false;
  *rows = spec_.endless ? EndlessRows(local_step) : Rows(place.epoch, place.batch);
  return true;
}

// The worker's batch b is batch b * workers + worker of the row numbers, so no row is read twice. Each device
// takes one batch.
gpu::Span<const int64_t> StepRows::EndlessRows(int64_t local_step) {
  const int64_t size = spec_.batch_size;
  const int64_t first_batch = remaining_ == nullptr ? 0 : remaining_->plan().first_batch;
  batch_rows_.resize(static_cast<size_t>(spec_.devices * size));
  for (int64_t device = 0; device < spec_.devices; ++device) {
    const int64_t batch = first_batch + (local_step * spec_.devices + device) * spec_.workers + spec_.worker;
    const auto begin = batch_rows_.begin() + device * size;
    std::iota(begin, begin + size, spec_.first_row + batch * size);
  }
  return batch_rows_;
}

// Returns how many batches of one device this worker has in an epoch with `left`; null: it is whole.
int64_t StepRows::ShareOfEpoch(const RemainingBatches* left) const {
  const int64_t batches = left == nullptr ? BatchesPerEpoch(spec_) : left->count();
  return InTurn() ? ShareOf(batches, spec_.worker, spec_.workers, spec_.chunk) : batches;
}

int64_t StepRows::StepsOfEpoch(const RemainingBatches* left) const {
  const int64_t batches = left == nullptr ? BatchesPerEpoch(spec_) : left->count();
  return InTurn() ? StepsOf(batches, spec_.worker, spec_.workers, spec_.devices, spec_.in_step, spec_.chunk)
                  : CeilDiv(batches, spec_.devices);
}

gpu::Span<const int64_t> StepRows::Rows(int64_t epoch, int64_t index) {
  const RemainingBatches* const left = LeftOf(epoch);
  const int64_t share = ShareOfEpoch(left);
  DT_CHECK(index >= 0 && index < StepsOfEpoch(left), index, share);
  return Gather(epoch, index * spec_.devices, std::min(share, (index + 1) * spec_.devices), share);
}

// Returns the rows of this worker's batches [begin, end) of those before `share`.
gpu::Span<const int64_t> StepRows::Gather(int64_t epoch, int64_t begin, int64_t end, int64_t share) {
  const RemainingBatches* const left = LeftOf(epoch);
  if (spec_.shuffle && !windows_ && epoch != epoch_) {
    permutation_ = nullptr;  // frees its memory before the next is computed
    permutation_ = permutations_->Of(spec_, epoch);
    epoch_ = epoch;
  }
  batch_rows_.clear();
  for (int64_t batch = begin; batch < end; ++batch) {
    if (windows_) AnnounceNext(epoch, batch, share);
    Append(epoch, left, batch);
  }
  return batch_rows_;
}

// Returns the number in the epoch of this worker's batch number `batch`, of one device.
int64_t StepRows::BatchAt(const RemainingBatches* left, int64_t batch) const {
  const int64_t dealt = InTurn() ? DealtBatch(batch, spec_.worker, spec_.workers, spec_.chunk) : batch;
  return left == nullptr ? dealt : left->At(dealt);
}

// Returns the window of this worker's batch number `batch`.
int64_t StepRows::WindowOf(int64_t epoch, int64_t batch) const {
  return BatchAt(LeftOf(epoch), batch) * spec_.batch_size / spec_.window;
}

// Returns the first window of the lease behind the one that ends before batch `share`; unset: it is not
// known, or of another epoch. The first window of the next epoch is not told: blocks of this one may be in
// memory.
std::optional<int64_t> StepRows::WindowBehind(int64_t epoch, int64_t share) const {
  for (size_t i = 0; i + 1 < leases_.size(); ++i) {
    const Lease &lease = leases_[i], &next = leases_[i + 1];
    if (lease.epoch != epoch || lease.first + lease.batches != share) continue;
    return next.epoch == epoch ? std::make_optional(WindowOf(epoch, next.first)) : std::nullopt;
  }
  return std::nullopt;
}

// At the first batch of a window: tells which rows come after those of this window.
void StepRows::AnnounceNext(int64_t epoch, int64_t batch, int64_t share) {
  const int64_t window = WindowOf(epoch, batch);
  if (!will_need_ || (epoch == window_epoch_ && window == window_)) return;
  window_epoch_ = epoch;
  window_ = window;
  int64_t next = batch;
  const int64_t step = InTurn() ? spec_.chunk : spec_.window / spec_.batch_size;
  do {
    next = (next / step + 1) * step;
  } while (next < share && WindowOf(epoch, next) == window);
  Announce(next < share ? WindowOf(epoch, next) : WindowBehind(epoch, share));
}

void StepRows::Announce(std::optional<int64_t> next) {
  std::vector<RowRun> runs = windows_->RunsOf(window_epoch_, window_);
  if (next) {
    for (const RowRun& run : windows_->RunsOf(window_epoch_, *next)) runs.push_back(run);
  }
  will_need_(runs);
}

// Appends the rows of this worker's batch number `batch`, of one device.
void StepRows::Append(int64_t epoch, const RemainingBatches* left, int64_t batch) {
  const int64_t begin = BatchAt(left, batch) * spec_.batch_size;
  const int64_t end = std::min(spec_.rows, begin + spec_.batch_size);
  if (windows_) {
    // A window holds whole batches.
    const gpu::Span<const int64_t> rows = windows_->Rows(epoch, begin / spec_.window);
    const int64_t* const first = rows.data + begin % spec_.window;
    batch_rows_.insert(batch_rows_.end(), first, first + (end - begin));
    return;
  }
  for (int64_t i = begin; i < end; ++i) {
    batch_rows_.push_back(spec_.first_row + (spec_.shuffle ? (*permutation_)[static_cast<size_t>(i)] : i));
  }
}

}  // namespace dtrain
