// What every runtime promises. Built twice: with the fake, and with the runtime of dtrain, which has nothing
// to show where there is no device.
#include "gpu/cuda/runtime.h"

#include <doctest/doctest.h>

#include <vector>

#include "gpu/cuda/launch.h"
#include "gpu/cuda/queue.h"

namespace dtrain::gpu::cuda {
namespace {

using Floats = std::vector<float>;

// The first device. `device` is null where there is none.
struct First {
  std::unique_ptr<Runtime> runtime = MakeRuntime();
  std::unique_ptr<Device> device;

  First() {
    std::string why;
    const std::vector<DeviceInfo> devices = runtime->Devices(&why);
    if (devices.empty()) {
      MESSAGE("skipped: " << why);
    } else {
      device = std::make_unique<Device>(*runtime, devices[0], 1, false);
    }
  }
};

void Scale(Queue& queue, const Buffer<float>& values, float factor) {
  Launch(queue, {2, 32}, ScaleKernel{factor, values.data(), values.size()});
}

Floats ValuesOf(Queue& queue, const Buffer<float>& values) {
  Floats copy(static_cast<size_t>(values.size()));
  queue.Copy(copy.data(), values.data(), values.bytes());
  return copy;
}

TEST_CASE("runtime: copies and kernels of one stream follow each other, from and to all kinds of memory") {
  const First first;
  if (first.device == nullptr) return;
  Queue queue(*first.device);
  constexpr int64_t kSize = 1001;
  Buffer<float> x(queue, kSize, "x"), y(queue, kSize, "y");
  PinnedBuffer<float> pinned(*first.runtime, kSize, "pinned");
  Floats values(kSize);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  queue.Copy(x.data(), values.data(), x.bytes());
  values.assign(values.size(), -1);
  Scale(queue, x, 2);
  queue.Copy(y.data(), x.data(), x.bytes());
  queue.Copy(pinned.data(), y.data(), y.bytes());
  queue.Copy(x.data(), pinned.data(), x.bytes());
  Scale(queue, x, 0.5f);
  values = ValuesOf(queue, x);
  for (int64_t i = 0; i < kSize; ++i) {
    CHECK(pinned[i] == static_cast<float>(2 * i));
    CHECK(values[static_cast<size_t>(i)] == static_cast<float>(i));
  }
  queue.Fill(pinned.data(), 0, 4);
  queue.Wait();
  CHECK(pinned[0] == 0);
}

TEST_CASE("runtime: events order two streams, and know the time between them") {
  const First first;
  if (first.device == nullptr) return;
  Runtime& runtime = *first.runtime;
  Queue one(*first.device), other(*first.device);
  Buffer<float> x(one, 1 << 20, "x");
  const EventHandle begin = runtime.NewEvent(0), end = runtime.NewEvent(0);
  CHECK(runtime.Done(begin));
  runtime.Record(begin, one.stream());
  const Floats ones(1 << 20, 1);
  one.Copy(x.data(), ones.data(), x.bytes());
  for (int i = 0; i < 10; ++i) Scale(one, x, 2);
  runtime.Record(end, one.stream());
  runtime.WaitFor(other.stream(), end);
  CHECK(ValuesOf(other, x) == Floats(1 << 20, 1024));
  CHECK(runtime.Done(end));
  CHECK(runtime.Milliseconds(begin, end) >= 0);
  runtime.Delete(begin);
  runtime.Delete(end);
}

TEST_CASE("runtime: a product is right in all four layouts, and adds where it is told to") {
  const First first;
  if (first.device == nullptr || !first.runtime->WhyNoBlas().empty()) return;
  Queue queue(*first.device);
  // [2, 3] * [3, 2], and each transposed.
  const Floats a = {1, 2, 3, 4, 5, 6}, a_transposed = {1, 4, 2, 5, 3, 6};
  const Floats b = {1, 0, 2, 1, 0, 3}, b_transposed = {1, 2, 0, 0, 1, 3};
  Buffer<float> left(queue, 6, "a"), right(queue, 6, "b"), out(queue, 4, "c");
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      queue.Copy(left.data(), (transpose_a ? a_transposed : a).data(), left.bytes());
      queue.Copy(right.data(), (transpose_b ? b_transposed : b).data(), right.bytes());
      Product product{2, 2, 3, transpose_a, transpose_b, left.data(), right.data(), out.data(), false};
      queue.Multiply(product);
      CHECK(ValuesOf(queue, out) == Floats{5, 11, 14, 23});
      product.add = true;
      queue.Multiply(product);
      CHECK(ValuesOf(queue, out) == Floats{10, 22, 28, 46});
    }
  }
}

