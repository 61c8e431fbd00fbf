// TowerModel: one model on several devices. Each device is a tower with its own memory and thread. A batch is
// divided by rows: the first `rows_each` to the first tower, and so on; the gradient is the mean over all
// rows, or their sum. Sums are made in the order of the towers, so that the bits do not depend on which one
// is faster. Owner: the worker. Thread: one at a time; it works as the first tower.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/ops.h"
#include "trainer/model/model.h"
#include "trainer/model/thread_team.h"

namespace dtrain {

class TowerModel : public Model {
 public:
  // One tower for each of `models`, which have the same layout. The largest batch has rows_each rows for each
  // tower. `reduce` is that of the models.
  TowerModel(std::vector<std::unique_ptr<Model>> models, int64_t rows_each, Reduce reduce = Reduce::kMean);

  const Layout& layout() const override { return towers_[0].model->layout(); }
  void Begin(const float* parameters, const Batch& batch, float* gradient, bool count_correct) override;
  StepResult End() override;
  int64_t outputs() const override { return towers_[0].model->outputs(); }
  using Model::Evaluate;
  Evaluation Evaluate(const float* parameters, const Batch& batch, float* outputs) override;
  void Arrived(const float* parameters, Range elements) override;
  void Stage(const Batch& batch) override;
  int64_t Keep(gpu::MatrixView<const uint8_t> bytes, gpu::MatrixView<const float> floats) override;

 private:
  struct Tower {
    std::unique_ptr<Model> model;
    float* gradient = nullptr;  // its own; the first tower writes to the sum
    Batch batch;                // its part of the current batch, as are the results
    Evaluation evaluation;
    // For sums.
    gpu::Stream stream;
    std::vector<const float*> inputs;
  };

  // Returns the rows of one tower. If any tower has rows, the first one does.
  Batch PartOf(const Batch& batch, int64_t tower) const;
  int64_t TowersWithRows(const Batch& batch) const;
  int64_t SplitRows(const Batch& batch);
  template <typename Job>
  void RunFirst(int64_t towers, Job job);
  void SumGradients(int64_t towers, int64_t rows, float* gradient);
  void SumRange(int64_t towers, Range range, float* gradient, Tower* by);

  const int64_t rows_each_;
  std::vector<std::vector<float>>
      gradients_;  // of the towers; destroyed after the models, which may have pinned it
  std::vector<Tower> towers_;
  const Reduce reduce_;
  std::vector<float> shares_;  // of each tower's gradient in that of the batch
  // The last step that was begun:
  int64_t begun_towers_ = 0;
  int64_t begun_rows_ = 0;
  float* sum_ = nullptr;
  ThreadTeam team_;
};

// Returns the model of a worker with `towers` groups of processors. `max_rows` is the size of the largest
// batch of one group.
std::unique_ptr<Model> MakeTowers(const ModelConfig& config, const Layout& layout, int64_t max_rows,
                                  int64_t devices, Reduce reduce = Reduce::kMean);

}  // namespace dtrain
