#include "trainer/task/device_lines.h"

#include <fmt/format.h>

#include "base/names.h"
#include "trainer/config/fields.h"
#include "trainer/device/choice.h"

namespace dtrain {
namespace {

std::string WorkerPath(const Config& config, int worker, const DeviceChoice& choice, size_t tower) {
  return fmt::format("/job:worker/task:{}/{}", worker, DeviceName(config.device, choice, tower));
}

std::string ProcessorText(const DeviceConfig& device) {
  return fmt::format("{}, {}, {}", ProcessorName(), InstructionSet(), Plural(device.threads, "thread"));
}

std::string GpuText(const gpu::cuda::DeviceInfo& gpu, double memory_fraction) {
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  return fmt::format("{}, compute capability {}.{}, {:.1f} GiB ({:.4g} % allowed), pci {}", gpu.name,
                     gpu.major, gpu.minor, static_cast<double>(gpu.total_bytes) / kGiB, 100 * memory_fraction,
                     gpu.pci);
}

// "2 towers: cpu 0, cpu 3; a step is 8 rows of each"
std::string TowersText(const Config& config, const DeviceChoice& choice) {
  const char* kind = choice.on_gpu() ? "gpu" : "cpu";
  return fmt::format("{} towers: {} {}; a step is {} rows of each", config.device.towers(), kind,
                     fmt::join(config.device.ids, fmt::format(", {} ", kind)), config.train.batch_size);
}

const char* ActivationName(Activation activation) {
  switch (activation) {
    case Activation::kSigmoid:
      return "sigmoid";
    case Activation::kTanh:
      return "tanh";
    case Activation::kRelu:
      break;
  }
  return "relu";
}

const char* LossName(ModelKind kind) {
  if (HasOutputPerClass(kind)) return "softmax_cross_entropy";
  return kind == ModelKind::kLogistic ? "sigmoid_cross_entropy" : "mean_squared_error";
}

}  // namespace

std::vector<std::string> DeviceLines(const Config& config, TaskId task, const DeviceChoice& choice) {
  if (task.role == Role::kPs) {
    return {fmt::format("device /job:ps/task:{}/cpu:0: {}", task.index, ProcessorText(config.device))};
  }
  std::vector<std::string> lines;
  const auto add = [&](const std::string& what) {
    lines.push_back(fmt::format("device {}: {}", WorkerPath(config, task.index, choice, lines.size()), what));
  };
  for (const gpu::cuda::DeviceInfo& gpu : choice.gpus) add(GpuText(gpu, config.device.memory_fraction));
  if (!choice.on_gpu()) add(ProcessorText(config.device));
  if (config.device.towers() > 1) lines.push_back(TowersText(config, choice));
  return lines;
}

std::vector<std::string> TowerLines(const Config& config, TaskId task, const DeviceChoice& choice) {
  std::vector<std::string> lines;
  if (task.role == Role::kPs || config.device.towers() == 1) return lines;
  for (size_t i = 0; i < config.device.ids.size(); ++i) {
    lines.push_back(fmt::format("tower {} -> {}", i, WorkerPath(config, task.index, choice, i)));
  }
  return lines;
}

std::vector<std::string> OperationLines(const Config& config, const Layout& layout,
                                        const DeviceChoice& choice, const std::string& parameters) {
  const bool mlp = config.model.kind == ModelKind::kMlp;
  const size_t hidden = mlp ? config.model.hidden.size() : 0;
  const int64_t towers = config.device.towers();
  const std::string where =
      towers == 1 ? WorkerPath(config, 0, choice, 0) : fmt::format("towers 0 to {}", towers - 1);
  std::vector<std::string> lines;
  for (size_t i = 0; i <= hidden; ++i) {
    const std::string activation =
        i < hidden ? std::string(", ") + ActivationName(config.model.activation) : "";
    lines.push_back(fmt::format("layer {} matmul, bias{} -> {}", i + 1, activation, where));
  }
  lines.push_back(fmt::format("loss {} -> {}", LossName(config.model.kind), where));
  for (size_t i = hidden + 1; i > 0; --i) {
    lines.push_back(fmt::format("gradient weights/W{}, biases/b{} -> {}", i, i, where));
  }
  const Field& optimizer = *FindField("train.optimizer.kind");
  const std::string kind = ValueText(optimizer, optimizer.get(config));
  for (size_t ps = 0; ps < layout.ps.size(); ++ps) {
    lines.push_back(fmt::format("update {} -> /job:ps/task:{}/{}", kind, ps, parameters));
  }
  return lines;
}

}  // namespace dtrain