TEST_CASE("runtime: a graph of two streams is done at each launch") {
  const First first;
  if (first.device == nullptr) return;
  Runtime& runtime = *first.runtime;
  Queue one(*first.device), other(*first.device);
  Buffer<float> x(one, 100, "x"), y(one, 100, "y");
  const Floats ones(100, 1);
  one.Copy(x.data(), ones.data(), x.bytes());
  one.Copy(y.data(), ones.data(), y.bytes());
  Scale(one, x, 1);
  one.Wait();
  const EventHandle fork = runtime.NewEvent(0), join = runtime.NewEvent(0);
  runtime.BeginCapture(one.stream());
  Scale(one, x, 2);
  runtime.Record(fork, one.stream());
  runtime.WaitFor(other.stream(), fork);
  Scale(other, y, 3);
  runtime.Record(join, other.stream());
  Scale(one, x, 2);
  runtime.WaitFor(one.stream(), join);
  one.Copy(x.data(), y.data(), 4);
  const GraphHandle graph = runtime.EndCapture(one.stream());
  CHECK(ValuesOf(one, x) == ones);
  runtime.Launch(one.stream(), graph);
  runtime.Launch(one.stream(), graph);
  CHECK(ValuesOf(one, y) == Floats(100, 9));
  Floats expected(100, 16);
  expected[0] = 9;
  CHECK(ValuesOf(one, x) == expected);
  runtime.Delete(graph);
  runtime.Delete(fork);
  runtime.Delete(join);
}

TEST_CASE("runtime: a capture that waits or allocates is an error, and can be aborted") {
  const First first;
  if (first.device == nullptr) return;
  Runtime& runtime = *first.runtime;
  Queue queue(*first.device);
  Buffer<float> x(queue, 1, "x");
  for (const bool wait : {true, false}) {
    runtime.BeginCapture(queue.stream());
    if (wait) {
      CHECK_THROWS_AS(queue.Wait(), DeviceError);
    } else {
      CHECK_THROWS_AS(Buffer<float>(queue, 1, "y"), DeviceError);
    }
    runtime.AbortCapture(queue.stream());
    runtime.AbortCapture(queue.stream());
  }
  const float seven = 7;
  queue.Copy(x.data(), &seven, 4);
  CHECK(ValuesOf(queue, x) == Floats{7});
}

TEST_CASE("runtime: more memory than there is cannot be had, and nothing is lost by asking") {
  const First first;
  if (first.device == nullptr) return;
  Queue queue(*first.device);
  const int64_t before = first.runtime->FreeBytes(0);
  CHECK(before > 0);
  CHECK(first.runtime->Allocate(queue.stream(), size_t{1} << 50) == nullptr);
  Buffer<float> x(queue, 1, "x");
  CHECK(reinterpret_cast<uintptr_t>(x.data()) % 256 == 0);
  const float seven = 7;
  queue.Copy(x.data(), &seven, 4);
  CHECK(ValuesOf(queue, x) == Floats{7});
}

TEST_CASE("runtime: pinned memory of the process is read and written in its turn") {
  const First first;
  if (first.device == nullptr) return;
  Runtime& runtime = *first.runtime;
  Queue queue(*first.device);
  Buffer<float> x(queue, 1 << 16, "x");
  Floats values(1 << 16, 3);
  if (!runtime.Pin(values.data(), values.size() * sizeof(float))) return;
  queue.Copy(x.data(), values.data(), x.bytes());
  Scale(queue, x, 2);
  queue.Copy(values.data(), x.data(), x.bytes());
  queue.Wait();
  runtime.Unpin(values.data());
  CHECK(values == Floats(1 << 16, 6));
}

}  // namespace
}  // namespace dtrain::gpu::cuda
