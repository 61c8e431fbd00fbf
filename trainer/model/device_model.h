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

// StepGraphs: the steps of a model on a device as CUDA graphs, one for each kind, which is a set of shapes
// and addresses. The first step of a kind is queued directly, which also allocates what it needs; the second
// is captured; from then on one call launches it. Owner and thread: the model's.
class StepGraphs {
 public:
  // Kind: everything that a step's launches depend on.
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

  // Launches the graph of this kind in `run`. If there is none yet, and this is not the kind's first step,
  // captures `work` first. Returns false if the caller must queue `work` itself: at the kind's first step, or
  // if capturing fails, which is tried a few times.
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
// addresses repeat is one CUDA graph.
// Parameters and gradients are in this machine's memory, which is pinned if the system allows it. With
// `Placement::shared` they are in the device's memory instead: nothing is copied, and a step runs in the
// order of that stream; End() then waits only for the step's result.
// Owner: the worker. Thread: one at a time.
class DeviceModel : public Model {
 public:
  struct Placement {
    std::shared_ptr<gpu::cuda::Device> device;  // shared with the other users of the device
    // Shared with models that use the same memory. Null with `shared`.
    std::shared_ptr<gpu::cuda::PinnedRanges> pinned;
    // The stream in which the parameters are updated; null: they are not on the device.
    std::shared_ptr<gpu::cuda::SharedStream> shared{};
    bool check_finite = false;  // with `shared`: checks each gradient
  };

  DeviceModel(const ModelConfig& config, const Layout& layout, int64_t max_rows, const Placement& placement,
              Reduce reduce = Reduce::kMean);
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
  gpu::cuda::Buffer<float> values_;  // for the net
  DenseNet net_;
  gpu::cuda::Buffer<float> weights_;   // a copy of the caller's or of the frozen weights
  gpu::cuda::Buffer<float> gradient_;  // to be downloaded
  gpu::cuda::Buffer<float> inputs_;    // [max_rows, inputs], for gathered rows
  gpu::cuda::PinnedBuffer<Results> results_;
  gpu::cuda::PinnedBuffer<float> outputs_;  // of an evaluation that wants them
  gpu::cuda::PinnedBuffer<float> staging_;  // receives a gradient whose destination cannot be pinned
  float* wanted_ = nullptr;  // where the caller wants the step's gradient; null: it is downloaded directly
  std::unique_ptr<DeviceData> data_;
  BatchStage stage_, evaluation_stage_;
  const std::shared_ptr<gpu::cuda::PinnedRanges> pinned_;
  StepGraphs graphs_;
  std::vector<gpu::cuda::Event> layer_done_;
  gpu::cuda::Event uploaded_, downloaded_, joined_, done_;
  const float* announced_ = nullptr;  // the parameters whose changes are reported
  bool begun_ = false;                // a step has begun and not ended
  const float* mirrored_ = nullptr;   // what weights_ is a copy of
};

}  // namespace dtrain
