#include "bench/gpu/gpu_cases.h"

namespace dtrain::bench {

std::vector<Case> AllGpuCases(const GpuSettings& settings, Gpu& gpu, PlainProducts& plain) {
  std::vector<Case> all = GpuMemoryCases(settings, gpu);
  for (const std::vector<Case>& some :
       std::vector{GpuOptimizerCases(settings, gpu), GpuProductCases(settings, gpu, plain),
                   GpuModelCases(settings, gpu, plain), GpuRunCases(settings)}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace dtrain::bench
