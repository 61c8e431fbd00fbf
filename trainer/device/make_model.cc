#include "trainer/device/make_model.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "base/names.h"
#include "trainer/config/config.h"
#include "trainer/model/device_model.h"
#include "trainer/model/fm_model.h"
#include "trainer/model/tower_model.h"
#include "trainer/model/wide_deep_model.h"
#include "trainer/optim/optimizer.h"

namespace dtrain {

std::unique_ptr<Model> MakeModelOn(const DeviceChoice& devices, const Config& config, const Layout& layout,
                                   int64_t max_rows, DeviceStore* store) {
  const Reduce reduce = config.train.reduce;
  if (layout.table) return MakeSparseModel(config.model, layout, max_rows, reduce);
  if (!devices.on_gpu()) return MakeTowers(config.model, layout, max_rows, config.device.towers(), reduce);
  if (store != nullptr) {
    return std::make_unique<DeviceModel>(
        config.model, layout, max_rows,
        DeviceModel::Placement{store->device(), nullptr, store->stream(), config.hooks.checks_finite()},
        reduce);
  }
  const auto pinned = std::make_shared<gpu::cuda::PinnedRanges>(*devices.runtime);
  std::vector<std::unique_ptr<Model>> models;
  for (const gpu::cuda::DeviceInfo& gpu : devices.gpus) {
    auto device = std::make_shared<gpu::cuda::Device>(*devices.runtime, gpu, config.device.memory_fraction,
                                                      config.device.tf32);
    models.push_back(std::make_unique<DeviceModel>(
        config.model, layout, max_rows, DeviceModel::Placement{std::move(device), pinned}, reduce));
  }
  if (models.size() == 1) return std::move(models[0]);
  return std::make_unique<TowerModel>(std::move(models), max_rows, reduce);
}

std::unique_ptr<SparseModel> MakeSparseModel(const ModelConfig& config, const Layout& layout,
                                             int64_t max_rows, Reduce reduce) {
  if (config.kind == ModelKind::kFm) return std::make_unique<FmModel>(config, layout, max_rows, reduce);
  if (config.kind == ModelKind::kWideDeep) {
    return std::make_unique<WideDeepModel>(config, layout, max_rows, reduce);
  }
  return std::make_unique<SparseLinear>(config, layout, max_rows, reduce);
}

namespace {

// Returns the memory of all tasks together. It is checked before any task starts, so that no task waits for
// one that failed for lack of memory.
int64_t BytesNeeded(const Config& config, int64_t size) {
  const auto slots = static_cast<int64_t>(SlotNames(config).size());
  const auto workers = static_cast<int64_t>(config.cluster.worker.size());
  const int64_t of_worker = config.train.in_flight + 1 + 1;  // gradients, and the weights that it evaluates
  return size * (1 + slots + workers * of_worker) * static_cast<int64_t>(sizeof(float));
}

}  // namespace

std::string WhyParametersAreSent(const Config& config, const DeviceChoice& devices) {
  if (!devices.on_gpu()) return std::string();
  if (devices.gpus.size() > 1) return "device.ids: towers on several GPUs share them";
  if (config.net.checksum) return "net.checksum: true reads every value";
  if (config.failure.replicas > 0) return "failure.replicas: a replica is of what is in memory";
  if (config.hooks.skips()) {
    return "hooks.stop_on_nan: skip: a gradient is applied there before the worker knows it";
  }
  if (config.train.optimizer.clip_norm && !NormOfRounds(config.train)) {
    return "train.optimizer.clip_norm: each gradient's norm is taken on the processor";
  }
  return std::string();
}

std::unique_ptr<DeviceStore> MakeDeviceStore(const Config& config, const DeviceChoice& devices,
                                             int64_t size) {
  const gpu::cuda::DeviceInfo& gpu = devices.gpus[0];
  auto device = std::make_shared<gpu::cuda::Device>(*devices.runtime, gpu, config.device.memory_fraction,
                                                    config.device.tf32);
  const int64_t bytes = BytesNeeded(config, size);
  if (bytes > device->limit_bytes()) {
    throw UserError(
        "cuda {} ({}): the weights, the optimizer's slots and {} need {} MiB, and device.memory_fraction = "
        "{} allows {} MiB. Raise it, or start without --in-process.",
        gpu.id, gpu.name, Plural(static_cast<int64_t>(config.cluster.worker.size()), "worker"),
        (bytes >> 20) + 1, config.device.memory_fraction, device->limit_bytes() >> 20);
  }
  return std::make_unique<DeviceStore>(std::move(device), size);
}

}  // namespace dtrain
