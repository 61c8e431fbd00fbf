#include "trainer/data/order.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace dtrain {

namespace {

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Steps of all workers in one epoch. Where the shares are not equal, the first workers have one batch more.
int64_t StepsInAll(int64_t batches, Split split, int64_t workers, int64_t devices) {
  if (split == Split::kFull) return workers * DivideUp(batches, devices);
  const int64_t least = batches / workers;
  const int64_t with_more = batches % workers;
  return with_more * DivideUp(least + 1, devices) + (workers - with_more) * DivideUp(least, devices);
}

}  // namespace

int64_t BatchesInAll(const OrderSpec& spec) {
  const int64_t whole = spec.rows / spec.batch_size;
  return whole + (!spec.drop_short && spec.rows % spec.batch_size != 0 ? 1 : 0);
}

std::optional<int64_t> TotalSteps(const Config& config, std::optional<int64_t> rows, int workers) {
  std::optional<int64_t> total = config.train.steps;
  if (!config.train.epochs.has_value() || !rows.has_value()) return total;
  OrderSpec spec;
  spec.rows = *rows;
  spec.batch_size = config.train.batch_size;
  spec.drop_short = config.data.last_batch == LastBatch::kDrop;
  const int64_t of_epoch = StepsInAll(BatchesInAll(spec), config.data.split, workers, config.device.towers());
  int64_t of_epochs = 0;
  if (__builtin_mul_overflow(of_epoch, *config.train.epochs, &of_epochs)) {
    of_epochs = std::numeric_limits<int64_t>::max();  // 10^9 epochs of 10^12 batches
  }
  return std::min(total.value_or(of_epochs), of_epochs);
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

// Fisher and Yates, from the identity: the order depends on no earlier epoch.
std::vector<uint32_t> Permutations::Make(const OrderSpec& spec, int64_t epoch) const {
  constexpr uint64_t kBreath = uint64_t{1} << 20;  // tens of milliseconds
  CounterRandom random = CounterRandom(spec.seed).Stream("order").Stream(static_cast<uint64_t>(epoch));
  if (spec.split == Split::kFull) random = random.Stream(static_cast<uint64_t>(spec.worker));
  std::vector<uint32_t> rows(static_cast<size_t>(spec.rows));
  std::iota(rows.begin(), rows.end(), 0u);
  for (uint64_t left = rows.size(); left > 1; --left) {
    std::swap(rows[left - 1], rows[random.Below(left, left)]);
    if (left % kBreath == 0 && breather_) breather_();
  }
  return rows;
}

BatchOrder::BatchOrder(const OrderSpec& spec, std::shared_ptr<Permutations> permutations)
    : spec_(spec),
      permutations_(permutations != nullptr ? std::move(permutations) : std::make_shared<Permutations>()),
      batches_(BatchesInAll(spec)) {
  DT_CHECK(spec.worker >= 0 && spec.worker < spec.workers, spec.worker, spec.workers);
  DT_CHECK(!spec.shuffle || spec.rows <= UINT32_MAX, spec.rows);
  if (spec.split != Split::kFull) {
    batches_ = std::max<int64_t>(0, (batches_ - spec.worker + spec.workers - 1) / spec.workers);
  }
  steps_ = DivideUp(batches_, spec.devices);
}

gpu::Span<const int64_t> BatchOrder::Rows(int64_t epoch, int64_t index) {
  DT_CHECK(index >= 0 && index < steps_, index, steps_);
  if (spec_.shuffle && epoch != epoch_) {
    permutation_ = nullptr;  // its memory is free for the next
    permutation_ = permutations_->Of(spec_, epoch);
    epoch_ = epoch;
  }
  batch_rows_.clear();
  const int64_t end = std::min(batches_, (index + 1) * spec_.devices);
  for (int64_t batch = index * spec_.devices; batch < end; ++batch) Append(batch);
  return batch_rows_;
}

// Adds the rows of this worker's batch number `batch`, of one device.
void BatchOrder::Append(int64_t batch) {
  const int64_t of_all = spec_.split != Split::kFull ? batch * spec_.workers + spec_.worker : batch;
  const int64_t begin = of_all * spec_.batch_size;
  const int64_t end = std::min(spec_.rows, begin + spec_.batch_size);
  for (int64_t i = begin; i < end; ++i) {
    batch_rows_.push_back(spec_.first_row + (spec_.shuffle ? (*permutation_)[static_cast<size_t>(i)] : i));
  }
}

}  // namespace dtrain
