// Sums over warps, blocks and whole launches, in an order that depends only on the launch's shape, so the
// bits are the same every time.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/kernel_thread.h"

namespace dtrain::gpu::cuda {

constexpr int kMaxWarps = 32;  // of a block; as many as a warp has lanes

// Returns the sum over `group` neighbouring lanes, a power of two; every lane gets the same bits.
template <int group, typename Thread, typename T>
DT_KERNEL_BODY T GroupSum(Thread& thread, T value) {
  DT_UNROLL()
  for (int mask = group / 2; mask > 0; mask /= 2) value += thread.ShuffleXor(value, mask);
  return value;
}

// The maximum over `group` lanes. NaN is ignored.
template <int group, typename Thread>
DT_KERNEL_BODY float GroupMax(Thread& thread, float value) {
  DT_UNROLL()
  for (int mask = group / 2; mask > 0; mask /= 2) value = fmaxf(value, thread.ShuffleXor(value, mask));
  return value;
}

// Returns the sum in all threads of the block. Every warp adds up the sums of all warps, one in each lane, so
// that no thread waits for another one to do it.
template <typename Thread, typename T>
DT_KERNEL_BODY T BlockSum(Thread& thread, T value) {
  const T own = GroupSum<32>(thread, value);
  T* const warps = thread.template Shared<T, kMaxWarps>();
  thread.Sync();  // until the values of the last call are read
  if (thread.lane() == 0) warps[thread.warp()] = own;
  thread.Sync();
  return GroupSum<kMaxWarps>(thread, thread.lane() < thread.warps() ? warps[thread.lane()] : T{0});
}

template <typename Thread>
DT_KERNEL_BODY float BlockMax(Thread& thread, float value) {
  const float own = GroupMax<32>(thread, value);
  float* const warps = thread.template Shared<float, kMaxWarps>();
  thread.Sync();
  if (thread.lane() == 0) warps[thread.warp()] = own;
  thread.Sync();
  return GroupMax<kMaxWarps>(thread, thread.lane() < thread.warps() ? warps[thread.lane()] : -INFINITY);
}

// Whether this block is the last of the `blocks` that use this ticket. The last one sees all that the others
// wrote before (read it as volatile), and the ticket (Queue::Ticket) is 0 again.
template <typename Thread>
DT_KERNEL_BODY bool LastBlock(Thread& thread, uint32_t* ticket, int64_t blocks) {
  int32_t* const last = thread.template Shared<int32_t, 1>();
  thread.Sync();
  if (thread.index() == 0) {
    thread.Publish();  // publishes the writes of the whole block, which this thread saw at Sync()
    *last = static_cast<int64_t>(thread.AtomicAdd(ticket, uint32_t{1})) + 1 == blocks;
    if (*last) *ticket = 0;
    thread.Publish();
  }
  thread.Sync();
  return *last != 0;
}

// GridSum: the sum over all threads of a launch, and the memory for the sums of its blocks.
template <typename T>
struct GridSum {
  T* blocks;  // one sum per block; unused with one block
  uint32_t* ticket;

  // Called once by all threads. Returns true in the one thread that gets the total.
  template <typename Thread>
  DT_KERNEL_BODY bool Add(Thread& thread, T value, T* total) const {
    *total = BlockSum(thread, value);
    if (thread.blocks() == 1) return thread.index() == 0;
    if (thread.index() == 0) blocks[thread.block()] = *total;
    if (!LastBlock(thread, ticket, thread.blocks())) return false;
    const volatile T* const parts = blocks;
    T sum = 0;
    for (int64_t b = thread.index(); b < thread.blocks(); b += thread.threads()) sum += parts[b];
    *total = BlockSum(thread, sum);
    return thread.index() == 0;
  }
};

}  // namespace dtrain::gpu::cuda
