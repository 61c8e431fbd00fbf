// StepGraphs: the steps of a model on a device as CUDA graphs, one for each set of shapes and addresses. The
// first step of a kind is queued as it is, which also makes all that it needs; the second is captured; from
// then on one call does for all of it. Owner and thread: the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <tuple>

#include "gpu/cuda/queue.h"

namespace dtrain {

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

}  // namespace dtrain
