// Steps of models that lie on the device as a whole: a large one, which is its products and what comes beside
// them, and a small one, which is what a step costs whatever it computes.
#include <functional>

#include "base/clock.h"
#include "bench/gpu/gpu_cases.h"
#include "bench/gpu/trained.h"
#include "bench/report/rows.h"

namespace dtrain::bench {
namespace {

constexpr int kWarmSteps = 8;  // each slot as it is, captured, and as a graph
constexpr int kLargeSteps = 4;
constexpr int kSmallSteps = 3000;

double StepsPerSecond(int steps, const std::function<void()>& step) {
  const TimePoint begin = Clock::now();
  for (int i = 0; i < steps; ++i) step();
  return steps / std::chrono::duration<double>(Clock::now() - begin).count();
}

// A step beside the products that it contains.
std::vector<Row> MeasureLarge(const GpuSettings& settings, Gpu& gpu, PlainProducts& plain, Row row) {
  const int64_t size = settings.size(4096, 20), batch = settings.size(8192, 8);
  Trained trained(gpu, NetOf(size, {size, size}, 10), 2 * batch, batch);
  const std::vector<gpu::cuda::Product> products = trained.Products();
  for (int i = 0; i < kWarmSteps; ++i) trained.Step();
  plain.Milliseconds(products, 1);
  const int steps = settings.repeats(kLargeSteps);
  TakeTurns(
      settings.report.rounds,
      [&] { row.dtrain.push_back(gpu.Milliseconds(trained.stream(), steps, [&] { trained.Step(); })); },
      [&] { row.limit.push_back(plain.Milliseconds(products, steps)); });
  gpu.device()->runtime().Wait(trained.stream());
  return {row};
}

// A step beside one kernel whose answer this machine waits for by looking at it.
std::vector<Row> MeasureSmall(const GpuSettings& settings, Gpu& gpu, Row row) {
  Trained trained(gpu, NetOf(settings.size(784, 30), {}, 10), settings.size(55000, 50),
                  settings.size(100, 10));
  const gpu::cuda::Buffer<float> value = gpu.Floats(1);
  const gpu::cuda::PinnedBuffer<int64_t> answer(gpu.device()->runtime(), 1, "an answer");
  const auto ask = [&] {
    answer[0] = -1;
    gpu::CheckFinite(gpu.stream(), value.span(), answer.data());
    while (*const_cast<const volatile int64_t*>(answer.data()) == -1) gpu.device()->runtime().Relax();
  };
  for (int i = 0; i < kWarmSteps; ++i) trained.Step();
  ask();
  const int steps = settings.repeats(kSmallSteps);
  TakeTurns(
      settings.report.rounds, [&] { row.dtrain.push_back(StepsPerSecond(steps, [&] { trained.Step(); })); },
      [&] { row.limit.push_back(StepsPerSecond(steps, ask)); });
  gpu.device()->runtime().Wait(trained.stream());
  gpu.queue().Wait();
  return {row};
}

}  // namespace

std::vector<Case> GpuModelCases(const GpuSettings& settings, Gpu& gpu, PlainProducts& plain) {
  const Row large = {
      "model_mlp", "a step and update of mlp 4096-4096-4096-10, batch 8192, beside its products",
      "ms",        "0.85",
      true,        {},
      {},          {},
      {}};
  const Row small = {"model_softmax",
                     "steps with updates of softmax 784-10, batch 100, beside one kernel",
                     "steps/s",
                     "30000 steps/s",
                     false,
                     {},
                     {},
                     {},
                     {}};
  return {
      {{large.name}, [&settings, &gpu, &plain, large] { return MeasureLarge(settings, gpu, plain, large); }},
      {{small.name}, [&settings, &gpu, small] { return MeasureSmall(settings, gpu, small); }}};
}

}  // namespace dtrain::bench
