// Whole runs of mnist_softmax.yaml with ps and workers as threads: on the GPU, beside this machine's
// processor.
#include <fmt/core.h>

#include <algorithm>

#include "bench/gpu/gpu_cases.h"
#include "bench/report/job.h"
#include "bench/report/rows.h"

namespace dtrain::bench {
namespace {

constexpr int64_t kSteps = 60000;
constexpr int64_t kBatch = 100;
constexpr int kMaxRounds = 5;

std::vector<std::string> Flags(const std::string& kind, int workers, int64_t batch) {
  std::string addresses;
  for (int i = 0; i < workers; ++i) addresses += fmt::format("{}localhost:{}", i == 0 ? "" : ", ", 9002 + i);
  std::vector<std::string> flags = {"--in-process"};
  for (const std::string& value :
       {"device={kind: " + kind + (kind == "cuda" ? ", soft_placement: false}" : "}"),
        std::string("data.cache=device"), fmt::format("train.batch_size={}", batch),
        "cluster.worker=[" + addresses + "]"}) {
    flags.insert(flags.end(), {"--set", value});
  }
  return flags;
}

std::vector<Row> Measure(const GpuSettings& settings, int workers, Row row) {
  const Job& job = FindJob("softmax");
  const auto run = [&](const std::string& kind, std::vector<double>* speeds) {
    const int64_t steps = settings.size(kind == "cuda" ? kSteps : kSteps / 3, 20);
    speeds->push_back(RunJob(settings.report, settings.report.Program("cmd/dtrain"), job, steps,
                             Flags(kind, workers, settings.size(kBatch, 10)))
                          .steps_per_s);
  };
  TakeTurns(
      std::min(settings.report.rounds, kMaxRounds), [&] { run("cuda", &row.dtrain); },
      [&] { run("cpu", &row.limit); });
  return {row};
}

}  // namespace

std::vector<Case> GpuRunCases(const GpuSettings& settings) {
  std::vector<Case> cases;
  for (const int workers : {1, 3}) {
    const Row row = {fmt::format("run_softmax_{}", workers),
                     fmt::format("mnist_softmax.yaml --in-process, {} worker{}, beside the processor",
                                 workers, workers == 1 ? "" : "s"),
                     "global steps/s",
                     "30000 steps/s",
                     false,
                     {},
                     {},
                     {},
                     {}};
    cases.push_back({{row.name}, [&settings, workers, row] { return Measure(settings, workers, row); }});
  }
  return cases;
}

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
