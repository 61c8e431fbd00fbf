#include "trainer/model/step_graphs.h"

namespace dtrain {
namespace {

// A run has some for each slot and each gradient buffer, of which there are as many as train.in_flight says.
// With more, shapes do not repeat.
constexpr size_t kMaxKinds = 1024;

// What spoilt a capture may have been another thread's.
constexpr int kMaxFailures = 3;

}  // namespace

bool StepGraphs::Launch(const Kind& kind, gpu::cuda::StreamHandle run, const std::function<void()>& work) {
  if (graphs_.size() >= kMaxKinds && graphs_.count(kind) == 0) Clear();
  const auto [at, is_first] = graphs_.try_emplace(kind);
  if (is_first) return false;
  Entry& entry = at->second;
  if (!entry.captured) {
    if (failures_ == kMaxFailures) return false;
    entry.captured = Capture(work, &entry.graph);
    if (!entry.captured) ++failures_;
    if (!entry.captured) return false;
  }
  queue_.runtime().Launch(run, entry.graph);
  return true;
}

// Nothing of `work` is done where it fails. A device that has failed says so again when it is queued.
bool StepGraphs::Capture(const std::function<void()>& work, gpu::cuda::GraphHandle* graph) {
  gpu::cuda::Runtime& runtime = queue_.runtime();
  try {
    runtime.BeginCapture(queue_.stream());
    try {
      work();
    } catch (...) {
      runtime.AbortCapture(queue_.stream());
      throw;
    }
    *graph = runtime.EndCapture(queue_.stream());
    return true;
  } catch (const gpu::cuda::DeviceError&) {
    return false;
  }
}

// A graph that still runs is kept by the runtime until it is done.
void StepGraphs::Clear() {
  for (const auto& [kind, entry] : graphs_) {
    if (entry.captured) queue_.runtime().Delete(entry.graph);
  }
  graphs_.clear();
}

}  // namespace dtrain
