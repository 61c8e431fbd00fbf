#include "bench/gpu/trained.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "gpu/optimizer_ops.h"

namespace dtrain::bench {
namespace {

using gpu::cuda::Product;

constexpr float kRate = 1e-4f;
constexpr float kFirstWeights = 0.02f;  // times what Gpu::Floats draws

std::vector<uint8_t> Images(int64_t bytes) {
  std::mt19937 random(5);
  std::vector<uint8_t> images(static_cast<size_t>(bytes));
  std::generate(images.begin(), images.end(), [&] { return static_cast<uint8_t>(random()); });
  return images;
}

// Those of all layers, the first ones first.
std::vector<int64_t> Sizes(const ModelConfig& config) {
  std::vector<int64_t> sizes = {*config.inputs};
  sizes.insert(sizes.end(), config.hidden.begin(), config.hidden.end());
  sizes.push_back(*config.outputs);
  return sizes;
}

}  // namespace

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

}  // namespace dtrain::bench
