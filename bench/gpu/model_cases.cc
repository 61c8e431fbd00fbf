// Steps of models that are entirely on the device: a large one, whose time is that of its products and a
// little more, and a small one, whose time is the fixed cost of a step.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

#include "base/clock.h"
#include "bench/gpu/gpu.h"
#include "bench/gpu/gpu_cases.h"
#include "bench/report/rows.h"
#include "gpu/optimizer_ops.h"
#include "trainer/config/model_config.h"
#include "trainer/model/device_model.h"

namespace dtrain::bench {
namespace {

using gpu::cuda::Product;

constexpr float kRate = 1e-4f;
constexpr float kFirstWeights = 0.02f;  // factor of the values of Gpu::Floats

std::vector<uint8_t> Images(int64_t bytes) {
  std::mt19937 random(5);
  std::vector<uint8_t> images(static_cast<size_t>(bytes));
  std::generate(images.begin(), images.end(), [&] { return static_cast<uint8_t>(random()); });
  return images;
}

// Returns the sizes of all layers, the inputs first.
std::vector<int64_t> Sizes(const ModelConfig& config) {
  std::vector<int64_t> sizes = {*config.inputs};
  sizes.insert(sizes.end(), config.hidden.begin(), config.hidden.end());
  sizes.push_back(*config.outputs);
  return sizes;
}

// Trained: a model with its parameters, its data and their updates on one device, as in a run whose ps and
// workers are threads of one process (trainer/device/device_store.h), but without messages. Owner and thread:
// one case.
class Trained {
 public:
  // Trains on `images` random rows of bytes. A batch is the next rows in a shuffled order.
  Trained(Gpu& gpu, const ModelConfig& model, int64_t images, int64_t batch);

  // Runs one step: the gradient of a batch, its loss on this machine, and sgd's update.
  void Step();
  // The stream in which a step ends.
  gpu::cuda::StreamHandle stream() const { return updates_.stream(); }
  // Returns the products of a step, with operands of their own.
  std::vector<gpu::cuda::Product> Products();

 private:
  Batch Next();

  Gpu& gpu_;
  const ModelConfig config_;
  const Layout layout_;
  const int64_t images_, batch_;
  const std::vector<uint8_t> table_;
  std::vector<int64_t> order_;
  std::vector<int32_t> labels_;
  gpu::cuda::Queue updates_;
  gpu::Stream update_stream_;
  gpu::cuda::Buffer<float> weights_, gradient_;
  DeviceModel model_;
  Batch staged_;
  uint64_t number_ = 0;
  int64_t next_ = 0;
  std::vector<gpu::cuda::Buffer<float>> places_;  // for Products()
};

// Returns a network with small initial weights and relu between its layers.
ModelConfig NetOf(int64_t inputs, const std::vector<int64_t>& hidden, int64_t outputs);

ModelConfig NetOf(int64_t inputs, const std::vector<int64_t>& hidden, int64_t outputs) {
  ModelConfig config;
  config.kind = hidden.empty() ? ModelKind::kSoftmax : ModelKind::kMlp;
  config.inputs = inputs;
  config.hidden = hidden;
  config.outputs = outputs;
  config.activation = Activation::kRelu;
  return config;
}

Trained::Trained(Gpu& gpu, const ModelConfig& model, int64_t images, int64_t batch)
    : gpu_(gpu),
      config_(model),
      layout_(PlaceVariables(ModelVariables(model), 1, {})),
      images_(images),
      batch_(batch),
      table_(Images(images * *model.inputs)),
      order_(static_cast<size_t>(images)),
      updates_(*gpu.device()),
      update_stream_(updates_),
      weights_(gpu.Floats(layout_.size)),
      gradient_(gpu.Empty<float>(layout_.size)),
      model_(model, layout_, batch, {gpu.device(), nullptr, updates_.shared_stream()}) {
  std::mt19937 random(6);
  std::iota(order_.begin(), order_.end(), 0);
  std::shuffle(order_.begin(), order_.end(), random);
  for (int64_t i = 0; i < images; ++i) labels_.push_back(static_cast<int32_t>(random() % *model.outputs));
  gpu::Scale(gpu.stream(), kFirstWeights, weights_.span());
  gpu.queue().Wait();
  model_.Keep({table_.data(), images_, *config_.inputs}, {});
  staged_ = Next();
}

Batch Trained::Next() {
  if (next_ + batch_ > images_) next_ = 0;
  Batch batch;
  batch.rows = batch_;
  batch.columns = *config_.inputs;
  batch.bytes = {{table_.data(), images_, *config_.inputs}, {order_.data() + next_, batch_}};
  batch.labels = labels_.data() + next_;
  batch.source = this;
  batch.number = ++number_;
  next_ += batch_;
  return batch;
}

void Trained::Step() {
  model_.Begin(weights_.data(), staged_, gradient_.data(), false);
  staged_ = Next();
  model_.Stage(staged_);
  model_.End();
  gpu::Update update;
  update.weights = weights_.span();
  update.gradient = reinterpret_cast<const std::byte*>(gradient_.data());
  update.updated = weights_.span();
  gpu::SgdStep(update_stream_, update, kRate);
}

std::vector<Product> Trained::Products() {
  const std::vector<int64_t> sizes = Sizes(config_);
  const auto place = [&](int64_t count) {
    places_.push_back(gpu_.Floats(count));
    return places_.back().data();
  };
  std::vector<float*> values = {place(batch_ * sizes.front())};
  std::vector<Product> products, gradients;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    const int64_t inputs = sizes[i], outputs = sizes[i + 1];
    const float* const w = place(inputs * outputs);
    values.push_back(place(batch_ * outputs));
    const float* const x = values[i];
    float* const y = values[i + 1];
    products.push_back({batch_, outputs, inputs, false, false, x, w, y, false});
    gradients.push_back({inputs, outputs, batch_, true, false, x, y, place(inputs * outputs), false});
    if (i > 0)
      gradients.push_back({batch_, inputs, outputs, false, true, y, w, place(batch_ * inputs), false});
  }
  products.insert(products.end(), gradients.rbegin(), gradients.rend());
  return products;
}

constexpr int kWarmSteps = 8;  // each slot is run directly, captured, and run as a graph
constexpr int kLargeSteps = 4;
constexpr int kSmallSteps = 3000;

double StepsPerSecond(int steps, const std::function<void()>& step) {
  const TimePoint begin = Clock::now();
  for (int i = 0; i < steps; ++i) step();
  return steps / std::chrono::duration<double>(Clock::now() - begin).count();
}

// Measures a step beside the products that it contains.
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

// Measures a step beside one kernel whose result this machine polls.
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
