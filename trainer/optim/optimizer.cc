#include "trainer/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "base/check.h"
#include "gpu/floats.h"
#include "gpu/optimizer_ops.h"
#include "trainer/optim/schedule.h"

namespace dtrain {
namespace {

float Rounded(double value) { return static_cast<float>(value); }

// What all have in common: the slots, and the config as an operation's arguments.
class SlottedOptimizer : public Optimizer {
 public:
  void Apply(const UpdateStep& step, int64_t first, const float* weights, float* updated,
             const std::byte* gradient, int64_t size) override {
    DT_CHECK(first >= 0 && size >= 0 && first + size <= size_, first, size, size_);
    gpu::Update update;
    update.weights = {weights, size};
    update.gradient = gradient;
    update.updated = {updated, size};
    update.scale = step.scale;
    if (config_.clip_value) update.clip_value = Rounded(*config_.clip_value);
    if (config_.kind != OptimizerKind::kFtrl) {  // which has its own
      update.l1 = Rounded(config_.l1);
      update.l2 = Rounded(config_.l2);
    }
    Step(step.number, first, update);
  }

  std::vector<Slot> Slots() override {
    std::vector<Slot> slots;
    for (auto& [name, values] : slots_) slots.push_back({name, values.span()});
    return slots;
  }

 protected:
  // Slots by name and initial value.
  SlottedOptimizer(const OptimizerConfig& config, int64_t size, gpu::cuda::Queue* queue,
                   std::initializer_list<std::pair<const char*, double>> slots)
      : config_(config), size_(size) {
    if (queue != nullptr) stream_ = gpu::Stream(*queue);
    for (const auto& [name, value] : slots) {
      slots_.emplace_back(name, queue == nullptr ? gpu::Floats(size, Rounded(value))
                                                 : gpu::Floats(*queue, size, Rounded(value), name));
    }
  }

  virtual void Step(int64_t number, int64_t first, const gpu::Update& update) = 0;

  // The elements of a slot that belong to `update`, which begins at element `first`.
  gpu::Span<float> Part(size_t slot, int64_t first, const gpu::Update& update) {
    return {slots_[slot].second.span().data + first, update.updated.size};
  }
  double Rate(int64_t number) const { return LearningRate(config_, number); }

  const OptimizerConfig config_;
  gpu::Stream stream_;

 private:
  const int64_t size_;
  std::vector<std::pair<std::string, gpu::Floats>> slots_;
};

class Sgd : public SlottedOptimizer {
 public:
  Sgd(const OptimizerConfig& config, int64_t size, gpu::cuda::Queue* queue)
      : SlottedOptimizer(config, size, queue, {}) {}

 private:
  void Step(int64_t number, int64_t, const gpu::Update& update) override {
    gpu::SgdStep(stream_, update, Rounded(Rate(number)));
  }
};

class Momentum : public SlottedOptimizer {
 public:
  Momentum(const OptimizerConfig& config, int64_t size, gpu::cuda::Queue* queue)
      : SlottedOptimizer(config, size, queue, {{"velocity", 0}}) {}

 private:
  void Step(int64_t number, int64_t first, const gpu::Update& update) override {
    gpu::MomentumStep(stream_, update, {Rounded(Rate(number)), Rounded(config_.momentum), config_.nesterov},
                      Part(0, first, update));
  }
};

class Adagrad : public SlottedOptimizer {
 public:
  Adagrad(const OptimizerConfig& config, int64_t size, gpu::cuda::Queue* queue)
      : SlottedOptimizer(config, size, queue, {{"accumulator", config.initial_accumulator}}) {}

 private:
  void Step(int64_t number, int64_t first, const gpu::Update& update) override {
    gpu::AdagradStep(stream_, update, {Rounded(Rate(number)), Rounded(config_.epsilon)},
                     Part(0, first, update));
  }
};

class Rmsprop : public SlottedOptimizer {
 public:
  Rmsprop(const OptimizerConfig& config, int64_t size, gpu::cuda::Queue* queue)
      : SlottedOptimizer(config, size, queue, {{"mean_square", 0}}) {}

