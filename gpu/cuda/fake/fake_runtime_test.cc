#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "gpu/cuda/fake/fake_runtime.h"
#include "gpu/cuda/fake/fake_test_util.h"

namespace dtrain::gpu::cuda {
namespace {

TEST_CASE("fake: devices are named without a context, and a stream makes that of its device alone") {
  int last = -1;
  FakeOptions options;
  options.on_context = [&](int device) { last = device; };
  FakeRuntime runtime(options);
  std::string why = "old";
  const std::vector<DeviceInfo> devices = runtime.Devices(&why);
  CHECK(devices.size() == 2);
  CHECK(devices[1].name == "Fake GPU B");
  CHECK(devices[1].id == 1);
  CHECK(devices[1].total_bytes == int64_t{1} << 30);
  CHECK(why.empty());
  CHECK(runtime.WhyNoBlas().empty());
  CHECK(runtime.counts().contexts == std::vector<int>{0, 0});
  runtime.Delete(runtime.NewStream(1));
  runtime.Delete(runtime.NewStream(1));
  CHECK(last == 1);
  CHECK(runtime.counts().contexts == std::vector<int>{0, 1});
  runtime.FreePinned(runtime.AllocatePinned(10));
  CHECK(runtime.counts().contexts == std::vector<int>{0, 1});
}

TEST_CASE("fake: CUDA_VISIBLE_DEVICES hides and reorders devices, and is named where it hides all") {
  const auto devices = [](const char* setting, std::string* why) {
    setenv("CUDA_VISIBLE_DEVICES", setting, 1);
    auto infos = FakeRuntime().Devices(why);
    unsetenv("CUDA_VISIBLE_DEVICES");
    return infos;
  };
  std::string why;
  const auto reordered = devices("1,0", &why);
  CHECK(reordered.at(0).name == "Fake GPU B");
  CHECK(reordered.at(0).id == 0);
  CHECK(reordered.at(0).pci != reordered.at(1).pci);
  CHECK(devices("-1", &why).empty());
  CHECK(why == "CUDA_VISIBLE_DEVICES is \"-1\"");
}

TEST_CASE("fake: what is queued is done when somebody waits, and not before") {
  Rig b;
  b.ToDevice(b.stream);
  b.Scale(b.stream, 3);
  b.ToOut(b.stream);
  CHECK(b.Out() == Floats{0, 0, 0, 0});
  CHECK(b.runtime.queued() == 3);
  CHECK(b.runtime.counts().kernels == 0);
  b.runtime.Wait(b.other);
  CHECK(b.runtime.queued() == 3);
  b.runtime.Wait(b.stream);
  CHECK(b.Out() == Floats{3, 3, 3, 3});
  const FakeCounts counts = b.runtime.counts();
  CHECK(counts.kernels == 1);
  CHECK(counts.bytes_to_device == kBytes);
  CHECK(counts.bytes_from_device == kBytes);
}

TEST_CASE("fake: Done() and Relax() do one piece each") {
  Rig b;
  b.ToDevice(b.stream);
  b.ToOut(b.stream);
  b.runtime.Record(b.event, b.stream);
  CHECK(!b.runtime.Done(b.event));
  CHECK(b.Out() == Floats{0, 0, 0, 0});
  b.runtime.Relax();
  CHECK(b.Out() == Floats{1, 1, 1, 1});
  CHECK(b.runtime.Done(b.event));
  CHECK(b.runtime.Done(b.event));
}

TEST_CASE("fake: plain memory is read at once, and written when the copy returns") {
  Rig b;
  Floats values = {1, 2, 3, 4};
  b.runtime.Copy(b.stream, b.device, values.data(), kBytes);
  values.assign(4, 9);
  CHECK(b.runtime.queued() == 1);
  b.Scale(b.stream, 2);
  b.runtime.Copy(b.stream, values.data(), b.device, kBytes);
  CHECK(values == Floats{2, 4, 6, 8});
}

TEST_CASE("fake: pinned memory is read when the copy's turn comes") {
  Rig b;
  b.ToDevice(b.stream);
  b.ones[0] = 7;
  b.ToOut(b.stream);
  b.runtime.Wait(b.stream);
  CHECK(b.Out() == Floats{7, 1, 1, 1});
}

TEST_CASE("fake: between streams only an event makes an order") {
  Rig b;
  b.ToDevice(b.stream);
  b.ToOut(b.other);
  b.runtime.Wait(b.other);
  CHECK(IsPoison(b.Out()));

  b.runtime.Record(b.event, b.stream);
  b.runtime.WaitFor(b.other, b.event);
  b.ToOut(b.other);
  b.runtime.Wait(b.other);
  CHECK(b.Out() == Floats{1, 1, 1, 1});
}

TEST_CASE("fake: a wait is for the last record before it, and for nothing where there was none") {
  Rig b;
  b.runtime.WaitFor(b.other, b.event);
  b.runtime.Wait(b.event);
  CHECK(b.runtime.Done(b.event));
  b.ToDevice(b.stream);
  b.runtime.Record(b.event, b.stream);
  b.runtime.WaitFor(b.other, b.event);
  b.Scale(b.stream, 5);
  b.runtime.Record(b.event, b.stream);
  b.ToOut(b.other);
  b.runtime.Wait(b.other);
  CHECK(b.Out() == Floats{1, 1, 1, 1});
  CHECK(b.runtime.counts().kernels == 0);
  b.runtime.Wait(b.event);
  CHECK(b.runtime.counts().kernels == 1);
}

TEST_CASE("fake: a deleted stream still does what it was given") {
  Rig b;
  const StreamHandle stream = b.runtime.NewStream(0);
  b.ToDevice(stream);
  b.ToOut(stream);
  b.runtime.Record(b.event, stream);
  b.runtime.Delete(stream);
  b.runtime.Wait(b.event);
  CHECK(b.Out() == Floats{1, 1, 1, 1});
}

TEST_CASE("fake: memory of another device is copied") {
  Rig b;
  const StreamHandle far = b.runtime.NewStream(1);
  auto* const there = static_cast<float*>(b.runtime.Allocate(far, kBytes));
  b.runtime.Copy(far, there, b.ones, kBytes);
  b.runtime.Wait(far);
  b.runtime.Copy(b.stream, b.device, there, kBytes);
  b.ToOut(b.stream);
  b.runtime.Wait(b.stream);
  CHECK(b.Out() == Floats{1, 1, 1, 1});
  CHECK(b.runtime.counts().bytes_between_devices == kBytes);
  b.runtime.Free(far, there);
  b.runtime.Delete(far);
}

TEST_CASE("fake: each kind of call can be made to fail once, then or later") {
  Rig b;
  b.runtime.FailNext(FakeCall::kCopy, 1);
  b.ToDevice(b.stream);
  CHECK_THROWS_AS(b.ToDevice(b.stream), DeviceError);
  b.ToDevice(b.stream);
  b.runtime.FailNext(FakeCall::kLaunch);
  CHECK_THROWS_AS(b.Scale(b.stream, 1), DeviceError);
  b.runtime.FailNext(FakeCall::kWait);
  CHECK_THROWS_AS(b.runtime.Wait(b.stream), DeviceError);
  b.runtime.FailNext(FakeCall::kAllocate);
  CHECK(b.runtime.Allocate(b.stream, 1) == nullptr);
  b.runtime.FailNext(FakeCall::kPin);
  Floats values(4);
  CHECK(!b.runtime.Pin(values.data(), kBytes));
  b.runtime.FailNext(FakeCall::kNewStream);
  CHECK_THROWS_AS(b.runtime.NewStream(0), DeviceError);
}

TEST_CASE("fake: several threads may queue and wait in one stream") {
  Rig b;
  b.ToDevice(b.stream);
  const auto doubled = [&] {
    for (int i = 0; i < 10; ++i) {
      b.Scale(b.stream, 2);
      b.runtime.Wait(b.stream);
    }
  };
  std::thread first(doubled), second(doubled);
  first.join();
  second.join();
  b.ToOut(b.stream);
  b.runtime.Wait(b.stream);
  CHECK(b.Out() == Floats(4, 1 << 20));
}

TEST_CASE("fake: a loop that waits for what nobody queued ends the process") {
  CHECK(Says(DeathMessage([] {
               FakeOptions options;
               options.idle = std::chrono::milliseconds(0);
               FakeRuntime runtime(options);
               for (;;) runtime.Relax();
             }),
             "a wait for what can never happen"));
}

TEST_CASE("visible devices: all without the variable, else those of the list up to the first that is none") {
  using List = std::vector<int>;
  CHECK(VisibleDevices(nullptr, 3) == List{0, 1, 2});
  CHECK(VisibleDevices("", 3).empty());
  CHECK(VisibleDevices("-1", 3).empty());
  CHECK(VisibleDevices("2,0", 3) == List{2, 0});
  CHECK(VisibleDevices("1,-1,0", 3) == List{1});
  CHECK(VisibleDevices("1,3,0", 3) == List{1});
  CHECK(VisibleDevices("1,x,0", 3) == List{1});
  CHECK(VisibleDevices("1,99999999999999999999", 3) == List{1});
  CHECK(VisibleDevices("GPU-4", 3).empty());
  CHECK(VisibleDevices("0,1,0", 3).empty());
}

}  // namespace

}  // namespace dtrain::gpu::cuda
