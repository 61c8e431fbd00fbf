#include "trainer/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <utility>

#include "base/check.h"
#include "base/large_vector.h"
#include "gpu/cuda/queue.h"
#include "gpu/optimizer_ops.h"
#include "trainer/config/config.h"

namespace dtrain {
namespace {

// Floats: an array of float32, in this machine's memory or in that of a queue's device.
class Floats {
 public:
  // Makes `size` times `value` in this machine's memory.
  Floats(int64_t size, float value) : here_(static_cast<size_t>(size), value) {}
  // Makes the same in the memory of the queue's device. Throws UserError if there is too little; `what` names
  // the array.
  Floats(gpu::cuda::Queue& queue, int64_t size, float value, const char* what);

  gpu::Span<float> span() {
    return there_.data() == nullptr ? gpu::Span<float>{here_.data(), static_cast<int64_t>(here_.size())}
                                    : there_.span();
  }

 private:
  LargeVector<float> here_;
  gpu::cuda::Buffer<float> there_;
};

// Fills in pieces, because this machine may lack memory for a whole copy.
Floats::Floats(gpu::cuda::Queue& queue, int64_t size, float value, const char* what)
    : there_(queue, size, what) {
  constexpr int64_t kPiece = 1 << 20;
  const std::vector<float> values(static_cast<size_t>(std::min(size, kPiece)), value);
  for (int64_t begin = 0; begin < size; begin += kPiece) {
    const int64_t count = std::min(kPiece, size - begin);
    queue.Copy(there_.data() + begin, values.data(), count * static_cast<int64_t>(sizeof(float)));
  }
  queue.Wait();
}

float Rounded(double value) { return static_cast<float>(value); }

// SlottedOptimizer: the common part of all optimizers: the slots, and the config as arguments of an
// operation.
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
    if (step.decay && config_.kind != OptimizerKind::kFtrl) {  // FTRL has its own l1 and l2
      update.l1 = Rounded(config_.l1);
      update.l2 = Rounded(config_.l2);
    }
    Step(step, first, update);
  }

  std::vector<Slot> Slots() override {
    std::vector<Slot> slots;
    for (auto& [name, values] : slots_) slots.push_back({name, values.span()});
    return slots;
  }

 protected:
  // `slots`: their names and initial values.
  SlottedOptimizer(const OptimizerConfig& config, int64_t size, gpu::cuda::Queue* queue,
                   std::initializer_list<std::pair<const char*, double>> slots)
      : config_(config), size_(size) {
    if (queue != nullptr) stream_ = gpu::Stream(*queue);
    for (const auto& [name, value] : slots) {
      slots_.emplace_back(
          name, queue == nullptr ? Floats(size, Rounded(value)) : Floats(*queue, size, Rounded(value), name));
    }
  }

  virtual void Step(const UpdateStep& step, int64_t first, const gpu::Update& update) = 0;

  // Returns the elements of a slot for `update`, which begins at element `first`.
  gpu::Span<float> Part(size_t slot, int64_t first, const gpu::Update& update) {
    return {slots_[slot].second.span().data + first, update.updated.size};
  }
  double Rate(const UpdateStep& step) const { return LearningRate(config_, step.number, step.decay_steps); }

  const OptimizerConfig config_;
  gpu::Stream stream_;

 private:
  const int64_t size_;
  std::vector<std::pair<std::string, Floats>> slots_;
};

class Sgd : public SlottedOptimizer {
 public:
  Sgd(const OptimizerConfig& config, int64_t size, gpu::cuda::Queue* queue)
      : SlottedOptimizer(config, size, queue, {}) {}

 private:
  void Step(const UpdateStep& step, int64_t, const gpu::Update& update) override {
    gpu::SgdStep(stream_, update, Rounded(Rate(step)));
  }
};

class Momentum : public SlottedOptimizer {
 public:
  Momentum(const OptimizerConfig& config, int64_t size, gpu::cuda::Queue* queue)
      : SlottedOptimizer(config, size, queue, {{"velocity", 0}}) {}

