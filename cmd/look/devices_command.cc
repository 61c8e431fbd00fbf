#include "cmd/look/look.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/machine_memory.h"
#include "base/names.h"
#include "gpu/cuda/runtime.h"
#include "trainer/device/choice.h"

namespace dtrain {
namespace {

using gpu::cuda::DeviceInfo;

constexpr int64_t kMiB = 1024 * 1024;

struct Gpu {
  DeviceInfo info;
  std::optional<int64_t> free_bytes;  // unset: the device cannot be used
  std::string why_not;
};

struct Found {
  std::vector<Gpu> gpus;
  std::string why_none;
  std::string why_no_blas;
  std::string versions;
};

Gpu Look(gpu::cuda::Runtime& runtime, const DeviceInfo& info) {
  try {
    return {info, runtime.FreeBytes(info.id), ""};
  } catch (const gpu::cuda::DeviceError& error) {
    return {info, std::nullopt, error.what()};
  }
}

Found FindDevices(gpu::cuda::Runtime& runtime) {
  Found found;
  for (const DeviceInfo& info : runtime.Devices(&found.why_none)) found.gpus.push_back(Look(runtime, info));
  if (!found.gpus.empty()) found.why_no_blas = runtime.WhyNoBlas();
  found.versions = runtime.Versions();
  return found;
}

std::string CapabilityText(const DeviceInfo& info) { return fmt::format("{}.{}", info.major, info.minor); }

void PrintTable(const Found& found) {
  const std::string processor = ProcessorName();
  size_t width = processor.size();
  for (const Gpu& gpu : found.gpus) width = std::max(width, gpu.info.name.size());
  const auto print = [width](const std::string& device, const std::string& name, const std::string& kind,
                             const std::string& pci, const std::string& total, const std::string& free) {
    fmt::print("{:<8}  {:<{}}  {:<26}  {:<12}  {:>9}  {:>9}\n", device, name, width, kind, pci, total, free);
  };
  print("device", "name", "kind", "pci", "MiB", "MiB free");
  print("cpu", processor, fmt::format("{}, {}", InstructionSet(), Plural(Processors(), "processor")), "-",
        "-", "-");
  for (const Gpu& gpu : found.gpus) {
    print(fmt::format("gpu {}", gpu.info.id), gpu.info.name, "compute capability " + CapabilityText(gpu.info),
          gpu.info.pci, fmt::format("{}", gpu.info.total_bytes / kMiB),
          gpu.free_bytes ? fmt::format("{}", *gpu.free_bytes / kMiB) : "-");
  }
}

// Prints the problems that a user may want to fix.
void PrintProblems(const Found& found) {
  if (found.gpus.empty()) fmt::print("no GPU: {}\n", found.why_none);
  for (const Gpu& gpu : found.gpus) {
    if (!gpu.free_bytes) fmt::print("gpu {} cannot be used: {}\n", gpu.info.id, gpu.why_not);
  }
  if (!found.why_no_blas.empty()) {
    fmt::print(
        "no GPU can be used without cuBLAS: {}. Install libcublas, or name its folder in LD_LIBRARY_PATH.\n",
        found.why_no_blas);
  }
}

Json OrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

void PrintJson(const Found& found) {
  Json gpus = Json::array();
  for (const Gpu& gpu : found.gpus) {
    gpus.push_back({{"id", gpu.info.id},
                    {"name", gpu.info.name},
                    {"compute_capability", CapabilityText(gpu.info)},
                    {"pci", gpu.info.pci},
                    {"total_bytes", gpu.info.total_bytes},
                    {"free_bytes", gpu.free_bytes ? Json(*gpu.free_bytes) : Json(nullptr)},
                    {"why_not", OrNull(gpu.why_not)}});
  }
  const Json document = {
      {"cpu",
       {{"name", ProcessorName()}, {"instruction_set", InstructionSet()}, {"processors", Processors()}}},
      {"gpus", gpus},
      {"why_no_gpu", OrNull(found.why_none)},
      {"why_no_cublas", OrNull(found.why_no_blas)},
      {"versions", found.versions}};
  fmt::print("{}\n", document.dump(2));
}

}  // namespace

int RunDevicesCommand(const DevicesArguments& arguments, NewRuntime new_runtime) {
  const Found found = FindDevices(*new_runtime());
  if (arguments.json) {
    PrintJson(found);
    return 0;
  }
  PrintTable(found);
  PrintProblems(found);
  fmt::print("{}\n", found.versions);
  return 0;
}

}  // namespace dtrain
