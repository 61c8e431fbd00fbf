#include <doctest/doctest.h>

#include <functional>
#include <thread>
#include <utility>

#include "gpu/cuda/fake/fake_test_util.h"

namespace dtrain::gpu::cuda {
namespace {

TEST_CASE("fake graph: what is captured is done at each launch, in any stream, and not before") {
  Rig b;
  b.ToDevice(b.stream);
  b.runtime.BeginCapture(b.stream);
  b.Scale(b.stream, 2);
  b.ToOut(b.stream);
  const GraphHandle graph = b.runtime.EndCapture(b.stream);
  b.runtime.Wait(b.stream);
  CHECK(b.Out() == Floats{0, 0, 0, 0});
  b.runtime.Launch(b.stream, graph);
  b.runtime.Wait(b.stream);
  CHECK(b.Out() == Floats{2, 2, 2, 2});
  b.runtime.Launch(b.other, graph);
  b.runtime.Launch(b.other, graph);
  b.runtime.Delete(graph);
  b.runtime.Wait(b.other);
  CHECK(b.Out() == Floats{8, 8, 8, 8});
  CHECK(b.runtime.counts().graph_launches == 3);
  CHECK(b.runtime.counts().launches == 1);
  CHECK(b.runtime.counts().kernels == 3);
}

// Scales by 2 here, then by 3 in the other stream, then to `out` here; `wait_*`: with the edges between them.
GraphHandle CaptureFork(Rig* b, bool wait_there) {
  const EventHandle back = b->runtime.NewEvent(0);
  b->runtime.BeginCapture(b->stream);
  b->ToDevice(b->stream);
  b->runtime.Record(b->event, b->stream);
  b->runtime.WaitFor(b->other, b->event);
  b->Scale(b->other, 3);
  if (wait_there) {
    b->runtime.Record(back, b->other);
    b->runtime.WaitFor(b->stream, back);
  }
  b->ToOut(b->stream);
  b->runtime.Record(back, b->other);
  b->runtime.WaitFor(b->stream, back);
  b->runtime.Delete(back);
  return b->runtime.EndCapture(b->stream);
}

TEST_CASE("fake graph: a stream that waits for an event of the capture is of it until it is joined") {
  Rig b;
  const GraphHandle graph = CaptureFork(&b, true);
  b.runtime.Launch(b.stream, graph);
  b.runtime.Wait(b.stream);
  CHECK(b.Out() == Floats{3, 3, 3, 3});
  // Both streams are as they were.
  b.Scale(b.other, 2);
  b.runtime.Wait(b.other);
  b.ToOut(b.stream);
  b.runtime.Wait(b.stream);
  CHECK(b.Out() == Floats{6, 6, 6, 6});
  b.runtime.Delete(graph);
}

TEST_CASE("fake graph: an edge that is missing shows") {
  Rig b;
  const GraphHandle graph = CaptureFork(&b, false);
  b.runtime.Launch(b.stream, graph);
  b.runtime.Wait(b.stream);
  CHECK(b.Out() == Floats{1, 1, 1, 1});
  b.runtime.Delete(graph);
}

TEST_CASE("fake graph: a stream that is not joined again fails the capture") {
  Rig b;
  b.runtime.BeginCapture(b.stream);
  b.runtime.Record(b.event, b.stream);
  b.runtime.WaitFor(b.other, b.event);
  b.Scale(b.other, 1);
  CHECK_THROWS_AS(b.runtime.EndCapture(b.stream), DeviceError);
  // Both are out of it.
  b.runtime.Wait(b.stream);
  b.runtime.Wait(b.other);
}

TEST_CASE("fake graph: what a capture does not allow throws and spoils it") {
  Floats plain(4);
  const EventHandle* old = nullptr;
  const std::pair<const char*, std::function<void(Rig&)>> calls[] = {
      {"Allocate", [](Rig& b) { b.runtime.Allocate(b.stream, 1); }},
      {"AllocatePinned", [](Rig& b) { b.runtime.AllocatePinned(1); }},
      {"Pin", [&](Rig& b) { b.runtime.Pin(plain.data(), kBytes); }},
      {"NewBlas", [](Rig& b) { b.runtime.NewBlas(b.stream, false); }},
      {"Wait", [](Rig& b) { b.runtime.Wait(b.stream); }},
      {"from plain", [&](Rig& b) { b.runtime.Copy(b.stream, b.device, plain.data(), kBytes); }},
      {"to plain", [&](Rig& b) { b.runtime.Copy(b.stream, plain.data(), b.device, kBytes); }},
      {"BeginCapture", [](Rig& b) { b.runtime.BeginCapture(b.stream); }},
      {"WaitFor", [&](Rig& b) { b.runtime.WaitFor(b.stream, *old); }},
  };
  for (const auto& [name, call] : calls) {
    CAPTURE(name);
    Rig b;
    b.runtime.Record(b.event, b.other);
    old = &b.event;
    b.runtime.BeginCapture(b.stream);
    CHECK_THROWS_AS(call(b), DeviceError);
    CHECK_THROWS_AS(b.runtime.EndCapture(b.stream), DeviceError);
    b.Scale(b.stream, 1);
  }
}

TEST_CASE("fake graph: a capture ends in the stream and in the thread in which it began") {
  Rig b;
  CHECK_THROWS_AS(b.runtime.EndCapture(b.stream), DeviceError);
  b.runtime.BeginCapture(b.stream);
  std::thread([&] { CHECK_THROWS_AS(b.runtime.EndCapture(b.stream), DeviceError); }).join();
  b.runtime.Record(b.event, b.stream);
  b.runtime.WaitFor(b.other, b.event);
  CHECK_THROWS_AS(b.runtime.EndCapture(b.other), DeviceError);
  b.runtime.AbortCapture(b.stream);
}

TEST_CASE("fake graph: memory that is freed during a capture is gone, and the capture spoilt") {
  Rig b;
  void* const block = b.runtime.Allocate(b.stream, 1);
  b.runtime.BeginCapture(b.stream);
  b.runtime.Free(b.stream, block);
  CHECK_THROWS_AS(b.runtime.EndCapture(b.stream), DeviceError);
}

TEST_CASE("fake graph: an event of a capture can be neither asked nor waited for outside") {
  Rig b;
  b.runtime.BeginCapture(b.stream);
  b.runtime.Record(b.event, b.stream);
  CHECK_THROWS_AS(b.runtime.Done(b.event), DeviceError);
  CHECK_THROWS_AS(b.runtime.Wait(b.event), DeviceError);
  b.runtime.AbortCapture(b.stream);
  CHECK_THROWS_AS(b.runtime.WaitFor(b.other, b.event), DeviceError);
  b.runtime.Record(b.event, b.stream);
  b.runtime.Wait(b.event);
}

TEST_CASE("fake graph: an aborted capture leaves nothing") {
  Rig b;
  b.ToDevice(b.stream);
  b.runtime.BeginCapture(b.stream);
  b.Scale(b.stream, 9);
  b.runtime.AbortCapture(b.stream);
  b.runtime.AbortCapture(b.stream);
  b.ToOut(b.stream);
  b.runtime.Wait(b.stream);
  CHECK(b.Out() == Floats{1, 1, 1, 1});
}

TEST_CASE("fake graph: a block that a graph names and that is freed ends the process at the launch") {
  CHECK(Says(DeathMessage([] {
               Rig b;
               b.runtime.BeginCapture(b.stream);
               b.ToOut(b.stream);
               const GraphHandle graph = b.runtime.EndCapture(b.stream);
               b.runtime.Free(b.stream, b.device);
               b.runtime.Launch(b.stream, graph);
               b.runtime.Wait(b.stream);
             }),
             "or it is freed"));
}

}  // namespace
}  // namespace dtrain::gpu::cuda
