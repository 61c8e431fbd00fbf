// What bench/gpu_bench measures on a GPU, each beside its limit in the same run, in turns. Cases keep a
// reference to the settings and the device. They throw std::runtime_error where something cannot be run.
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
  bool smoke = false;  // each case once and as small as it can be, to see that it runs: no figures

  int repeats(int usual) const { return smoke ? 1 : usual; }
  int64_t size(int64_t usual, int64_t smoke_size) const { return smoke ? smoke_size : usual; }
};

// Memory that moves: a copy, and each operation that is bound by memory beside a copy of as many bytes.
std::vector<Case> GpuMemoryCases(const GpuSettings& settings, Gpu& gpu);
std::vector<Case> GpuOptimizerCases(const GpuSettings& settings, Gpu& gpu);
// Products beside plain calls of cuBLAS.
std::vector<Case> GpuProductCases(const GpuSettings& settings, Gpu& gpu, PlainProducts& plain);
// Steps of a model whose parameters are on the device, with their update.
std::vector<Case> GpuModelCases(const GpuSettings& settings, Gpu& gpu, PlainProducts& plain);
// Whole runs of `dtrain local --in-process`.
std::vector<Case> GpuRunCases(const GpuSettings& settings);

std::vector<Case> AllGpuCases(const GpuSettings& settings, Gpu& gpu, PlainProducts& plain);

// An operation that is bound by memory.
struct MemoryOperation {
  std::string name;  // of the row
  std::string what;
  int64_t bytes = 0;                               // the fewest that it has to read and write
  std::function<std::function<void()>()> prepare;  // makes its data, and what queues it once
};
Case MemoryCase(const GpuSettings& settings, Gpu& gpu, const MemoryOperation& operation);

}  // namespace dtrain::bench
