// WorkQueues: the streams, events and graphs of the fake. Queued work is done only when a caller waits for
// it, and streams are ordered by events only, so that a missing wait becomes visible. Owner: FakeRuntime,
// which calls it under its lock. Thread: one at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gpu/cuda/runtime.h"

namespace dtrain::gpu::cuda {

class WorkQueues {
 public:
  using Work = std::function<void()>;

  StreamHandle NewStream(int device);
  EventHandle NewEvent(int device);
  void Delete(StreamHandle stream);  // queued work is still done
  void Delete(EventHandle event);
  void Delete(GraphHandle graph);

  int DeviceOf(StreamHandle stream) const;

  // Appends to the stream, or to its capture if one is active.
  void Add(StreamHandle stream, Work work);
  // Appends to the stream even during a capture.
  void AddPlain(StreamHandle stream, Work work);
  void Record(EventHandle event, StreamHandle stream);
  void WaitFor(StreamHandle stream, EventHandle event);
  bool Done(EventHandle event) const;
  double Milliseconds(EventHandle begin, EventHandle end) const;

  // Runs until all work now queued in the stream is done.
  void Run(StreamHandle stream);
  // Runs until the event is reached.
  void Run(EventHandle event);
  void RunAll();
  // Does one piece of work: one that the event waits for, or one of any stream. Returns false if there is
  // none.
  bool Step(EventHandle event);
  bool Step();

  void BeginCapture(StreamHandle stream);
  GraphHandle EndCapture(StreamHandle stream);
  void AbortCapture(StreamHandle stream);
  void Launch(StreamHandle stream, GraphHandle graph);
  // Throws DeviceError and invalidates the capture, if the stream or this thread is capturing.
  void RefuseInCapture(StreamHandle stream, const char* call);
  void RefuseInCapture(const char* call);
  // The same without the error, for a call that must not throw.
  void InvalidateCapture(StreamHandle stream, const char* call);
  void InvalidateCapture(const char* call);

  size_t queued() const;      // pieces of work
  std::string Leaks() const;  // "1 stream, 2 events" that were never deleted; empty: none

 private:
  struct Stream;
  struct Node {
    Work work;
    std::set<int> after;  // nodes
  };
  using Nodes = std::vector<Node>;
  struct Capture {
    Stream* origin;
    std::thread::id thread;
    Nodes nodes;
    std::vector<Stream*> streams;
    std::string invalidated_by;  // by which call; empty: it is valid
  };
  // Mark: one Record() of an event.
  struct Mark {
    std::shared_ptr<Stream> stream;
    bool reached = false;
    std::chrono::steady_clock::time_point at;
  };
  struct Event {
    int device;
    std::shared_ptr<Mark> mark;        // null: never recorded
    std::shared_ptr<Capture> capture;  // if recorded during a capture: after these nodes
    std::set<int> after;
  };
  struct Piece {
    Work work;
    std::shared_ptr<Mark> wait;  // instead of work: wait for this mark
  };
  struct Stream {
    uint64_t number;
    int device;
    std::deque<Piece> pieces;
    int64_t done = 0;
    bool deleted = false;
    std::shared_ptr<Capture> capture;
    std::set<int> after;  // the nodes that its next one follows
  };

  Stream& At(StreamHandle stream) const;
  Event& At(EventHandle event) const;
  std::shared_ptr<Stream> Shared(StreamHandle stream) const;
  void RunOne(Stream& stream);
  [[noreturn]] void Refuse(Capture* capture, const char* call, const char* why);
  void EndCapture(Capture& capture);
  static bool Joined(const Capture& capture);
  static void RunNodes(const Nodes& nodes);

  uint64_t last_number_ = 0;
  std::map<uint64_t, std::shared_ptr<Stream>> streams_;  // a deleted one stays until it is empty
  std::map<uint64_t, std::unique_ptr<Event>> events_;
  std::map<uint64_t, std::shared_ptr<const Nodes>> graphs_;
  std::vector<std::shared_ptr<Capture>> captures_;  // active captures
  uint64_t last_turn_ = 0;                          // the stream that Step() served last
};

}  // namespace dtrain::gpu::cuda
