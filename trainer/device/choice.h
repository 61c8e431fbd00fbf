// DeviceChoice: what one task computes on, by device.kind, device.ids and this machine. It is made at the
// start of a task that computes; a ps makes none, and so no CUDA context. Thread: any; plain data.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gpu/cuda/runtime.h"
#include "trainer/config/choices.h"

namespace dtrain {

struct DeviceChoice {
  // Not owned. Null without GPUs.
  gpu::cuda::Runtime* runtime = nullptr;
  // One for each of device.ids, in their order. Empty: this processor.
  std::vector<gpu::cuda::DeviceInfo> gpus;
  // Why it is the processor although a GPU was looked for; otherwise empty.
  std::string why_cpu;
  bool warn = false;  // why_cpu is a warning: a GPU was asked for, or one is present and not used

  bool on_gpu() const { return !gpus.empty(); }
};

// Chooses the devices. Makes no call to `runtime` if device.kind is cpu, and never a CUDA context. Throws
// UserError if device.kind is cuda without device.soft_placement and a GPU or cuBLAS is missing.
DeviceChoice ChooseDevices(const DeviceConfig& config, gpu::cuda::Runtime& runtime);

// The same for the model of a config: one of sparse rows computes on the processor.
DeviceChoice ChooseDevices(const Config& config, gpu::cuda::Runtime& runtime);

// Returns the device of tower `tower` as in placement lines: "gpu:0", "cpu:3".
std::string DeviceName(const DeviceConfig& config, const DeviceChoice& choice, size_t tower);
// Returns the devices of all towers as in results: "cuda:0", "cuda:0,1", "cpu".
std::string DevicesName(const DeviceChoice& choice);

// Returns the name of this processor: "Intel(R) Xeon(R) Platinum 8481C".
std::string ProcessorName();
// Returns the best instruction set of this processor that the kernels use: "AVX-512".
const char* InstructionSet();

}  // namespace dtrain
