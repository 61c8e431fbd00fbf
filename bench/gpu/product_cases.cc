// The products of dense layers as operations make them (Queue::Multiply), beside direct calls.
#include <fmt/core.h>

#include <algorithm>

#include "bench/gpu/gpu_cases.h"
#include "bench/report/rows.h"

namespace dtrain::bench {
namespace {

using gpu::cuda::Buffer;
using gpu::cuda::Product;

constexpr double kMicros = 1000;  // per millisecond
constexpr double kTurnMs = 20;

// A layer applied to a batch.
struct Layer {
  int64_t rows, inputs, outputs;
};

struct Named {
  const char* name;
  const char* what;
  Product (*of)(const Layer& layer, const float* inputs, const float* weights, float* outputs, float* slopes);
};

// The three products of x [rows, inputs], w [inputs, outputs] and y [rows, outputs]; each computes one of
// them from the other two.
constexpr Named kProducts[] = {
    {"forward", "x w",
     [](const Layer& l, const float* x, const float* w, float* y, float*) {
       return Product{l.rows, l.outputs, l.inputs, false, false, x, w, y, false};
     }},
    {"gradient", "x^T dy",
     [](const Layer& l, const float* x, const float*, float* y, float* out) {
       return Product{l.inputs, l.outputs, l.rows, true, false, x, y, out, false};
     }},
    {"input_gradient", "dy w^T",
     [](const Layer& l, const float*, const float* w, float* y, float* out) {
       return Product{l.rows, l.inputs, l.outputs, false, true, y, w, out, false};
     }},
};

std::vector<Row> Measure(const GpuSettings& settings, Gpu& gpu, PlainProducts& plain, const Layer& layer,
                         const Named& named, Row row) {
  const auto [rows, inputs, outputs] = layer;
  const Buffer<float> x = gpu.Floats(rows * inputs), w = gpu.Floats(inputs * outputs),
                      y = gpu.Floats(rows * outputs),
                      out = gpu.Empty<float>(std::max(rows, outputs) * inputs);
  const std::vector<Product> products = {named.of(layer, x.data(), w.data(), y.data(), out.data())};
  const auto ours = [&](int repeats) {
    return gpu.Milliseconds(repeats, [&] { gpu.queue().Multiply(products.front()); });
  };
  plain.Milliseconds(products, settings.repeats(3));
  ours(settings.repeats(3));
  const double once = ours(settings.repeats(3));
  const int repeats = settings.repeats(static_cast<int>(std::clamp(kTurnMs / once, 2.0, 1000.0)));
  TakeTurns(
      settings.report.rounds, [&] { row.dtrain.push_back(ours(repeats) * kMicros); },
      [&] { row.limit.push_back(plain.Milliseconds(products, repeats) * kMicros); });
  return {row};
}

}  // namespace

std::vector<Case> GpuProductCases(const GpuSettings& settings, Gpu& gpu, PlainProducts& plain) {
  std::vector<Layer> layers = {{8192, 4096, 4096}, {8192, 4096, 10}, {1024, 1024, 1024},
                               {8192, 784, 100},   {100, 784, 100},  {100, 784, 10}};
  if (settings.smoke) layers = {{7, 5, 3}};
  std::vector<Case> cases;
  for (const Layer& layer : layers) {
    for (const Named& named : kProducts) {
      const std::string shape = fmt::format("{}x{}x{}", layer.rows, layer.inputs, layer.outputs);
      const Row row = {
          fmt::format("product_{}_{}", named.name, shape),
          fmt::format("{}, {} rows, {} to {}", named.what, layer.rows, layer.inputs, layer.outputs),
          "us",
          "0.95",
          true,
          {},
          {},
          {},
          {}};
      cases.push_back({{row.name}, [&settings, &gpu, &plain, layer, &named, row] {
                         return Measure(settings, gpu, plain, layer, named, row);
                       }});
    }
  }
  return cases;
}

}  // namespace dtrain::bench
