#include <doctest/doctest.h>

#include "gpu/cuda/fake/fake_test_util.h"

namespace dtrain::gpu::cuda {
namespace {

TEST_CASE("fake memory: a block is poison when it is new, and again when its memory is used anew") {
  Rig b;
  b.ToOut(b.stream);
  b.runtime.Wait(b.stream);
  CHECK(IsPoison(b.Out()));
  b.ToDevice(b.stream);
  b.runtime.Free(b.stream, b.device);
  b.runtime.Wait(b.stream);
  b.device = static_cast<float*>(b.runtime.Allocate(b.stream, kBytes));
  b.ToOut(b.stream);
  b.runtime.Wait(b.stream);
  CHECK(IsPoison(b.Out()));
}

TEST_CASE(
    "fake memory: another stream that uses a block before its own has come so far loses what it wrote") {
  Rig b;
  auto* const block = static_cast<float*>(b.runtime.Allocate(b.stream, kBytes));
  b.runtime.Copy(b.other, block, b.ones, kBytes);
  b.runtime.Wait(b.other);
  b.runtime.Copy(b.stream, b.out, block, kBytes);
  b.runtime.Wait(b.stream);
  CHECK(IsPoison(b.Out()));
  b.runtime.Free(b.stream, block);
}

TEST_CASE("fake memory: all of it can be had, what is queued to be freed too, and more is null") {
  FakeOptions options;
  options.bytes = 1 << 20;
  FakeRuntime runtime(options);
  const StreamHandle stream = runtime.NewStream(0);
  CHECK(runtime.FreeBytes(0) == 1 << 20);
  CHECK(runtime.Allocate(stream, 1 << 20) == nullptr);
  for (int round = 0; round < 3; ++round) {
    void* const most = runtime.Allocate(stream, 900 << 10);
    REQUIRE(most != nullptr);
    CHECK(reinterpret_cast<uintptr_t>(most) % 256 == 0);
    CHECK(runtime.Allocate(stream, 200 << 10) == nullptr);
    void* const none = runtime.Allocate(stream, 0);
    CHECK(none != nullptr);
    runtime.Free(stream, most);
    runtime.Free(stream, none);
  }
  runtime.Wait(stream);
  CHECK(runtime.FreeBytes(0) == 1 << 20);
  runtime.Delete(stream);
}

TEST_CASE("fake memory: memory of the process can be pinned, and is plain again after") {
  Rig b;
  Floats values(4, 1);
  CHECK(b.runtime.Pin(values.data(), kBytes));
  b.runtime.Copy(b.stream, b.device, values.data(), kBytes);
  values.assign(4, 2);
  b.runtime.Wait(b.stream);
  b.runtime.Unpin(values.data());
  b.runtime.Copy(b.stream, values.data(), b.device, kBytes);
  CHECK(values == Floats(4, 2));
}

// What the process says that does this with a Rig.
template <typename Act>
std::string DiesOf(const Act& act) {
  return DeathMessage([&] {
    Rig bench;
    act(bench);
  });
}

TEST_CASE("fake memory: this process cannot touch device memory") {
  CHECK(Says(DiesOf([](Rig& b) { b.device[0] = 1; }), "ended by signal"));
  CHECK(Says(DiesOf([](Rig& b) {
               b.ToDevice(b.stream);
               b.runtime.Wait(b.stream);
               b.out[0] = b.device[0];
             }),
             "ended by signal"));
}

TEST_CASE("fake memory: a kernel cannot touch another device's memory") {
  CHECK(Says(DiesOf([](Rig& b) {
               const StreamHandle far = b.runtime.NewStream(1);
               b.Scale(far, 1);
               b.runtime.Wait(far);
             }),
             "ended by signal"));
}

TEST_CASE("fake memory: a block that is freed twice, or that is none, ends the process") {
  CHECK(Says(DiesOf([](Rig& b) {
               b.runtime.Free(b.stream, b.device);
               b.runtime.Free(b.stream, b.device);
             }),
             "freed twice"));
  CHECK(Says(DiesOf([](Rig& b) { b.runtime.Free(b.stream, b.device + 1); }), "no block of device memory"));
  CHECK(Says(DiesOf([](Rig& b) { b.runtime.FreePinned(b.ones + 1); }), "no pinned memory"));
  CHECK(Says(DiesOf([](Rig& b) { b.runtime.Unpin(b.ones); }), "not pinned"));
}

TEST_CASE("fake memory: a copy or a product that leaves its memory ends the process") {
  CHECK(Says(DiesOf([](Rig& b) { b.runtime.Copy(b.stream, b.device + 1, b.ones, kBytes); }),
             "leaves its block"));
  CHECK(Says(DiesOf([](Rig& b) { b.runtime.Copy(b.stream, b.device, b.ones + 1, kBytes); }),
             "leaves pinned memory"));
  CHECK(Says(DiesOf([](Rig& b) { b.runtime.Fill(b.stream, b.device, 0, kBytes + 1); }), "leaves its block"));
  CHECK(Says(DiesOf([](Rig& b) {
               char plain = 0;
               b.runtime.Fill(b.stream, &plain, 0, 1);
             }),
             "cannot reach"));
  CHECK(Says(DiesOf([](Rig& b) {
               const BlasHandle blas = b.runtime.NewBlas(b.stream, false);
               b.runtime.Multiply(blas, {2, 2, 3, false, false, b.device, b.device, b.device, false});
             }),
             "not within one block"));
}

TEST_CASE("fake memory: a kernel that writes behind a block is found") {
  CHECK(Says(DiesOf([](Rig& b) {
               b.ToDevice(b.stream);
               b.Scale(b.stream, 2, b.device + 1);
             }),
             "wrote behind a block"));
}

TEST_CASE("fake memory: what is freed before it was used in another stream ends the process") {
  CHECK(Says(DiesOf([](Rig& b) {
               b.ToOut(b.other);
               b.runtime.Free(b.stream, b.device);
               b.runtime.Wait(b.stream);
               b.runtime.Wait(b.other);
             }),
             "or it is freed"));
  CHECK(Says(DiesOf([](Rig& b) {
               b.ToOut(b.stream);
               b.runtime.FreePinned(b.out);
               b.runtime.Wait(b.stream);
             }),
             "freed before the copy was done"));
}

TEST_CASE("fake memory: what is never given back is named, and ends the process at the end") {
  {
    FakeRuntime runtime;
    const StreamHandle stream = runtime.NewStream(0);
    void* const block = runtime.Allocate(stream, 1);
    CHECK(runtime.Leaks() == "1 stream, 1 block of device memory");
    runtime.Free(stream, block);
    runtime.Delete(stream);
    CHECK(runtime.Leaks().empty());
  }
  CHECK(Says(DeathMessage([] {
               FakeRuntime runtime;
               runtime.NewEvent(0);
               runtime.AllocatePinned(1);
             }),
             "1 event, 1 block of pinned memory"));
}

}  // namespace
}  // namespace dtrain::gpu::cuda
