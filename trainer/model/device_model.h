// A dense model on one GPU, and its steps as CUDA graphs.
// Owner: the worker. Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "gpu/cuda/device.h"
#include "gpu/cuda/queue.h"
#include "gpu/ops.h"
#include "trainer/model/batch_stage.h"
#include "trainer/model/dense_model.h"
#include "trainer/model/model.h"

namespace dtrain {

// StepGraphs: the steps of a model on a device as CUDA graphs, one for each set of shapes and addresses. The
// first step of a kind is queued as it is, which also makes all that it needs; the second is captured; from
// then on one call does for all of it. Owner and thread: the model.
class StepGraphs {
 public:
  // Everything that a step's launches depend on.
  struct Kind {
    int64_t rows = 0;
    int slot = 0;
    bool as_bytes = false;
    const float* parameters = nullptr;
    const float* gradient = nullptr;
    bool counts = false;
    bool operator<(const Kind& other) const {
      return std::tie(rows, slot, as_bytes, parameters, gradient, counts) <
             std::tie(other.rows, other.slot, other.as_bytes, other.parameters, other.gradient, other.counts);
    }
  };

  explicit StepGraphs(gpu::cuda::Queue& queue) : queue_(queue) {}
  ~StepGraphs() { Clear(); }
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;

  // Launches the graph of this kind in `run`; where there is none, and it is not the kind's first step,
  // captures `work`, which the queue is given. False: `work` is to be queued by the caller: it is the kind's
  // first step, or capturing fails, which is tried a few times.
  bool Launch(const Kind& kind, gpu::cuda::StreamHandle run, const std::function<void()>& work);
  size_t count() const { return graphs_.size(); }

 private:
  struct Entry {
    bool captured = false;
    gpu::cuda::GraphHandle graph{};
  };
  void Clear();
  bool Capture(const std::function<void()>& work, gpu::cuda::GraphHandle* graph);

  gpu::cuda::Queue& queue_;
  std::map<Kind, Entry> graphs_;
  int failures_ = 0;
};

// DeviceModel: a dense model on one GPU. Batches are uploaded ahead (batch_stage.h), weights as they arrive,
// and each layer's gradient is downloaded while the layer below is computed. A step whose shapes and
// addresses come again is one CUDA graph. Parameters and gradients lie in this machine's memory, which is
// pinned where the system lets us; or, where `Placement::shared` is given, in the device's: then nothing is
// copied, and a step is done in the order of that stream, also behind End(), which waits for the result
// alone. Owner: the worker. Thread: one at a time.
class DeviceModel : public Model {
 public:
  struct Placement {
    std::shared_ptr<gpu::cuda::Device> device;  // shared with who else computes there
    // Shared with models that are given the same memory. Null with `shared`.
    std::shared_ptr<gpu::cuda::PinnedRanges> pinned;
    // The stream in which whoever updates the parameters works; null: parameters are not on the device.
    std::shared_ptr<gpu::cuda::SharedStream> shared{};
    bool check_finite = false;  // with `shared`: of each gradient
  };

  DeviceModel(const ModelConfig& config, const Layout& layout, int64_t max_rows, const Placement& placement);
  ~DeviceModel() override;

  const Layout& layout() const override { return layout_; }
  void Begin(const float* parameters, const Batch& batch, float* gradient, bool count_correct) override;
  StepResult End() override;
  int64_t outputs() const override { return net_.layers().back().outputs; }
  using Model::Evaluate;
  Evaluation Evaluate(const float* parameters, const Batch& batch, float* outputs) override;
  const float* Freeze(const float* parameters) override;
  void Arrived(const float* parameters, Range elements) override;
  void Stage(const Batch& batch) override { stage_.Upload(batch); }

  int64_t Keep(gpu::MatrixView<const uint8_t> bytes, gpu::MatrixView<const float> floats) override;

 private:
  // Written by the device, in pinned memory.
  struct Results {
    float loss;
    int64_t correct;
    int64_t non_finite;
  };

  bool shared() const { return run_ != nullptr; }
  gpu::cuda::StreamHandle run_stream() const { return shared() ? run_->handle() : compute_.stream(); }
  const float* ParametersOnDevice(const float* parameters);
  float* DownloadTo(float* gradient);
  void UploadAll(const float* parameters);
  NetBatch Read(BatchStage& stage, const DeviceBatch& batch);
  void QueueStep(const float* parameters, const DeviceBatch& batch, float* gradient, bool count_correct);
  void DownloadLayer(size_t layer, float* gradient);
  void Join(gpu::cuda::StreamHandle before, gpu::cuda::StreamHandle after);
  void QueueAlone(const std::function<void()>& work);
  void ResetResults(bool count_correct);
  void AwaitResults();
  StepResult TakeResults() const;

  const Layout layout_;
  const std::shared_ptr<gpu::cuda::Device> owner_;
  gpu::cuda::Device& device_;
  const std::shared_ptr<gpu::cuda::SharedStream> run_;
  const bool check_finite_;
  gpu::cuda::Queue compute_, uploads_, downloads_;
  gpu::Stream stream_;
  gpu::cuda::Buffer<float> values_;  // of the net
  DenseNet net_;
  gpu::cuda::Buffer<float> weights_;   // a copy: of those in this machine's memory, or of those frozen
  gpu::cuda::Buffer<float> gradient_;  // to be downloaded
  gpu::cuda::Buffer<float> inputs_;    // [max_rows, inputs], where rows are gathered
  gpu::cuda::PinnedBuffer<Results> results_;
  gpu::cuda::PinnedBuffer<float> outputs_;  // of an evaluation that wants them
  gpu::cuda::PinnedBuffer<float> bounce_;   // a gradient that is not downloaded to where it is wanted
  float* wanted_ = nullptr;                 // where the step's gradient is; null: it is downloaded to there
  std::unique_ptr<DeviceData> data_;
  BatchStage stage_, evaluation_stage_;
  const std::shared_ptr<gpu::cuda::PinnedRanges> pinned_;
  StepGraphs graphs_;
  std::vector<gpu::cuda::Event> layer_done_;
  gpu::cuda::Event uploaded_, downloaded_, joined_, done_;
  const float* announced_ = nullptr;  // whose changes are said
  bool begun_ = false;                // a step that is not ended
  const float* mirrored_ = nullptr;   // what weights_ is a copy of
};

}  // namespace dtrain
