#include "trainer/worker/worker_model.h"

#include <cstring>

#include "base/error.h"
#include "trainer/config/config.h"
#include "trainer/device/make_model.h"
#include "trainer/model/layout.h"
#include "trainer/sets/load_data.h"

namespace dtrain {

WorkerModel::WorkerModel(const Config& config, const Layout& layout, const DeviceChoice& devices,
                         DeviceStore* store)
    : config_(config),
      layout_(layout),
      devices_(devices),
      store_(store),
      here_(store == nullptr ? static_cast<size_t>(layout.size) : 0),
      buffers_(store == nullptr ? static_cast<size_t>(config.train.in_flight) + 1 : 0,
               static_cast<size_t>(layout.size) * sizeof(float)) {
  if (store == nullptr) return;
  queue_ = std::make_unique<gpu::cuda::Queue>(store->stream());
}

WorkerModel::DeviceGradient WorkerModel::MakeDeviceGradient() {
  DeviceGradient made{store_->NewGradient(), net::LentBuffer(size_t{0})};
  std::vector<DeviceAddress> addresses;
  for (const Range& range : layout_.ps) {
    for (int64_t block = 0; block < BlockCount(range); ++block) {
      addresses.push_back(made.values + BlockOf(range, block).begin);
    }
  }
  made.addresses = net::LentBuffer(addresses.size() * sizeof(DeviceAddress));
  std::memcpy(made.addresses.floats(), addresses.data(), made.addresses.bytes());
  return made;
}

void WorkerModel::Make(int64_t max_rows, const LoadedData& data, BatchSource& source, Logger& log) {
  model_ = MakeModelOn(devices_, config_, layout_, max_rows, store_);
  if (by_address()) {
    // One more than may be open: the oldest is applied before it is written again.
    for (int64_t i = 0; i < config_.train.in_flight + 1; ++i) gradients_.push_back(MakeDeviceGradient());
  }
  UseData(data, source, log);
}

void WorkerModel::UseData(const LoadedData& data, BatchSource& source, Logger& log) {
  if (!devices_.on_gpu()) return;
  source.LeaveOutInputs();
  if (config_.data.cache == DataCache::kDevice) KeepData(data, log);
}

void WorkerModel::KeepData(const LoadedData& data, Logger& log) {
  const DataSet* const set = data.train.get();
  if (set == nullptr || (set->bytes().data == nullptr && set->floats().data == nullptr)) {
    return log.Detail("the training set does not lie in memory here: its batches travel (data.cache)");
  }
  try {
    const int64_t bytes = model_->Keep(set->bytes(), set->floats());
    log.Detail("the training set stays on the device: {:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
  } catch (const UserError& error) {
    log.Warning("{} The training set's batches travel.", error.what());
  }
}

float* WorkerModel::snapshot_here() {
  snapshot_here_.resize(static_cast<size_t>(layout_.size));
  return snapshot_here_.data();
}

const float* WorkerModel::SnapshotParameters() {
  if (by_address()) {
    if (snapshot_there_ == nullptr) snapshot_there_ = store_->NewGradient();
    queue_->Copy(snapshot_there_, snapshot_here_.data(), layout_.size * static_cast<int64_t>(sizeof(float)));
    return snapshot_there_;
  }
  model_->Arrived(snapshot_here_.data(), {0, layout_.size});
  return snapshot_here_.data();
}

const float* WorkerModel::Fetch() {
  if (!by_address()) return here_.data();
  here_.resize(static_cast<size_t>(layout_.size));
  queue_->Copy(here_.data(), store_->weights(), layout_.size * static_cast<int64_t>(sizeof(float)));
  return here_.data();
}

const net::LentBuffer& WorkerModel::NextGradient(int64_t values) {
  if (by_address()) {
    next_gradient_ = (next_gradient_ + 1) % gradients_.size();
    gradient_ = gradients_[next_gradient_].values;
    return gradients_[next_gradient_].addresses;
  }
  const net::LentBuffer& buffer = buffers_.Free(static_cast<size_t>(values) * sizeof(float));
  gradient_ = buffer.floats();
  return buffer;
}

float* WorkerModel::FetchGradient() {
  if (!by_address()) return gradient_;
  gradient_here_.resize(static_cast<size_t>(layout_.size));
  queue_->Copy(gradient_here_.data(), gradient_, layout_.size * static_cast<int64_t>(sizeof(float)));
  return gradient_here_.data();
}

}  // namespace dtrain
