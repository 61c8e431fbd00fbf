// The part of WorkQueues that captures graphs and runs them.
#include <fmt/core.h>
#include <algorithm>

#include "base/check.h"
#include "gpu/cuda/fake/work_queues.h"

namespace dtrain::gpu::cuda {

void WorkQueues::Refuse(Capture* capture, const char* call, const char* why) {
  if (capture != nullptr && capture->invalidated_by.empty()) capture->invalidated_by = call;
  throw DeviceError(fmt::format("fake: {}: {}", call, why));
}

void WorkQueues::InvalidateCapture(StreamHandle stream, const char* call) {
  const Stream& at = At(stream);
  if (at.capture != nullptr && at.capture->invalidated_by.empty()) at.capture->invalidated_by = call;
}

void WorkQueues::InvalidateCapture(const char* call) {
  for (const auto& capture : captures_) {
    if (capture->thread == std::this_thread::get_id() && capture->invalidated_by.empty())
      capture->invalidated_by = call;
  }
}

void WorkQueues::RefuseInCapture(StreamHandle stream, const char* call) {
  const Stream& at = At(stream);
  if (at.capture != nullptr)
    Refuse(at.capture.get(), call, "operation not permitted when stream is capturing");
}

void WorkQueues::RefuseInCapture(const char* call) {
  for (const auto& capture : captures_) {
    if (capture->thread != std::this_thread::get_id()) continue;
    Refuse(capture.get(), call, "operation not permitted when this thread is capturing");
  }
}

void WorkQueues::BeginCapture(StreamHandle stream) {
  RefuseInCapture(stream, "cudaStreamBeginCapture");
  Stream& at = At(stream);
  at.capture = std::make_shared<Capture>();
  at.capture->origin = &at;
  at.capture->thread = std::this_thread::get_id();
  at.capture->streams = {&at};
  at.after.clear();
  captures_.push_back(at.capture);
}

GraphHandle WorkQueues::EndCapture(StreamHandle stream) {
  Stream& at = At(stream);
  const std::shared_ptr<Capture> capture = at.capture;
  if (capture == nullptr) Refuse(nullptr, "cudaStreamEndCapture", "the stream does not capture");
  if (capture->origin != &at)
    Refuse(capture.get(), "cudaStreamEndCapture", "the capture began in another stream");
  if (capture->thread != std::this_thread::get_id()) {
    Refuse(capture.get(), "cudaStreamEndCapture", "the capture began in another thread");
  }
  const bool joined = Joined(*capture);
  EndCapture(*capture);
  if (!capture->invalidated_by.empty()) {
    throw DeviceError(
        fmt::format("fake: cudaStreamEndCapture: the capture was spoilt by {}", capture->invalidated_by));
  }
  if (!joined) {
    throw DeviceError("fake: cudaStreamEndCapture: a stream of the capture was not joined again");
  }
  graphs_[++last_number_] = std::make_shared<const Nodes>(std::move(capture->nodes));
  return GraphHandle{last_number_};
}

void WorkQueues::AbortCapture(StreamHandle stream) {
  const std::shared_ptr<Capture> capture = At(stream).capture;
  if (capture != nullptr) EndCapture(*capture);
}

void WorkQueues::EndCapture(Capture& capture) {
  for (Stream* const stream : capture.streams) {
    stream->capture = nullptr;
    stream->after.clear();
  }
  captures_.erase(std::find_if(captures_.begin(), captures_.end(),
                               [&](const auto& other) { return other.get() == &capture; }));
}

// Whether all work of its streams comes before the end of the first stream.
bool WorkQueues::Joined(const Capture& capture) {
  std::set<int> before;
  std::vector<int> next(capture.origin->after.begin(), capture.origin->after.end());
  while (!next.empty()) {
    const int node = next.back();
    next.pop_back();
    if (!before.insert(node).second) continue;
    const std::set<int>& after = capture.nodes[static_cast<size_t>(node)].after;
    next.insert(next.end(), after.begin(), after.end());
  }
  return before.size() == capture.nodes.size();
}

void WorkQueues::Launch(StreamHandle stream, GraphHandle graph) {
  RefuseInCapture(stream, "cudaGraphLaunch");
  const auto at = graphs_.find(static_cast<uint64_t>(graph));
  DT_CHECK(at != graphs_.end(), "no graph, or none any more");
  AddPlain(stream, [nodes = at->second] { RunNodes(*nodes); });
}

// Runs the nodes in an order that the edges allow and that differs most from the order of the capture: of the
// nodes that are ready, the last one first.
void WorkQueues::RunNodes(const Nodes& nodes) {
  std::vector<size_t> waits_for(nodes.size());
  std::vector<std::vector<size_t>> then(nodes.size());
  std::set<size_t> ready;
  for (size_t i = 0; i < nodes.size(); ++i) {
    waits_for[i] = nodes[i].after.size();
    for (const int node : nodes[i].after) then[static_cast<size_t>(node)].push_back(i);
    if (waits_for[i] == 0) ready.insert(i);
  }
  while (!ready.empty()) {
    const size_t node = *ready.rbegin();
    ready.erase(node);
    nodes[node].work();
    for (const size_t next : then[node]) {
      if (--waits_for[next] == 0) ready.insert(next);
    }
  }
}

}  // namespace dtrain::gpu::cuda