 private:
  void Step(int64_t number, int64_t first, const gpu::Update& update) override {
    gpu::RmspropRule rule;
    rule.learning_rate = Rounded(Rate(number));
    rule.rho = Rounded(config_.rho);
    rule.new_share = Rounded(1 - config_.rho);
    rule.epsilon = Rounded(config_.epsilon);
    gpu::RmspropStep(stream_, update, rule, Part(0, first, update));
  }
};

class Adam : public SlottedOptimizer {
 public:
  Adam(const OptimizerConfig& config, int64_t size, gpu::cuda::Queue* queue)
      : SlottedOptimizer(config, size, queue, {{"m", 0}, {"v", 0}}) {}

 private:
  void Step(int64_t number, int64_t first, const gpu::Update& update) override {
    gpu::AdamRule rule;
    rule.step = Rounded(Rate(number) / (1 - WholePower(config_.beta1, number)));
    rule.beta1 = Rounded(config_.beta1);
    rule.new_share1 = Rounded(1 - config_.beta1);
    rule.beta2 = Rounded(config_.beta2);
    rule.new_share2 = Rounded(1 - config_.beta2);
    rule.root_scale = Rounded(1 / std::sqrt(1 - WholePower(config_.beta2, number)));
    rule.epsilon = Rounded(config_.epsilon);
    gpu::AdamStep(stream_, update, rule, Part(0, first, update), Part(1, first, update));
  }
};

class Ftrl : public SlottedOptimizer {
 public:
  Ftrl(const OptimizerConfig& config, int64_t size, gpu::cuda::Queue* queue)
      : SlottedOptimizer(config, size, queue, {{"z", 0}, {"n", config.initial_accumulator}}) {}

 private:
  void Step(int64_t number, int64_t first, const gpu::Update& update) override {
    gpu::FtrlRule rule;
    rule.inverse_rate = InverseRate(number);
    rule.inverse_rate_before = number == 1 ? 0 : InverseRate(number - 1);
    rule.beta = Rounded(config_.beta);
    rule.l1 = Rounded(config_.l1);
    rule.l2 = Rounded(config_.l2);
    gpu::FtrlStep(stream_, update, rule, Part(0, first, update), Part(1, first, update));
  }
  // A schedule may end at 0, of which there is no inverse: at this rate nothing moves either.
  float InverseRate(int64_t number) const { return Rounded(1 / std::max(Rate(number), 1e-20)); }
};

}  // namespace

std::unique_ptr<Optimizer> MakeOptimizer(const Config& config, int64_t size, gpu::cuda::Queue* queue) {
  const OptimizerConfig& optimizer = config.train.optimizer;
  switch (optimizer.kind) {
    case OptimizerKind::kSgd:
      return std::make_unique<Sgd>(optimizer, size, queue);
    case OptimizerKind::kMomentum:
      return std::make_unique<Momentum>(optimizer, size, queue);
    case OptimizerKind::kAdagrad:
      return std::make_unique<Adagrad>(optimizer, size, queue);
    case OptimizerKind::kRmsprop:
      return std::make_unique<Rmsprop>(optimizer, size, queue);
    case OptimizerKind::kAdam:
      return std::make_unique<Adam>(optimizer, size, queue);
    case OptimizerKind::kFtrl:
      return std::make_unique<Ftrl>(optimizer, size, queue);
  }
  DT_CHECK(false, static_cast<int>(optimizer.kind));
  return nullptr;
}

std::vector<std::string> SlotNames(const Config& config) {
  std::vector<std::string> names;
  for (const Slot& slot : MakeOptimizer(config, 1)->Slots()) names.push_back(slot.name);
  return names;
}

}  // namespace dtrain
