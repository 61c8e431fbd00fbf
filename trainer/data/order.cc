#include "trainer/data/order.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace dtrain {

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
  const int64_t readers = config.data.split == Split::kFull ? workers : 1;
  int64_t of_epochs = 0;
  if (__builtin_mul_overflow(BatchesInAll(spec) * readers, *config.train.epochs, &of_epochs)) {
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
}

gpu::Span<const int64_t> BatchOrder::Rows(int64_t epoch, int64_t index) {
  DT_CHECK(index >= 0 && index < batches_, index, batches_);
  const int64_t batch = spec_.split != Split::kFull ? index * spec_.workers + spec_.worker : index;
  const int64_t begin = batch * spec_.batch_size;
  const int64_t end = std::min(spec_.rows, begin + spec_.batch_size);
  batch_rows_.resize(end - begin);
  if (spec_.shuffle) {
    if (epoch != epoch_) {
      permutation_ = nullptr;  // its memory is free for the next
      permutation_ = permutations_->Of(spec_, epoch);
      epoch_ = epoch;
    }
    const std::vector<uint32_t>& order = *permutation_;
    for (int64_t i = begin; i < end; ++i) batch_rows_[i - begin] = spec_.first_row + order[i];
  } else {
    std::iota(batch_rows_.begin(), batch_rows_.end(), spec_.first_row + begin);
  }
  return batch_rows_;
}

}  // namespace dtrain