 private:
  void Step(const UpdateStep& step, int64_t first, const gpu::Update& update) override {
    gpu::MomentumStep(stream_, update, {Rounded(Rate(step)), Rounded(config_.momentum), config_.nesterov},
                      Part(0, first, update));
  }
};

class Adagrad : public SlottedOptimizer {
 public:
  Adagrad(const OptimizerConfig& config, int64_t size, gpu::cuda::Queue* queue)
      : SlottedOptimizer(config, size, queue, {{"accumulator", config.initial_accumulator}}) {}

 private:
  void Step(const UpdateStep& step, int64_t first, const gpu::Update& update) override {
    gpu::AdagradStep(stream_, update, {Rounded(Rate(step)), Rounded(config_.epsilon)},
                     Part(0, first, update));
  }
};

class Rmsprop : public SlottedOptimizer {
 public:
  Rmsprop(const OptimizerConfig& config, int64_t size, gpu::cuda::Queue* queue)
      : SlottedOptimizer(config, size, queue, {{"mean_square", 0}}) {}

 private:
  void Step(const UpdateStep& step, int64_t first, const gpu::Update& update) override {
    gpu::RmspropRule rule;
    rule.learning_rate = Rounded(Rate(step));
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

 protected:
  void Step(const UpdateStep& step, int64_t first, const gpu::Update& update) override {
    gpu::AdamRule rule;
    rule.step = Rounded(Rate(step) / (1 - WholePower(config_.beta1, step.age())));
    rule.beta1 = Rounded(config_.beta1);
    rule.new_share1 = Rounded(1 - config_.beta1);
    rule.beta2 = Rounded(config_.beta2);
    rule.new_share2 = Rounded(1 - config_.beta2);
    rule.root_scale = Rounded(1 / std::sqrt(1 - WholePower(config_.beta2, step.age())));
    rule.epsilon = Rounded(config_.epsilon);
    gpu::AdamStep(stream_, update, rule, Part(0, first, update), Part(1, first, update));
  }
};

// Adamw: Adam with decoupled weight decay (Loshchilov and Hutter 2019): the weights shrink, and Adam's step
// starts from there.
class Adamw : public Adam {
 public:
  using Adam::Adam;

 private:
  void Step(const UpdateStep& step, int64_t first, const gpu::Update& update) override {
    if (!step.decay) return Adam::Step(step, first, update);
    const float* const weights = update.weights.data;
    const float kept = Rounded(1 - Rate(step) * config_.weight_decay);
    gpu::WeightedSum(stream_, {&weights, 1}, {&kept, 1}, update.updated);
    gpu::Update shrunk = update;
    shrunk.weights = update.updated;
    Adam::Step(step, first, shrunk);
  }
};

class Ftrl : public SlottedOptimizer {
 public:
  Ftrl(const OptimizerConfig& config, int64_t size, gpu::cuda::Queue* queue)
      : SlottedOptimizer(config, size, queue, {{"z", 0}, {"n", config.initial_accumulator}}) {}

 private:
  void Step(const UpdateStep& step, int64_t first, const gpu::Update& update) override {
    gpu::FtrlRule rule;
    rule.inverse_rate = InverseRate(step);
    // What the slots had before the first update of the run counts at that update's rate.
    UpdateStep before = step;
    before.number = std::max<int64_t>(step.number - 1, 1);
    rule.inverse_rate_before = step.age() == 1 ? 0 : InverseRate(before);
    rule.beta = Rounded(config_.beta);
    rule.l1 = step.decay ? Rounded(config_.l1) : 0;
    rule.l2 = step.decay ? Rounded(config_.l2) : 0;
    gpu::FtrlStep(stream_, update, rule, Part(0, first, update), Part(1, first, update));
  }
  // A schedule may end at 0, which has no inverse; at 1e-20 the weights do not move either.
  float InverseRate(const UpdateStep& step) const { return Rounded(1 / std::max(Rate(step), 1e-20)); }
};

}  // namespace

