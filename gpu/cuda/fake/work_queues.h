// WorkQueues: the streams, events and graphs of the fake. What is queued is done when somebody asks for it
// and not before, so that a wait which is missing shows: the order between streams is only what events make
// it. Owner: FakeRuntime, which calls it under its lock. Thread: one at a time.
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
  void Delete(StreamHandle stream);  // what is queued there is still done
  void Delete(EventHandle event);
  void Delete(GraphHandle graph);

  int DeviceOf(StreamHandle stream) const;

  // To the end of the stream, or of the capture under way there.
  void Add(StreamHandle stream, Work work);
  // To the end of the stream in any case.
  void AddPlain(StreamHandle stream, Work work);
  void Record(EventHandle event, StreamHandle stream);
  void WaitFor(StreamHandle stream, EventHandle event);
  bool Done(EventHandle event) const;
  double Milliseconds(EventHandle begin, EventHandle end) const;

  // Until all that is queued there now is done.
  void Run(StreamHandle stream);
  // Until the event is reached.
  void Run(EventHandle event);
  void RunAll();
  // One piece: on the way to the event, or of any stream. False: there is none.
  bool Step(EventHandle event);
  bool Step();

  void BeginCapture(StreamHandle stream);
  GraphHandle EndCapture(StreamHandle stream);
  void AbortCapture(StreamHandle stream);
  void Launch(StreamHandle stream, GraphHandle graph);
  // DeviceError, and the capture is spoilt, where the stream, or this thread, captures.
  void RefuseInCapture(StreamHandle stream, const char* call);
  void RefuseInCapture(const char* call);
  // The same without the error, for a call that must not throw.
  void SpoilCapture(StreamHandle stream, const char* call);
  void SpoilCapture(const char* call);

  size_t queued() const;      // pieces
  std::string Leaks() const;  // "1 stream, 2 events" that nobody deleted; empty: none

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
    std::string spoilt;  // by which call
  };
  // One Record().
  struct Mark {
    std::shared_ptr<Stream> stream;
    bool reached = false;
    std::chrono::steady_clock::time_point at;
  };
  struct Event {
    int device;
    std::shared_ptr<Mark> mark;        // null: never recorded
    std::shared_ptr<Capture> capture;  // recorded in this one, after these nodes
    std::set<int> after;
  };
  struct Piece {
    Work work;
    std::shared_ptr<Mark> wait;  // or this
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
  std::map<uint64_t, std::shared_ptr<Stream>> streams_;  // a deleted one until it is empty
  std::map<uint64_t, std::unique_ptr<Event>> events_;
  std::map<uint64_t, std::shared_ptr<const Nodes>> graphs_;
  std::vector<std::shared_ptr<Capture>> captures_;  // under way
  uint64_t last_turn_ = 0;                          // the stream that Step() served last
};

}  // namespace dtrain::gpu::cuda
