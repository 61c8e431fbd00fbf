#include "trainer/data/step_rows.h"

#include <limits>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/names.h"

namespace dtrain {
namespace {

// Of a set without end: far from what a row number can hold.
constexpr int64_t kMostRow = std::numeric_limits<int64_t>::max() / 4;

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
    : spec_(OrderSpecOf(config, rows.value_or(0), worker, workers)) {
  if (!rows.has_value()) return;
  CheckEnough(config, spec_);
  epochs_ = config.train.epochs;
  order_.emplace(spec_, std::move(permutations));
}

StepRows::StepRows(const OrderSpec& spec, std::optional<int64_t> epochs) : spec_(spec), epochs_(epochs) {
  order_.emplace(spec);
}

void StepRows::Deal(std::shared_ptr<const Rest> rest) {
  first_batch_ = rest == nullptr ? 0 : rest->dealt().first_batch;
  if (order_.has_value()) order_->Deal(std::move(rest));
}

std::shared_ptr<const Rest> StepRows::RestOf(const Dealt& dealt) const {
  // A set without end has no epochs to be left in the middle.
  const int64_t batches = order_.has_value() ? BatchesInAll(spec_) : 0;
  std::shared_ptr<const Rest> rest = Rest::Of(dealt, batches);
  if (rest != nullptr && dealt.first_batch <= kMostRow / spec_.batch_size) return rest;
  throw Failure(ExitCode::kInternal,
                "where the workers are in their data cannot be read: the checkpoint is not of this data");
}

bool StepRows::Read(int64_t local_step, gpu::Span<const int64_t>* rows) {
  if (order_.has_value()) {
    const StepPlace place = order_->PlaceOf(local_step);
    if (epochs_.has_value() && place.epoch >= *epochs_) return false;
    *rows = order_->Rows(place.epoch, place.batch);
    return true;
  }
  // The worker's batch b is batch b * workers + worker of the row numbers: nobody reads a row twice. Each
  // device takes one.
  const int64_t size = spec_.batch_size;
  rows_.resize(static_cast<size_t>(spec_.devices * size));
  for (int64_t device = 0; device < spec_.devices; ++device) {
    const int64_t batch = first_batch_ + (local_step * spec_.devices + device) * spec_.workers + spec_.worker;
    const auto begin = rows_.begin() + device * size;
    std::iota(begin, begin + size, spec_.first_row + batch * size);
  }
  *rows = rows_;
  return true;
}

StepPlace StepRows::PlaceOf(int64_t local_step) const {
  return order_.has_value() ? order_->PlaceOf(local_step) : StepPlace{0, local_step, 0};
}

}  // namespace dtrain