std::unique_ptr<Optimizer> MakeOptimizer(const OptimizerConfig& optimizer, int64_t size,
                                         gpu::cuda::Queue* queue) {
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
    case OptimizerKind::kAdamw:
      return std::make_unique<Adamw>(optimizer, size, queue);
    case OptimizerKind::kFtrl:
      return std::make_unique<Ftrl>(optimizer, size, queue);
  }
  DT_CHECK(false, static_cast<int>(optimizer.kind));
  return nullptr;
}

std::unique_ptr<Optimizer> MakeOptimizer(const Config& config, int64_t size, gpu::cuda::Queue* queue) {
  return MakeOptimizer(OptimizerOf(config.train, ModelHalf::kOther).values, size, queue);
}

namespace {

std::vector<std::string> NamesOf(const OptimizerConfig& optimizer) {
  std::vector<std::string> names;
  for (const Slot& slot : MakeOptimizer(optimizer, 1)->Slots()) names.push_back(slot.name);
  return names;
}

}  // namespace

ModelSlots SlotsOf(const Config& config) {
  return ModelSlots(SlotNames(config), NamesOf(OptimizerOf(config.train, ModelHalf::kLinear).values));
}

std::vector<std::string> SlotNames(const Config& config) {
  return NamesOf(OptimizerOf(config.train, ModelHalf::kOther).values);
}

std::vector<float> InitialSlots(const OptimizerConfig& config) {
  const std::unique_ptr<Optimizer> optimizer = MakeOptimizer(config, 1);  // owns the values of the slots
  std::vector<float> values;
  for (const Slot& slot : optimizer->Slots()) values.push_back(slot.values[0]);
  return values;
}

namespace {

constexpr double kPi = 3.14159265358979323846;
constexpr double kMaxRate = 1e30;  // finite as a float, as are its products with usual gradients

// Returns the part of the learning rate that is left after `updates` updates; `share` of decay_steps has
// passed.
double Decay(const ScheduleConfig& schedule, int64_t updates, double share) {
  switch (schedule.kind) {
    case ScheduleKind::kStep:
      return WholePower(schedule.decay_rate, updates / schedule.decay_steps);
    case ScheduleKind::kExponential:
      return std::pow(schedule.decay_rate, share);
    case ScheduleKind::kInverseTime:
      return 1 / (1 + schedule.decay_rate * share);
    case ScheduleKind::kConstant:
    case ScheduleKind::kCosine:
      break;
  }
  return 1;
}

}  // namespace

double WholePower(double base, int64_t exponent) {
  double power = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 == 1) power *= base;
  }
  return power;
}

double LearningRate(const OptimizerConfig& optimizer, int64_t number, int64_t decay_steps) {
  const ScheduleConfig& schedule = optimizer.schedule;
  const double full = optimizer.learning_rate;
  if (number <= schedule.warmup_steps) {
    return full * (static_cast<double>(number) / static_cast<double>(schedule.warmup_steps));
  }
  if (schedule.kind == ScheduleKind::kConstant) return full;
  const int64_t updates = number - 1 - schedule.warmup_steps;
  const int64_t all = schedule.decay_steps == kAutoDecay ? decay_steps : schedule.decay_steps;
  const double share = static_cast<double>(updates) / static_cast<double>(all);
  if (schedule.kind != ScheduleKind::kCosine) {
    return std::min(full * Decay(schedule, updates, share), kMaxRate);
  }
  const double end = schedule.end_learning_rate;
  return share >= 1 ? end : end + (full - end) * (1 + std::cos(kPi * share)) / 2;
}

double ClipScale(const gpu::SquareSum& squares, double clip_norm) {
  if (!squares.finite) return 1;
  const double norm = std::sqrt(gpu::Total(squares));
  return norm > clip_norm ? clip_norm / norm : 1;
}

void ClipToNorm(double clip_norm, gpu::Span<float> gradient) {
  gpu::Stream stream;
  gpu::SquareSum squares;
  gpu::AddSquares(stream, reinterpret_cast<const std::byte*>(gradient.data), gradient.size, &squares);
  const double scale = ClipScale(squares, clip_norm);
  if (scale < 1) gpu::Scale(stream, static_cast<float>(scale), gradient);
}

}  // namespace dtrain
