#include "gpu/cuda/fake/work_queues.h"

#include <algorithm>

#include "base/check.h"
#include "base/names.h"

namespace dtrain::gpu::cuda {

StreamHandle WorkQueues::NewStream(int device) {
  auto stream = std::make_shared<Stream>();
  stream->number = ++last_number_;
  stream->device = device;
  streams_[last_number_] = std::move(stream);
  return StreamHandle{last_number_};
}

EventHandle WorkQueues::NewEvent(int device) {
  auto event = std::make_unique<Event>();
  event->device = device;
  events_[++last_number_] = std::move(event);
  return EventHandle{last_number_};
}

void WorkQueues::Delete(StreamHandle stream) {
  Stream& at = At(stream);
  DT_CHECK(at.capture == nullptr, "a stream is deleted while it captures");
  at.deleted = true;
  if (at.pieces.empty()) streams_.erase(at.number);
}

void WorkQueues::Delete(EventHandle event) {
  DT_CHECK(events_.erase(static_cast<uint64_t>(event)) == 1, "no event, or none any more");
}

void WorkQueues::Delete(GraphHandle graph) {
  DT_CHECK(graphs_.erase(static_cast<uint64_t>(graph)) == 1, "no graph, or none any more");
}

std::shared_ptr<WorkQueues::Stream> WorkQueues::Shared(StreamHandle stream) const {
  const auto at = streams_.find(static_cast<uint64_t>(stream));
  DT_CHECK(at != streams_.end() && !at->second->deleted, "no stream, or none any more");
  return at->second;
}

WorkQueues::Stream& WorkQueues::At(StreamHandle stream) const { return *Shared(stream); }

WorkQueues::Event& WorkQueues::At(EventHandle event) const {
  const auto at = events_.find(static_cast<uint64_t>(event));
  DT_CHECK(at != events_.end(), "no event, or none any more");
  return *at->second;
}

int WorkQueues::DeviceOf(StreamHandle stream) const { return At(stream).device; }

void WorkQueues::Add(StreamHandle stream, Work work) {
  Stream& at = At(stream);
  if (at.capture == nullptr) return AddPlain(stream, std::move(work));
  at.capture->nodes.push_back({std::move(work), at.after});
  at.after = {static_cast<int>(at.capture->nodes.size()) - 1};
}

void WorkQueues::AddPlain(StreamHandle stream, Work work) {
  At(stream).pieces.push_back({std::move(work), nullptr});
}

void WorkQueues::Record(EventHandle event, StreamHandle stream) {
  Event& at = At(event);
  const auto where = Shared(stream);
  DT_CHECK(at.device == where->device, "event and stream are of different devices", at.device, where->device);
  at.capture = where->capture;
  at.after = where->after;
  at.mark = nullptr;
  if (at.capture != nullptr) return;
  at.mark = std::make_shared<Mark>();
  at.mark->stream = where;
  AddPlain(stream, [mark = at.mark] {
    mark->reached = true;
    mark->at = std::chrono::steady_clock::now();
  });
}

void WorkQueues::WaitFor(StreamHandle stream, EventHandle event) {
  const Event& at = At(event);
  Stream& where = At(stream);
  if (at.capture != nullptr) {
    // The event belongs to a capture, so the stream joins it, or is part of it already.
    const bool under_way = std::find(captures_.begin(), captures_.end(), at.capture) != captures_.end();
    if (!under_way)
      Refuse(where.capture.get(), "cudaStreamWaitEvent",
             "the event was recorded in a capture that has ended");
    if (where.capture == nullptr) {
      where.capture = at.capture;
      where.after.clear();
      at.capture->streams.push_back(&where);
    }
    if (where.capture != at.capture)
      Refuse(where.capture.get(), "cudaStreamWaitEvent", "it would merge two captures");
    where.after.insert(at.after.begin(), at.after.end());
    return;
  }
  if (where.capture != nullptr) {
    Refuse(where.capture.get(), "cudaStreamWaitEvent", "a captured stream depends on what is not captured");
  }
  if (at.mark != nullptr) where.pieces.push_back({nullptr, at.mark});
}

bool WorkQueues::Done(EventHandle event) const {
  const Event& at = At(event);
  if (at.capture != nullptr) throw DeviceError("fake: cudaEventQuery: the event was recorded in a capture");
  return at.mark == nullptr || at.mark->reached;
}

double WorkQueues::Milliseconds(EventHandle begin, EventHandle end) const {
  const Event& from = At(begin);
  const Event& to = At(end);
  if (from.mark == nullptr || to.mark == nullptr)
    throw DeviceError("fake: cudaEventElapsedTime: not recorded");
  if (!from.mark->reached || !to.mark->reached) throw DeviceError("fake: cudaEventElapsedTime: not ready");
  return std::chrono::duration<double, std::milli>(to.mark->at - from.mark->at).count();
}

void WorkQueues::Run(StreamHandle stream) {
  const auto at = Shared(stream);
  const int64_t end = at->done + static_cast<int64_t>(at->pieces.size());
  while (at->done < end) RunOne(*at);
}

void WorkQueues::Run(EventHandle event) {
  while (Step(event)) continue;
}

void WorkQueues::RunAll() {
  while (Step()) continue;
}

bool WorkQueues::Step(EventHandle event) {
  if (Done(event)) return false;
  const std::shared_ptr<Stream> stream = At(event).mark->stream;
  RunOne(*stream);
  return true;
}

bool WorkQueues::Step() {
  if (streams_.empty()) return false;
  auto at = streams_.upper_bound(last_turn_);
  for (size_t i = 0; i < streams_.size(); ++i, ++at) {
    if (at == streams_.end()) at = streams_.begin();
    if (at->second->pieces.empty()) continue;
    const std::shared_ptr<Stream> stream = at->second;
    last_turn_ = stream->number;
    RunOne(*stream);
    return true;
  }
  return false;
}

// Does one piece of work of the stream, or of the stream that it waits for.
void WorkQueues::RunOne(Stream& first) {
  Stream* stream = &first;
  // A wait is always for work that was queued before it, so this terminates.
  while (!stream->pieces.empty() && stream->pieces.front().wait != nullptr &&
         !stream->pieces.front().wait->reached) {
    stream = stream->pieces.front().wait->stream.get();
  }
  DT_CHECK(!stream->pieces.empty(), "a wait for what can never happen");
  const Piece piece = std::move(stream->pieces.front());
  stream->pieces.pop_front();
  if (piece.work) piece.work();
  ++stream->done;
  if (stream->deleted && stream->pieces.empty()) streams_.erase(stream->number);
}

size_t WorkQueues::queued() const {
  size_t pieces = 0;
  for (const auto& [number, stream] : streams_) pieces += stream->pieces.size();
  return pieces;
}

std::string WorkQueues::Leaks() const {
  const auto streams = std::count_if(streams_.begin(), streams_.end(),
                                     [](const auto& stream) { return !stream.second->deleted; });
  std::string text;
  if (streams > 0) text += Plural(streams, "stream") + ", ";
  if (!events_.empty()) text += Plural(static_cast<int64_t>(events_.size()), "event") + ", ";
  if (!graphs_.empty()) text += Plural(static_cast<int64_t>(graphs_.size()), "graph") + ", ";
  if (!text.empty()) text.resize(text.size() - 2);
  return text;
}

}  // namespace dtrain::gpu::cuda
