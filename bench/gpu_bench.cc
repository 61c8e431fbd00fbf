// Measures dtrain on a GPU beside its limits; prints a table and writes JSON. docs/gpu.md says what is to be
// reached, docs/performance.md how to read the table. scripts/gpu_check.sh runs it.
//   gpu_bench [--rounds 9] [--only NAME]... [--json FILE] [--bin DIR --data DIR] [--smoke]
// Whole runs start DIR/cmd/dtrain in the repository's root.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "bench/gpu/gpu_cases.h"
#include "bench/report/process.h"
#include "bench/report/rows.h"

namespace dtrain::bench {
namespace {

constexpr int kRounds = 9;

struct Arguments {
  GpuSettings settings;
  std::vector<std::string> only;
  std::string json;
};

void AddFlags(CLI::App& app, Arguments* arguments) {
  GpuSettings& settings = arguments->settings;
  settings.report.rounds = kRounds;
  app.add_option("--rounds", settings.report.rounds, "how often each side runs")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--only", arguments->only, "rows whose name begins so; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--json", arguments->json, "a file for all values");
  app.add_option("--bin", settings.report.bin, "the directory with cmd/dtrain")->default_val("bazel-bin");
  app.add_option("--data", settings.report.data,
                 "the directory with mnist/; left out: digits are drawn instead");
  app.add_flag("--smoke", settings.smoke, "each case once at a tiny size, to see that it runs");
}

int Report(Arguments& arguments) {
  GpuSettings& settings = arguments.settings;
  if (settings.smoke) settings.report.rounds = 1;
  const Scratch scratch;
  settings.report.scratch = scratch.path();
  const std::unique_ptr<gpu::cuda::Runtime> runtime = gpu::cuda::MakeRuntime();
  Gpu gpu(*runtime);
  const std::unique_ptr<PlainProducts> plain = MakePlainProducts(gpu);
  const std::vector<Case> cases = Choose(AllGpuCases(settings, gpu, *plain), arguments.only);
  const std::string machine = gpu.Describe() + "; " + DescribeMachine(Load());
  fmt::print("{}\nMedians of {} rounds.\n\n", machine, settings.report.rounds);
  PrintTableHead();
  const Measured measured = MeasureAll(cases, arguments.only);
  if (!arguments.json.empty()) {
    WriteFileAtomically(arguments.json, ReportJson(machine, settings.report.rounds, measured.rows));
  }
  return measured.failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace dtrain::bench

int main(int argc, char** argv) {
  dtrain::gpu::SetThreads(1);
  dtrain::bench::Arguments arguments;
  CLI::App app("Measures dtrain on a GPU beside its limits");
  dtrain::bench::AddFlags(app, &arguments);
  CLI11_PARSE(app, argc, argv);
  try {
    return dtrain::bench::Report(arguments);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_bench: {}\n", error.what());
    return 1;
  }
}
