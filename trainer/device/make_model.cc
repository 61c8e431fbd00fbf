#include "trainer/device/make_model.h"

#include <utility>
#include <vector>

#include "trainer/model/device_model.h"
#include "trainer/model/tower_model.h"

namespace dtrain {

std::unique_ptr<Model> MakeModelOn(const DeviceChoice& devices, const Config& config, const Layout& layout,
                                   int64_t max_rows, DeviceStore* store) {
  if (!devices.on_gpu()) return MakeTowers(config.model, layout, max_rows, config.device.towers());
  if (store != nullptr) {
    return std::make_unique<DeviceModel>(
        config.model, layout, max_rows,
        DeviceModel::Placement{store->device(), nullptr, store->stream(), config.hooks.stop_on_nan});
  }
  const auto pinned = std::make_shared<PinnedRanges>(*devices.runtime);
  std::vector<std::unique_ptr<Model>> models;
  for (const gpu::cuda::DeviceInfo& gpu : devices.gpus) {
    auto device = std::make_shared<gpu::cuda::Device>(*devices.runtime, gpu, config.device.memory_fraction,
                                                      config.device.tf32);
    models.push_back(std::make_unique<DeviceModel>(config.model, layout, max_rows,
                                                   DeviceModel::Placement{std::move(device), pinned}));
  }
  if (models.size() == 1) return std::move(models[0]);
  return std::make_unique<TowerModel>(std::move(models), max_rows);
}

}  // namespace dtrain
