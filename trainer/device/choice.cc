#include "trainer/device/choice.h"

#include <cpuid.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "trainer/config/config.h"

namespace dtrain {
namespace {

using gpu::cuda::DeviceInfo;

// Why the GPUs of device.ids cannot be used, and what to do about it.
struct Problem {
  std::string what;  // empty: they can
  std::string key;   // whose value is in the way; empty: device.kind
  std::string remedy;
  bool gpu_there = false;
};

// Returns "0 (NVIDIA L4) and 1 (NVIDIA L4)".
std::string ListText(const std::vector<DeviceInfo>& devices) {
  std::string text;
  for (size_t i = 0; i < devices.size(); ++i) {
    const char* between = i == 0 ? "" : i + 1 == devices.size() ? " and " : ", ";
    text += fmt::format("{}{} ({})", between, devices[i].id, devices[i].name);
  }
  return text;
}

// Sets `gpus` to those of device.ids that are present.
Problem Look(const DeviceConfig& config, gpu::cuda::Runtime& runtime, std::vector<DeviceInfo>* gpus) {
  std::string why;
  const std::vector<DeviceInfo> there = runtime.Devices(&why);
  if (there.empty()) {
    return {"no GPU: " + why, "", "dtrain devices shows what this process may use.", false};
  }
  std::vector<int64_t> missing;
  for (const int64_t id : config.ids) {
    const auto found =
        std::find_if(there.begin(), there.end(), [id](const DeviceInfo& info) { return info.id == id; });
    found == there.end() ? missing.push_back(id) : gpus->push_back(*found);
  }
  if (!missing.empty()) {
    return {fmt::format("no GPU {}: there {} {}", fmt::join(missing, ", "), there.size() == 1 ? "is" : "are",
                        ListText(there)),
            fmt::format("device.ids = [{}]", fmt::join(config.ids, ", ")),
            "Set device.ids to GPUs that are there, or device.kind to cpu.", true};
  }
  for (const DeviceInfo& gpu : *gpus) {
    if (std::pair(gpu.major, gpu.minor) >= std::pair(gpu::cuda::kMinMajor, gpu::cuda::kMinMinor)) continue;
    return {fmt::format("GPU {} ({}) is of compute capability {}.{}: {}.{} is the oldest that is supported",
                        gpu.id, gpu.name, gpu.major, gpu.minor, gpu::cuda::kMinMajor, gpu::cuda::kMinMinor),
            "", "Set device.ids to newer GPUs, or device.kind to cpu.", true};
  }
  const std::string no_blas = runtime.WhyNoBlas();
  if (no_blas.empty()) return {};
  return {fmt::format("GPU {} cannot be used without cuBLAS: {}", ListText(*gpus), no_blas), "",
          "Install libcublas, or name its folder in LD_LIBRARY_PATH.", true};
}

}  // namespace

DeviceChoice ChooseDevices(const Config& config, gpu::cuda::Runtime& runtime) {
  const bool cpu = config.device.kind == DeviceKind::kCpu;
  if (!UsesTable(config) || cpu) return ChooseDevices(config.device, runtime);
  DeviceChoice choice;
  choice.warn = config.device.kind == DeviceKind::kCuda;
  choice.why_cpu = "a model of sparse rows computes on the processor";
  if (choice.warn && !config.device.soft_placement) {
    throw UserError("device.kind = cuda; {}. Set device.kind: cpu.", choice.why_cpu);
  }
  return choice;
}

DeviceChoice ChooseDevices(const DeviceConfig& config, gpu::cuda::Runtime& runtime) {
  DeviceChoice choice;
  if (config.kind == DeviceKind::kCpu) return choice;
  std::vector<DeviceInfo> gpus;
  const Problem problem = Look(config, runtime, &gpus);
  if (problem.what.empty()) {
    choice.runtime = &runtime;
    choice.gpus = std::move(gpus);
    return choice;
  }
  const bool asked = config.kind == DeviceKind::kCuda;
  const std::string key = problem.key.empty() && asked ? "device.kind = cuda" : problem.key;
  const std::string what = key.empty() ? problem.what : key + "; " + problem.what;
  if (asked && !config.soft_placement) {
    throw UserError("{}. {} device.soft_placement: true would compute on the processor instead.", what,
                    problem.remedy);
  }
  choice.warn = asked || problem.gpu_there;
  choice.why_cpu =
      choice.warn ? fmt::format("{}; computes on the processor. {}", what, problem.remedy) : what;
  return choice;
}

std::string DeviceName(const DeviceConfig& config, const DeviceChoice& choice, size_t tower) {
  return fmt::format("{}:{}", choice.on_gpu() ? "gpu" : "cpu", config.ids.at(tower));
}

std::string DevicesName(const DeviceChoice& choice) {
  if (!choice.on_gpu()) return "cpu";
  std::vector<int> ids;
  for (const DeviceInfo& gpu : choice.gpus) ids.push_back(gpu.id);
  return fmt::format("cuda:{}", fmt::join(ids, ","));
}

// Reads the processor's own name (CPUID leaves 0x80000002 to 4).
std::string ProcessorName() {
  unsigned words[12] = {};
  for (unsigned leaf = 0; leaf < 3; ++leaf) {
    unsigned* at = words + 4 * leaf;
    if (__get_cpuid(0x80000002u + leaf, at, at + 1, at + 2, at + 3) == 0) return "unknown processor";
  }
  char name[sizeof words + 1] = {};
  std::memcpy(name, words, sizeof words);
  std::string text(name);
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

const char* InstructionSet() {
  if (__builtin_cpu_supports("avx512f")) return "AVX-512";
  if (__builtin_cpu_supports("avx2")) return "AVX2";
  return "SSE4.2";
}

}  // namespace dtrain
