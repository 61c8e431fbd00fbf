// Every optimizer's update of a range of weights: 12 bytes for each weight and 8 for each of its slots.
#include <fmt/core.h>

#include <memory>

#include "bench/gpu/gpu_cases.h"
#include "gpu/optimizer_ops.h"

namespace dtrain::bench {
namespace {

using gpu::cuda::Buffer;

constexpr float kRate = 1e-6f;

struct Weights {
  Buffer<float> from, to, slopes, slots[2];
  gpu::Update Next() const {
    gpu::Update update;
    update.weights = from.span();
    update.gradient = reinterpret_cast<const std::byte*>(slopes.data());
    update.updated = to.span();
    return update;
  }
};

void Sgd(gpu::Stream& stream, Weights& data) { gpu::SgdStep(stream, data.Next(), kRate); }
void ShapedSgd(gpu::Stream& stream, Weights& data) {
  gpu::Update update = data.Next();
  update.clip_value = 0.5f;
  update.l2 = 1e-3f;
  gpu::SgdStep(stream, update, kRate);
}
void Momentum(gpu::Stream& stream, Weights& data) {
  gpu::MomentumStep(stream, data.Next(), {kRate, 0.9f, false}, data.slots[0].span());
}
void Adagrad(gpu::Stream& stream, Weights& data) {
  gpu::AdagradStep(stream, data.Next(), {kRate, 1e-8f}, data.slots[0].span());
}
void Rmsprop(gpu::Stream& stream, Weights& data) {
  gpu::RmspropStep(stream, data.Next(), {kRate, 0.9f, 0.1f, 1e-8f}, data.slots[0].span());
}
void Adam(gpu::Stream& stream, Weights& data) {
  const gpu::AdamRule rule = {kRate, 0.9f, 0.1f, 0.999f, 0.001f, 1, 1e-8f};
  gpu::AdamStep(stream, data.Next(), rule, data.slots[0].span(), data.slots[1].span());
}
void Ftrl(gpu::Stream& stream, Weights& data) {
  gpu::FtrlStep(stream, data.Next(), {1 / kRate, 1 / kRate, 1, 0.1f, 0.1f}, data.slots[0].span(),
                data.slots[1].span());
}

struct Optimizer {
  const char* name;
  void (*step)(gpu::Stream&, Weights&);
  int slots;
};
constexpr Optimizer kOptimizers[] = {{"sgd", Sgd, 0},           {"shaped_sgd", ShapedSgd, 0},
                                     {"momentum", Momentum, 1}, {"adagrad", Adagrad, 1},
                                     {"rmsprop", Rmsprop, 1},   {"adam", Adam, 2},
                                     {"ftrl", Ftrl, 2}};

std::function<void()> Prepare(Gpu& gpu, const Optimizer& optimizer, int64_t count) {
  const auto data = std::make_shared<Weights>();
  data->from = gpu.Floats(count);
  data->to = gpu.Empty<float>(count);
  data->slopes = gpu.Floats(count);
  for (int i = 0; i < optimizer.slots; ++i) {
    data->slots[i] = gpu.Floats(count);
    gpu::Activate(gpu.stream(), gpu::Activation::kSigmoid, data->slots[i].span());  // no roots of less than 0
  }
  return [&gpu, data, step = optimizer.step] { step(gpu.stream(), *data); };
}

}  // namespace

std::vector<Case> GpuOptimizerCases(const GpuSettings& settings, Gpu& gpu) {
  const int64_t count = settings.size(int64_t{32} << 20, 5000);
  std::vector<Case> cases;
  for (const Optimizer& optimizer : kOptimizers) {
    const int64_t bytes = 12 + 8 * optimizer.slots;
    cases.push_back(
        MemoryCase(settings, gpu,
                   {fmt::format("optimizer_{}", optimizer.name),
                    fmt::format("{}, {} weights, {} bytes each", optimizer.name, count, bytes), bytes * count,
                    [&gpu, &optimizer, count] { return Prepare(gpu, optimizer, count); }}));
  }
  return cases;
}

}  // namespace dtrain::bench
