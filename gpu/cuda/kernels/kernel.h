// Kernel: identifies a kernel for a launch; Grid: the shape of a launch.
// A kernel is a struct of plain arguments whose body is `template <typename Thread> void operator()(Thread&
// thread) const`. The body runs once for each thread of each block: on a device by cudart/kernels.cu, on this
// processor by fake/grid.h. gpu/kernel_thread.h lists what a body may call on its thread. All kernels are
// listed in kernels/list.h.
#pragma once

#include <cstdint>

namespace dtrain::gpu::cuda {

// Grid: one dimension of blocks; kernels derive other shapes from it, with 64-bit indices.
struct Grid {
  int64_t blocks = 0;  // below 2^31
  int threads = 0;     // per block: a multiple of 32, at most 1024
};

// The number of a kernel: its place in kernels/list.h.
enum class Kernel : int {};

namespace internal {
template <typename Body>
constexpr auto MaxThreads(int, int) -> decltype(int{Body::kMaxThreads}) {
  return Body::kMaxThreads;
}
template <typename Body>
constexpr auto MaxThreads(int, long) -> decltype(int{Body::kThreads}) {
  return Body::kThreads;
}
template <typename Body>
constexpr int MaxThreads(long, long) {
  return 1024;
}
template <typename Body>
constexpr auto MinBlocks(int) -> decltype(int{Body::kBlocksOfMultiprocessor}) {
  return Body::kBlocksOfMultiprocessor;
}
template <typename Body>
constexpr int MinBlocks(long) {
  return 0;
}
}  // namespace internal

// Returns the most threads that a block of this kernel may have: its kMaxThreads or kThreads, if declared.
template <typename Body>
constexpr int MaxThreadsOf() {
  return internal::MaxThreads<Body>(0, 0);
}

// Returns how many blocks a multiprocessor must have room for: the body's kBlocksOfMultiprocessor, if
// declared. Together with MaxThreadsOf() it bounds the registers of a thread. 0: the compiler decides.
template <typename Body>
constexpr int MinBlocksOf() {
  return internal::MinBlocks<Body>(0);
}

}  // namespace dtrain::gpu::cuda
