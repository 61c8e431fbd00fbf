// A model on several devices, and the threads that they work in.
// Owner: the worker. Thread: one at a time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "gpu/ops.h"
#include "trainer/model/model.h"

namespace dtrain {

// ThreadTeam: threads that run the same job side by side, again and again: OpenMP's teams, for our own loops.
// They live as long as the team, so that a job costs a hand-over and no thread's start: 7 us for two members,
// 18 us for four. A member that waits sleeps and does not spin: where processors are shared with a ps or
// other workers, spinning for a moment first made it 70 us. The caller is member 0. Owner: a TowerModel.
// Thread: one caller at a time.
class ThreadTeam {
 public:
  // Members in all; 1 or more. UserError where the system gives no thread.
  explicit ThreadTeam(int64_t members);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  // job(i) by every member i; returns when all are through. What a member throws is thrown here, that of the
  // lowest member where there are several. No allocation. What a job wrote is seen by the caller, and by all
  // members in the next job.
  template <typename Job>
  void Run(const Job& job) {
    RunAll([](const void* run, int64_t member) { (*static_cast<const Job*>(run))(member); }, &job);
  }

 private:
  using Call = void (*)(const void* job, int64_t member);
  void RunAll(Call call, const void* job);
  void Serve(int64_t member);
  void RunOne(int64_t member);
  void Stop();

  std::mutex mutex_;
  std::condition_variable begun_;
  std::condition_variable ended_;
  int64_t round_ = 0;  // jobs begun; as all below, of the mutex, and the job itself is only read in a round
  int64_t busy_ = 0;   // threads that are not through with it
  bool over_ = false;
  Call call_ = nullptr;
  const void* job_ = nullptr;
  std::vector<std::exception_ptr> failures_;  // by member; each is written by that one
  std::vector<std::thread> threads_;          // of members 1, 2, ...
};

// TowerModel: one model on several devices, each a tower with memory and a thread of its own. A batch is
// dealt out by rows: the first `rows_each` to the first tower, and so on; the gradient is the mean over all
// rows. Sums are made in the order of the towers, so that the bits do not depend on which one was faster.
// Owner: the worker. Thread: one at a time, which works as the first tower.
class TowerModel : public Model {
 public:
  // One tower for each of `models`, all of one layout; the largest batch is of rows_each rows for each.
  TowerModel(std::vector<std::unique_ptr<Model>> models, int64_t rows_each);

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
    float* gradient = nullptr;  // of its own; the first tower writes where the sum will be
    Batch batch;                // its part of the batch at hand; so are the results
    Evaluation evaluation;
    // For sums.
    gpu::Stream stream;
    std::vector<const float*> inputs;
  };

  // The rows of one tower; of all towers that have any the first has some, at least.
  Batch PartOf(const Batch& batch, int64_t tower) const;
  int64_t TowersWithRows(const Batch& batch) const;
  int64_t Deal(const Batch& batch);
  template <typename Job>
  void RunFirst(int64_t towers, Job job);
  void SumGradients(int64_t towers, int64_t rows, float* gradient);
  void SumRange(int64_t towers, Range range, float* gradient, Tower* by);

  const int64_t rows_each_;
  std::vector<std::vector<float>>
      gradients_;  // of the towers; goes behind the models, which may have pinned it
  std::vector<Tower> towers_;
  std::vector<float> shares_;  // of the batch's rows, by tower
  // The step begun last.
  int64_t begun_towers_ = 0;
  int64_t begun_rows_ = 0;
  float* sum_ = nullptr;
  ThreadTeam team_;
};

// The model of a worker with so many groups of processors. `max_rows`: of the largest batch that one of them
// is given.
std::unique_ptr<Model> MakeTowers(const ModelConfig& config, const Layout& layout, int64_t max_rows,
                                  int64_t devices);

}  // namespace dtrain
