// Kernel: which of our kernels a launch means, and the shape of a launch.
// A kernel is a struct of plain arguments with `template <typename Thread> void operator()(Thread& thread)
// const`, its body, run once by each thread of each block: on a device by cudart/kernels.cu, on this
// processor by fake/grid.h. gpu/kernel_thread.h says what a body may ask of its thread. All are listed in
// kernels/list.h.
#pragma once

#include <cstdint>

namespace dtrain::gpu::cuda {

// One dimension: kernels make of it what they need, with 64-bit indices.
struct Grid {
  int64_t blocks = 0;  // below 2^31
  int threads = 0;     // of a block: a multiple of 32, at most 1024
};

// The place of its body in kernels/list.h.
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

// The threads of its blocks, at most: the body's kMaxThreads or kThreads where it has one.
template <typename Body>
constexpr int MaxThreadsOf() {
  return internal::MaxThreads<Body>(0, 0);
}

// How many such blocks a multiprocessor has room for, at least: the body's kBlocksOfMultiprocessor where it
// has one, which with MaxThreadsOf() bounds the registers of a thread; else 0, and the compiler weighs them.
template <typename Body>
constexpr int MinBlocksOf() {
  return internal::MinBlocks<Body>(0);
}

}  // namespace dtrain::gpu::cuda
