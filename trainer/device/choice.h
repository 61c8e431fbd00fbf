// DeviceChoice: what one task computes on, as device.kind, device.ids and this machine decide.
// Made at the start of a task that computes. A ps does not ask, and so makes no CUDA context.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gpu/cuda/runtime.h"
#include "trainer/config/config.h"

namespace dtrain {

struct DeviceChoice {
  // Not owned; null without GPUs.
  gpu::cuda::Runtime* runtime = nullptr;
  // One for each of device.ids, in their order. None: the processor.
  std::vector<gpu::cuda::DeviceInfo> gpus;
  // Why it is the processor though a GPU was looked for; empty otherwise.
  std::string why_cpu;
  bool warn = false;  // why_cpu is a warning: a GPU was asked for, or one is there and not used

  bool on_gpu() const { return !gpus.empty(); }
};

// Asks `runtime` nothing where device.kind is cpu. Makes no CUDA context. UserError where device.kind is cuda
// without device.soft_placement, and one of these GPUs or cuBLAS is missing.
DeviceChoice ChooseDevices(const DeviceConfig& config, gpu::cuda::Runtime& runtime);

// The device of tower `tower`, as in placement lines: "gpu:0", "cpu:3".
std::string DeviceName(const DeviceConfig& config, const DeviceChoice& choice, size_t tower);
// The devices of all towers, as in results: "cuda:0", "cuda:0,1", "cpu".
std::string DevicesName(const DeviceChoice& choice);

// The name of the processor that this process runs on: "Intel(R) Xeon(R) Platinum 8481C".
std::string ProcessorName();
// Its best instruction set that the kernels have a form for: "AVX-512".
const char* InstructionSet();

}  // namespace dtrain
