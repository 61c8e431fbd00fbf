#include "trainer/data/step_rows.h"

#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/plural.h"

namespace dtrain {
namespace {

OrderSpec SpecOf(const Config& config, int64_t rows, int worker, int workers) {
  OrderSpec spec;
  spec.first_row = config.data.validation;
  spec.rows = rows - config.data.validation;
  spec.batch_size = config.train.batch_size;
  spec.drop_short = config.data.last_batch == LastBatch::kDrop;
  spec.shuffle = config.data.shuffle;
  spec.split = config.data.split;
  spec.seed = config.data.seed;
  spec.worker = worker;
  spec.workers = workers;
  spec.devices = config.device.towers();
  return spec;
}

// "3 workers of 2 devices need"
std::string WhoNeeds(const OrderSpec& spec) {
  const std::string devices = spec.devices == 1 ? "" : fmt::format(" of {} devices", spec.devices);
  return spec.workers == 1 ? fmt::format("1 worker{} needs", devices)
                           : fmt::format("{} workers{} need", spec.workers, devices);
}

// Every device must get a batch: one that idles unnoticed would be a run of another size.
void CheckEnough(const Config& config, const OrderSpec& spec) {
  if (spec.rows <= 0) {
    throw UserError("data.validation = {}; must be below the number of training rows, {}. Hold out fewer.",
                    config.data.validation, spec.rows + config.data.validation);
  }
  if (spec.shuffle && spec.rows > UINT32_MAX) {
    throw UserError("data.train has {} rows; a shuffled set may have at most {}. Set data.shuffle: false.",
                    spec.rows, UINT32_MAX);
  }
  const int64_t batches = BatchesInAll(spec);
  const int64_t needed = (spec.split == Split::kFull ? 1 : spec.workers) * spec.devices;
  if (batches < needed) {
    throw UserError(
        "train.batch_size = {}; makes {} of {}, and {} at least {}. Use a smaller batch or fewer {}.",
        spec.batch_size, Plural(batches, "batch", "batches"), Plural(spec.rows, "training row"),
        WhoNeeds(spec), needed, spec.devices == 1 ? "workers" : "device.ids");
  }
}

}  // namespace

StepRows::StepRows(const Config& config, std::optional<int64_t> rows, int worker, int workers,
                   std::shared_ptr<Permutations> permutations)
    : spec_(SpecOf(config, rows.value_or(0), worker, workers)) {
  if (!rows.has_value()) return;
  CheckEnough(config, spec_);
  epochs_ = config.train.epochs;
  order_.emplace(spec_, std::move(permutations));
}

StepRows::StepRows(const OrderSpec& spec, std::optional<int64_t> epochs) : spec_(spec), epochs_(epochs) {
  order_.emplace(spec);
}

bool StepRows::Read(int64_t local_step, gpu::Span<const int64_t>* rows) {
  if (order_.has_value()) {
    if (epochs_.has_value() && epoch(local_step) >= *epochs_) return false;
    *rows = order_->Rows(epoch(local_step), batch_in_epoch(local_step));
    return true;
  }
  // The worker's batch b is batch b * workers + worker of the row numbers: nobody reads a row twice. Each
  // device takes one.
  const int64_t size = spec_.batch_size;
  rows_.resize(static_cast<size_t>(spec_.devices * size));
  for (int64_t device = 0; device < spec_.devices; ++device) {
    const int64_t batch = (local_step * spec_.devices + device) * spec_.workers + spec_.worker;
    const auto begin = rows_.begin() + device * size;
    std::iota(begin, begin + size, spec_.first_row + batch * size);
  }
  *rows = rows_;
  return true;
}

int64_t StepRows::epoch(int64_t local_step) const {
  return order_.has_value() ? local_step / order_->batches_per_epoch() : 0;
}

int64_t StepRows::batch_in_epoch(int64_t local_step) const {
  return order_.has_value() ? local_step % order_->batches_per_epoch() : local_step;
}

}  // namespace dtrain
