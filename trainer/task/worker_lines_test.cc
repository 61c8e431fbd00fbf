#include "trainer/task/run_log.h"

#include <doctest/doctest.h>

namespace dtrain {
namespace {

TEST_CASE("worker lines: the share of waiting, then every part with its total, p50 and p95") {
  WorkerFigures figures;
  figures.steps = 5000;
  figures.data = {0.5, 0.01, 0.02};
  figures.compute = {1.5, 0.24, 0.26};
  figures.hooks = {0, 0, 0.0004};
  figures.wait = {6, 1.1, 2.2};
  figures.network = {2, 0.3, 0.5};
  CHECK(TimesLine(2, figures) ==
        "worker 2: waited 60 % for others; of 10.00 s in 5000 steps (p50 and p95 of a step in ms): "
        "data 0.50 s (0.010, 0.020), compute 1.50 s (0.240, 0.260), hooks 0.00 s (0.000, 0.000), "
        "wait 6.00 s (1.100, 2.200), network 2.00 s (0.300, 0.500)");
}

TEST_CASE("worker lines: a worker without time has waited for nothing") {
  CHECK(TimesLine(0, WorkerFigures()).find("waited 0 % for others; of 0.00 s in 0 steps") !=
        std::string::npos);
}

TEST_CASE("worker lines: staleness with its quantiles") {
  CHECK(StalenessLine(1, {1.94, 2, 3, 7}) == "worker 1: staleness 1.9 in the mean, p50 2, p95 3, at most 7");
}

}  // namespace
}  // namespace dtrain
