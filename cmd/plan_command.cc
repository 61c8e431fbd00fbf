#include "cmd/plan_command.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/plural.h"
#include "cmd/load_config.h"
#include "cmd/local_cluster.h"
#include "cmd/memory_warning.h"
#include "trainer/data/source.h"
#include "trainer/model/layout.h"
#include "trainer/task/machine_memory.h"
#include "trainer/task/run_task.h"

namespace dtrain {
namespace {

int64_t BytesOf(const Range& range) { return range.size() * static_cast<int64_t>(sizeof(float)); }

void PrintPs(const Layout& layout, size_t ps) {
  const int64_t bytes = BytesOf(layout.ps[ps]);
  fmt::print("{:>4}  {:>14}  {:>10}  {:>5.1f} %  {:>10}  {:>10}\n", ps, bytes,
             BytesText(static_cast<double>(bytes)),
             100.0 * static_cast<double>(layout.ps[ps].size()) / static_cast<double>(layout.size),
             BytesText(static_cast<double>(bytes)), BytesText(static_cast<double>(bytes)));
  for (const Segment& segment : layout.SegmentsOf(static_cast<int>(ps))) {
    fmt::print("        {}\n", layout.RowsText(segment));
  }
}

void PrintBalance(const Layout& layout) {
  const auto smaller = [](const Range& a, const Range& b) { return a.size() < b.size(); };
  const auto [least, most] = std::minmax_element(layout.ps.begin(), layout.ps.end(), smaller);
  const std::string ratio =
      least->size() == 0
          ? "a ps without parameters"
          : fmt::format("{:.3f}", static_cast<double>(most->size()) / static_cast<double>(least->size()));
  fmt::print("largest / smallest: {}\n", ratio);
}

}  // namespace

int RunPlanCommand(const PlanArguments& arguments) {
  LoadOptions options;
  options.cluster_optional = true;
  if (arguments.config.dump) return DumpEffectiveConfig(arguments.config, options);
  Config config = LoadConfig(arguments.config.path, arguments.config.sets, options);
  ResolveModelShape(PeekShape(config), &config);
  const int ps_count = config.cluster.ps.empty() ? kDefaultPs : static_cast<int>(config.cluster.ps.size());
  const int workers =
      config.cluster.worker.empty() ? kDefaultWorkers : static_cast<int>(config.cluster.worker.size());
  const Layout layout = MakeLayout(config, ps_count);
  fmt::print("{}, {} on {} ps; {}\n", Plural(layout.size, "parameter"),
             BytesText(static_cast<double>(layout.size) * sizeof(float)), ps_count,
             Plural(workers, "worker"));
  fmt::print("{:>4}  {:>14}  {:>10}  {:>7}  {:>10}  {:>10}\n", "ps", "bytes", "", "share", "in / step",
             "out / step");
  for (size_t ps = 0; ps < layout.ps.size(); ++ps) PrintPs(layout, ps);
  PrintBalance(layout);
  fmt::print(
      "A step is one gradient of one worker: to each ps its part of the gradient, and back its new "
      "weights.\n");
  WarnOfMemory(config, layout);
  return 0;
}

}  // namespace dtrain
