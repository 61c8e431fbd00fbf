#include "trainer/data/order.h"

#include <algorithm>
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
  int64_t of_epochs = 0;  // 10^9 epochs of 10^12 batches are more than fit
  if (__builtin_mul_overflow(BatchesInAll(spec) * readers, *config.train.epochs, &of_epochs)) return total;
  return std::min(total.value_or(of_epochs), of_epochs);
}

BatchOrder::BatchOrder(const OrderSpec& spec) : spec_(spec), batches_(BatchesInAll(spec)) {
  DT_CHECK(spec.worker >= 0 && spec.worker < spec.workers, spec.worker, spec.workers);
  DT_CHECK(!spec.shuffle || spec.rows <= UINT32_MAX, spec.rows);
  if (spec.split == Split::kShard) {
    batches_ = std::max<int64_t>(0, (batches_ - spec.worker + spec.workers - 1) / spec.workers);
  }
}

gpu::Span<const int64_t> BatchOrder::Rows(int64_t epoch, int64_t index) {
  DT_CHECK(index >= 0 && index < batches_, index, batches_);
  const int64_t batch = spec_.split == Split::kShard ? index * spec_.workers + spec_.worker : index;
  const int64_t begin = batch * spec_.batch_size;
  const int64_t end = std::min(spec_.rows, begin + spec_.batch_size);
  batch_rows_.resize(end - begin);
  if (spec_.shuffle) {
    if (epoch != epoch_) Permute(epoch);
    for (int64_t i = begin; i < end; ++i) batch_rows_[i - begin] = spec_.first_row + permutation_[i];
  } else {
    std::iota(batch_rows_.begin(), batch_rows_.end(), spec_.first_row + begin);
  }
  return batch_rows_;
}

// Fisher and Yates, from the identity: the order depends on no earlier epoch.
void BatchOrder::Permute(int64_t epoch) {
  CounterRandom random = CounterRandom(spec_.seed).Stream("order").Stream(static_cast<uint64_t>(epoch));
  if (spec_.split == Split::kFull) random = random.Stream(static_cast<uint64_t>(spec_.worker));
  permutation_.resize(static_cast<size_t>(spec_.rows));
  std::iota(permutation_.begin(), permutation_.end(), 0u);
  for (uint64_t left = permutation_.size(); left > 1; --left) {
    std::swap(permutation_[left - 1], permutation_[random.Below(left, left)]);
  }
  epoch_ = epoch;
}

}  // namespace dtrain
