// Sums over warps, blocks and a whole launch, in an order that depends on the launch's shape alone: the same
// bits every time.
#pragma once

#include <cmath>
#include <cstdint>

#include "gpu/kernel_thread.h"

namespace dtrain::gpu::cuda {

constexpr int kMaxWarps = 32;  // of a block; as many as lanes

// The sum over `group` lanes next to each other, a power of two; the same bits in each of them.
template <int group, typename Thread, typename T>
DT_KERNEL_BODY T GroupSum(Thread& thread, T value) {
  DT_UNROLL()
  for (int mask = group / 2; mask > 0; mask /= 2) value += thread.ShuffleXor(value, mask);
  return value;
}

// What is not a number is passed over.
template <int group, typename Thread>
DT_KERNEL_BODY float GroupMax(Thread& thread, float value) {
  DT_UNROLL()
  for (int mask = group / 2; mask > 0; mask /= 2) value = fmaxf(value, thread.ShuffleXor(value, mask));
  return value;
}

// In all threads of the block: each warp adds what the warps found, a value in each lane, so that nobody
// waits for one that does it for all.
template <typename Thread, typename T>
DT_KERNEL_BODY T BlockSum(Thread& thread, T value) {
  const T own = GroupSum<32>(thread, value);
  T* const warps = thread.template Shared<T, kMaxWarps>();
  thread.Sync();  // the last call's are read
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

// Whether this block is the last of the `blocks` that come here with this ticket: it then sees all that they
// wrote before (read it as volatile), and the ticket (Queue::Ticket) is 0 again.
template <typename Thread>
DT_KERNEL_BODY bool LastBlock(Thread& thread, uint32_t* ticket, int64_t blocks) {
  int32_t* const last = thread.template Shared<int32_t, 1>();
  thread.Sync();
  if (thread.index() == 0) {
    thread.Publish();  // what the whole block wrote: this thread saw it at Sync()
    *last = static_cast<int64_t>(thread.AtomicAdd(ticket, uint32_t{1})) + 1 == blocks;
    if (*last) *ticket = 0;
    thread.Publish();
  }
  thread.Sync();
  return *last != 0;
}

// The sum over all threads of a launch, and where it keeps those of the blocks.
template <typename T>
struct GridSum {
  T* blocks;  // one for each; of one block none
  uint32_t* ticket;

  // Called once by all threads. True in the one thread that is given the total.
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
