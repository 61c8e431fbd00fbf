// Launching a kernel by its type, and choosing the number of blocks. Separate from queue.h, because this
// header includes the bodies of all kernels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/check.h"
#include "gpu/cuda/kernels/activation.h"
#include "gpu/cuda/kernels/each.h"
#include "gpu/cuda/kernels/list.h"
#include "gpu/cuda/kernels/reduce.h"
#include "gpu/cuda/queue.h"
#include "gpu/ops.h"

namespace dtrain::gpu::cuda {

// Launches a kernel of kernels/list.h; does nothing for 0 blocks.
template <typename Body>
void Launch(Queue& queue, const Grid& grid, const Body& body) {
  queue.Launch(grid, KernelOf<Body>(), &body);
}

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Returns a grid for `threads` independent threads. It is limited to a few times what the device holds;
// threads loop over the rest.
inline Grid GridFor(const Queue& queue, int64_t threads) {
  constexpr int kThreads = 256;
  constexpr int64_t kBlocksOfMultiprocessor =
      32;  // four times what it holds: the tail at the end is then short
  const int64_t max_blocks = kBlocksOfMultiprocessor * queue.device().info().multiprocessors;
  return {std::min(CeilDiv(threads, kThreads), max_blocks), kThreads};
}

// Returns a grid for `threads` threads whose values are summed. One block of up to 1024 threads, as long as
// it loops only a few times, because blocks that wait for each other cost more; then at most as many as the
// device holds at once.
inline Grid GridForSum(const Queue& queue, int64_t threads, int max_threads = 1024) {
  constexpr int64_t kMaxOfOneBlock = 4096;
  constexpr int kThreads = 256;
  if (threads <= kMaxOfOneBlock) {
    return {1, static_cast<int>(std::clamp<int64_t>(CeilDiv(threads, 32) * 32, 32, max_threads))};
  }
  return {std::min(CeilDiv(threads, kThreads), int64_t{8} * queue.device().info().multiprocessors), kThreads};
}

template <typename T>
GridSum<T> GridSumFor(Queue& queue, const Grid& grid) {
  if (grid.blocks == 1) return {nullptr, nullptr};
  return {static_cast<T*>(queue.Scratch(grid.blocks * static_cast<int64_t>(sizeof(T)))), queue.Ticket()};
}

// Launches a Function of kernels/each.h over `size` elements. `in` and `out` are kIn and kOut pointers.
template <typename Function>
void LaunchEach(Queue& queue, const Function& function, const typename Function::In* const* in,
                typename Function::Out* const* out, int64_t size) {
  using Kernel = Each<Function>;
  Kernel kernel{function, {}, {}, {0, size}};
  std::copy(in, in + Function::kIn, kernel.in);
  std::copy(out, out + Function::kOut, kernel.out);
  const auto whole = [&](int64_t head) {
    const auto at_pack = [head](const auto* range) {
      using Whole = Pack<std::decay_t<decltype(*range)>, Kernel::kWidth>;
      return reinterpret_cast<uintptr_t>(range + head) % alignof(Whole) == 0;
    };
    return std::all_of(kernel.in, kernel.in + Kernel::kIn, at_pack) &&
           std::all_of(kernel.out, kernel.out + Kernel::kOut, at_pack);
  };
  int64_t& head = kernel.packing.head;
  while (head < Kernel::kWidth && head < size && !whole(head)) ++head;
  if (head == Kernel::kWidth) head = size;
  const int width = head == size ? 1 : Kernel::kWidth;
  Launch(queue, GridFor(queue, CeilDiv(size, width * Kernel::kUnroll)), kernel);
}

// Returns a range of bytes as floats. On a device such ranges are aligned for floats.
inline const float* FloatsAt(const std::byte* bytes) {
  DT_CHECK(reinterpret_cast<uintptr_t>(bytes) % alignof(float) == 0);
  return reinterpret_cast<const float*>(bytes);
}

// Calls call(Kind()) with the type for `kind`.
template <typename Call>
void WithActivation(Activation kind, const Call& call) {
  switch (kind) {
    case Activation::kSigmoid:
      return call(Sigmoid());
    case Activation::kTanh:
      return call(Tanh());
    case Activation::kRelu:
      return call(Relu());
  }
  DT_CHECK(false, static_cast<int>(kind));
}

}  // namespace dtrain::gpu::cuda
