#include "gpu/cuda/queue.h"

#include <doctest/doctest.h>

#include <numeric>
#include <string>
#include <vector>

#include "gpu/cuda/fake/fake_runtime.h"
#include "gpu/cuda/launch.h"

namespace dtrain::gpu::cuda {
namespace {

DeviceInfo Info(FakeRuntime& runtime, int id = 0) {
  std::string why;
  return runtime.Devices(&why).at(static_cast<size_t>(id));
}

// The text of the UserError that `call` throws.
template <typename Call>
std::string UserErrorOf(const Call& call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

FakeOptions WithBytes(int64_t bytes) {
  FakeOptions options;
  options.bytes = bytes;
  return options;
}

TEST_CASE("device: what is allocated counts until it is freed, and no more than the fraction is given") {
  FakeRuntime runtime(WithBytes(64 << 20));
  Device device(runtime, Info(runtime), 0.5, false);
  CHECK(device.limit_bytes() == 32 << 20);
  Queue queue(device);
  {
    Buffer<float> weights(queue, 5 << 20, "the weights");
    CHECK(device.used_bytes() == 20 << 20);
    CHECK(UserErrorOf([&] { Buffer<float>(queue, 4 << 20, "the slots"); }) ==
          "cuda 0 (Fake GPU A): 16 MiB for the slots, but of the 32 MiB that device.memory_fraction = 0.5 "
          "allows 20 MiB are in use. Raise it, or use a smaller model or batch.");
    CHECK(device.used_bytes() == 20 << 20);
  }
  CHECK(device.used_bytes() == 0);
  Buffer<float> all(queue, 8 << 20, "all of it");
  CHECK(device.used_bytes() == device.limit_bytes());
}

TEST_CASE("device: a device that has less than the fraction left is named with what it has") {
  FakeRuntime runtime(WithBytes(64 << 20));
  Device device(runtime, Info(runtime, 1), 1, false);
  Device other(runtime, Info(runtime, 1), 1, false);
  Queue queue(device);
  Queue others(other);
  Buffer<char> theirs(others, 40 << 20, "theirs");
  CHECK(UserErrorOf([&] { Buffer<char>(queue, 30 << 20, "ours"); }) ==
        "cuda 1 (Fake GPU B): 30 MiB for ours, but of its 64 MiB only 23 MiB are free, and this task uses 0 "
        "MiB. End what else uses the device, or use a smaller model or batch; device.memory_fraction = 1 "
        "would allow more.");
  CHECK(device.used_bytes() == 0);
}

TEST_CASE("buffer: it can be moved, may hold nothing, and is given back once") {
  FakeRuntime runtime;
  Device device(runtime, Info(runtime), 1, false);
  {
    Queue queue(device);
    Buffer<double> none;
    CHECK(none.size() == 0);
    Buffer<double> empty(queue, 0, "nothing");
    Buffer<double> first(queue, 3, "three");
    const double* const data = first.data();
    Buffer<double> second = std::move(first);
    CHECK(second.data() == data);
    CHECK(second.bytes() == 24);
    none = std::move(second);
    CHECK(none.span().size == 3);
    CHECK(device.used_bytes() == 24);
    PinnedBuffer<int> pinned(runtime, 5, "five");
    CHECK(std::accumulate(pinned.data(), pinned.data() + 5, 0) == 0);
    PinnedBuffer<int> moved = std::move(pinned);
    moved[4] = 1;
    CHECK(moved.size() == 5);
  }
  CHECK(device.used_bytes() == 0);
  CHECK(runtime.Leaks().empty());
}

TEST_CASE("buffer: too little pinned memory is an error that the user can act on") {
  FakeRuntime runtime;
  runtime.FailNext(FakeCall::kAllocatePinned);
  CHECK(UserErrorOf([&] {
          PinnedBuffer<char>(runtime, 3 << 20, "the gradients");
        }).rfind("3 MiB of memory that the GPU can reach for the gradients", 0) == 0);
}

TEST_CASE("queue: copies, kernels and products follow each other") {
  FakeRuntime runtime;
  Device device(runtime, Info(runtime), 1, false);
  Queue queue(device);
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};  // [2, 3]
  Buffer<float> x(queue, 6, "x"), y(queue, 4, "y");
  queue.Copy(x.data(), a.data(), x.bytes());
  Launch(queue, {1, 32}, ScaleKernel{2, x.data(), 6});
  Launch(queue, {0, 32}, ScaleKernel{9, x.data(), 6});
  Product product;
  product.m = 2, product.n = 2, product.k = 3;
  product.transpose_b = true;
  product.a = product.b = x.data();
  product.c = y.data();
  queue.Multiply(product);
  std::vector<float> out(4);
  queue.Copy(out.data(), y.data(), y.bytes());
  CHECK(out == std::vector<float>{56, 128, 128, 308});
  CHECK(runtime.counts().launches == 1);
}

TEST_CASE("queue: two queues of one stream keep the order in which they were given work") {
  FakeRuntime runtime;
  Device device(runtime, Info(runtime), 1, false);
  auto first = std::make_unique<Queue>(device);
  Queue second(first->shared_stream());
  CHECK(first->stream() == second.stream());
  Buffer<float> x(*first, 2, "x");
  const std::vector<float> start = {1, 10};
  first->Copy(x.data(), start.data(), x.bytes());
  Launch(second, {1, 32}, ScaleKernel{3, x.data(), 2});
  first.reset();
  std::vector<float> out(2);
  second.Copy(out.data(), x.data(), x.bytes());
  CHECK(out == std::vector<float>{3, 30});
}

TEST_CASE("queue: scratch memory stays where it is until it must grow, and what a graph knows is kept") {
  FakeRuntime runtime;
  Device device(runtime, Info(runtime), 1, false);
  Queue queue(device);
  CHECK(queue.Scratch(0) == nullptr);
  void* const first = queue.Scratch(1000);
  CHECK(queue.Scratch(10) == first);
  CHECK(queue.Scratch(1000) == first);
  runtime.BeginCapture(queue.stream());
  queue.Fill(queue.Scratch(1000), 1, 1000);
  const GraphHandle graph = runtime.EndCapture(queue.stream());
  void* const second = queue.Scratch(1001);
  CHECK(second != first);
  CHECK(queue.Scratch(2000) == second);
  CHECK(device.used_bytes() == 3000);
  runtime.Launch(queue.stream(), graph);
  queue.Wait();
  runtime.Delete(graph);
}

TEST_CASE("queue: tickets begin at 0, and are left where they are for graphs when there must be more") {
  FakeRuntime runtime;
  Device device(runtime, Info(runtime), 1, false);
  Queue queue(device);
  uint32_t* const first = queue.Ticket(2);
  CHECK(queue.Ticket() == first);
  uint32_t* const second = queue.Ticket(5);
  CHECK(second != first);
  CHECK(queue.Ticket(4) == second);
  CHECK(device.used_bytes() == 28);
  uint32_t tickets[5] = {1, 1, 1, 1, 1};
  queue.Copy(tickets, second, sizeof(tickets));
  for (const uint32_t ticket : tickets) CHECK(ticket == 0);
  queue.Fill(first, 0, 2 * int64_t{sizeof(uint32_t)});
  queue.Wait();
}

TEST_CASE("queue: the ticket begins at 0, the word for results is this machine's") {
  FakeRuntime runtime;
  Device device(runtime, Info(runtime), 1, false);
  Queue queue(device);
  uint32_t ticket = 1;
  queue.Copy(&ticket, queue.Ticket(), sizeof(ticket));
  CHECK(ticket == 0);
  CHECK(queue.Ticket() == queue.Ticket());
  *queue.Result() = 5;
  queue.Fill(queue.Result(), 0, sizeof(int64_t));
  CHECK(*queue.Result() == 5);
  queue.Wait();
  CHECK(*queue.Result() == 0);
}

}  // namespace
}  // namespace dtrain::gpu::cuda
