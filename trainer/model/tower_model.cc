#include "trainer/model/tower_model.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "trainer/config/model_config.h"

namespace dtrain {
namespace {

// Sums of fewer values are made by one thread, because a hand-over costs more.
constexpr int64_t kMinToShare = 1 << 18;

// Returns rows [first, first + count) of `batch`.
Batch Part(const Batch& batch, int64_t first, int64_t count) {
  Batch part = batch;
  part.rows = count;
  if (batch.inputs != nullptr) part.inputs = batch.inputs + first * batch.columns;
  if (batch.bytes.rows.data != nullptr) part.bytes.rows = {batch.bytes.rows.data + first, count};
  if (batch.table_rows.data != nullptr) part.table_rows = {batch.table_rows.data + first, count};
  if (batch.labels != nullptr) part.labels = batch.labels + first;
  if (batch.targets != nullptr) part.targets = batch.targets + first;
  for (const auto numbers : kNumbersOf<Batch>) {
    if (batch.*numbers != nullptr) part.*numbers = batch.*numbers + first;
  }
  // So that means of parts, each by its number of rows, are the mean by weight.
  part.weight = batch.weight * static_cast<double>(count) / static_cast<double>(batch.rows);
  return part;
}

}  // namespace

TowerModel::TowerModel(std::vector<std::unique_ptr<Model>> models, int64_t rows_each, Reduce reduce)
    : rows_each_(rows_each), reduce_(reduce), team_(static_cast<int64_t>(models.size())) {
  const auto values = static_cast<size_t>(models[0]->layout().size);
  towers_.reserve(models.size());
  for (auto& model : models) {
    Tower& tower = towers_.emplace_back();
    tower.model = std::move(model);
    if (towers_.size() > 1) tower.gradient = gradients_.emplace_back(values).data();
    tower.inputs.reserve(models.size());
  }
  shares_.reserve(models.size());
}

int64_t TowerModel::TowersWithRows(const Batch& batch) const {
  const auto all = static_cast<int64_t>(towers_.size());
  DT_CHECK(batch.rows <= all * rows_each_, batch.rows, all, rows_each_);
  return std::max<int64_t>(1, (batch.rows + rows_each_ - 1) / rows_each_);
}

Batch TowerModel::PartOf(const Batch& batch, int64_t tower) const {
  const int64_t first = tower * rows_each_;
  return Part(batch, first, std::min(rows_each_, batch.rows - first));
}

// Gives each tower its rows. Returns how many towers have any.
int64_t TowerModel::SplitRows(const Batch& batch) {
  const int64_t towers = TowersWithRows(batch);
  for (int64_t i = 0; i < towers; ++i) towers_[static_cast<size_t>(i)].batch = PartOf(batch, i);
  return towers;
}

void TowerModel::Stage(const Batch& batch) {
  const int64_t towers = TowersWithRows(batch);
  for (int64_t i = 0; i < towers; ++i) towers_[static_cast<size_t>(i)].model->Stage(PartOf(batch, i));
}

void TowerModel::Arrived(const float* parameters, Range elements) {
  for (Tower& tower : towers_) tower.model->Arrived(parameters, elements);
}

// Keeps the set on all devices or on none.
int64_t TowerModel::Keep(gpu::MatrixView<const uint8_t> bytes, gpu::MatrixView<const float> floats) {
  int64_t kept = 0;
  try {
    for (Tower& tower : towers_) kept = tower.model->Keep(bytes, floats);
  } catch (const Failure&) {
    for (Tower& tower : towers_) tower.model->Keep({}, {});
    throw;
  }
  return kept;
}

// Runs job(tower, number) on the first `towers` towers.
template <typename Job>
void TowerModel::RunFirst(int64_t towers, Job job) {
  if (towers == 1) return job(towers_[0], 0);
  team_.Run([&](int64_t member) {
    if (member < towers) job(towers_[static_cast<size_t>(member)], member);
  });
}

void TowerModel::Begin(const float* parameters, const Batch& batch, float* gradient, bool count_correct) {
  begun_towers_ = SplitRows(batch);
  begun_rows_ = batch.rows;
  sum_ = gradient;
  RunFirst(begun_towers_, [&](Tower& tower, int64_t number) {
    tower.model->Begin(parameters, tower.batch, number == 0 ? gradient : tower.gradient, count_correct);
  });
}

StepResult TowerModel::End() {
  StepResult all;
  double loss = 0;
  for (int64_t i = 0; i < begun_towers_; ++i) {
    Tower& tower = towers_[static_cast<size_t>(i)];
    const StepResult result = tower.model->End();
    if (begun_towers_ == 1) return result;
    loss += static_cast<double>(result.loss) * static_cast<double>(tower.batch.rows);
    all.correct += result.correct;
  }
  all.loss = static_cast<float>(loss / static_cast<double>(begun_rows_));
  SumGradients(begun_towers_, begun_rows_, sum_);
  return all;
}

// On entry `gradient` holds the first tower's, and on return that of all rows.
void TowerModel::SumGradients(int64_t towers, int64_t rows, float* gradient) {
  shares_.clear();
  for (int64_t i = 0; i < towers; ++i) {
    const auto own = static_cast<double>(towers_[static_cast<size_t>(i)].batch.rows);
    shares_.push_back(reduce_ == Reduce::kSum ? 1 : static_cast<float>(own / static_cast<double>(rows)));
  }
  const int64_t size = layout().size;
  if (size < kMinToShare) return SumRange(towers, {0, size}, gradient, &towers_[0]);
  RunFirst(towers, [&](Tower& tower, int64_t number) {
    SumRange(towers, {size * number / towers, size * (number + 1) / towers}, gradient, &tower);
  });
}

// Sums values [range.begin, range.end) of all gradients, on tower `by`.
void TowerModel::SumRange(int64_t towers, Range range, float* gradient, Tower* by) {
  by->inputs.assign(1, gradient + range.begin);
  for (int64_t i = 1; i < towers; ++i) {
    by->inputs.push_back(towers_[static_cast<size_t>(i)].gradient + range.begin);
  }
  gpu::WeightedSum(by->stream, by->inputs, shares_, {gradient + range.begin, range.size()});
}

Evaluation TowerModel::Evaluate(const float* parameters, const Batch& batch, float* outputs) {
  const int64_t towers = SplitRows(batch);
  RunFirst(towers, [&](Tower& tower, int64_t index) {
    float* const own = outputs == nullptr ? nullptr : outputs + index * rows_each_ * this->outputs();
    tower.evaluation = tower.model->Evaluate(parameters, tower.batch, own);
  });
  Evaluation sum = towers_[0].evaluation;
  for (int64_t i = 1; i < towers; ++i) sum.Add(towers_[static_cast<size_t>(i)].evaluation);
  return sum;
}

std::unique_ptr<Model> MakeTowers(const ModelConfig& config, const Layout& layout, int64_t max_rows,
                                  int64_t devices, Reduce reduce) {
  if (devices == 1) return MakeModel(config, layout, max_rows, reduce);
  std::vector<std::unique_ptr<Model>> models;
  for (int64_t i = 0; i < devices; ++i) models.push_back(MakeModel(config, layout, max_rows, reduce));
  return std::make_unique<TowerModel>(std::move(models), max_rows, reduce);
}

}  // namespace dtrain
