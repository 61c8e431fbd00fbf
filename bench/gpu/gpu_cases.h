// The cases that bench/gpu_bench measures on a GPU, each beside its limit in the same run, by turns. Cases
// keep references to the settings and the device. They throw std::runtime_error if something cannot be run.
// Thread: one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/gpu/gpu.h"
#include "bench/report/rows.h"

namespace dtrain::bench {

struct GpuSettings {
  Settings report;     // rounds, and where dtrain, the data and a scratch directory are
  bool smoke = false;  // runs each case once and as small as possible, without figures

  int repeats(int usual) const { return smoke ? 1 : usual; }
  int64_t size(int64_t usual, int64_t smoke_size) const { return smoke ? smoke_size : usual; }
};

// Memory traffic: a copy, and each memory-bound operation beside a copy of as many bytes.
std::vector<Case> GpuMemoryCases(const GpuSettings& settings, Gpu& gpu);
std::vector<Case> GpuOptimizerCases(const GpuSettings& settings, Gpu& gpu);
// Products beside direct calls of cuBLAS.
std::vector<Case> GpuProductCases(const GpuSettings& settings, Gpu& gpu, PlainProducts& plain);
// Steps of a model with its parameters on the device, including their update.
std::vector<Case> GpuModelCases(const GpuSettings& settings, Gpu& gpu, PlainProducts& plain);
// Whole runs of `dtrain local --in-process`.
std::vector<Case> GpuRunCases(const GpuSettings& settings);

std::vector<Case> AllGpuCases(const GpuSettings& settings, Gpu& gpu, PlainProducts& plain);

// MemoryOperation: an operation that is bound by memory.
struct MemoryOperation {
  std::string name;  // of the row
  std::string what;
  int64_t bytes = 0;                               // the minimum that it has to read and write
  std::function<std::function<void()>()> prepare;  // makes its data; the result queues it once
};
Case MemoryCase(const GpuSettings& settings, Gpu& gpu, const MemoryOperation& operation);

}  // namespace dtrain::bench
