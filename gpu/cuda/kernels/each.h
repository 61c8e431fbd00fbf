// Loops over independent elements, 16 bytes at a time if the addresses allow it.
// Cost: memory traffic, each input read and each output written once; the arithmetic hides behind it. A
// thread has 16 bytes of each input in flight (32 if there are few inputs), and an SM runs 1024 threads or
// more. That is more than the 15 KiB in flight per SM that an H100 needs for 3 TB/s at a latency of 0.6 us.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpu/kernel_thread.h"

namespace dtrain::gpu::cuda {

// Pack: values that are loaded and stored by one instruction, or by several of 16 bytes each.
template <typename T, int count>
struct alignas(sizeof(T) * count < 16 ? sizeof(T) * count : 16) Pack {
  T at[count];
};

// Stores a whole pack at once; nvcc splits all but the first of several stores in a row.
template <typename T, int count>
DT_KERNEL_BODY void StorePack(const Pack<T, count>& pack, T* at) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(pack) % sizeof(uint4) == 0) {
    uint4 words[sizeof(pack) / sizeof(uint4)];
    memcpy(words, &pack, sizeof(pack));
    for (size_t w = 0; w < sizeof(pack) / sizeof(uint4); ++w)
      __stwb(reinterpret_cast<uint4*>(at) + w, words[w]);
    return;
  }
#endif
  *reinterpret_cast<Pack<T, count>*>(at) = pack;
}

// Packing: where the packs of a range lie.
struct Packing {
  int64_t head;  // elements before the first pack; all of them if the addresses are not aligned alike
  int64_t size;
};

DT_KERNEL_BODY inline bool HasWholePacks(int64_t) { return true; }
template <typename T, typename... Rest>
DT_KERNEL_BODY bool HasWholePacks(int64_t head, const T* first, const Rest*... rest) {
  return reinterpret_cast<uintptr_t>(first + head) % 16 == 0 && HasWholePacks(head, rest...);
}

// Returns the packing for packs of `width` elements of each of `ranges`, 16 bytes or a multiple.
template <int width, typename... T>
DT_KERNEL_BODY Packing PackingOf(int64_t size, const T*... ranges) {
  for (int64_t head = 0; head < width && head < size; ++head) {
    if (HasWholePacks(head, ranges...)) return {head, size};
  }
  return {size, size};
}

// Calls body.Do<width, unroll>(i, step) for elements [i, i + width) and `unroll` - 1 more packs, `step`
// elements apart, so that every element is covered once.
template <int width, int unroll, typename Thread, typename Body>
DT_KERNEL_BODY void ForEach(Thread& thread, const Packing& packing, Body& body) {
  const int64_t first = thread.block() * thread.threads() + thread.index();
  const int64_t step = thread.blocks() * thread.threads();
  const int64_t packs = (packing.size - packing.head) / width;
  int64_t i = first;
  for (; i + (unroll - 1) * step < packs; i += unroll * step) {
    body.template Do<width, unroll>(packing.head + i * width, step * width);
  }
  for (; i < packs; i += step) body.template Do<width, 1>(packing.head + i * width, 0);
  for (i = first; i < packing.head; i += step) body.template Do<1, 1>(i, 0);
  for (i = packing.head + packs * width + first; i < packing.size; i += step) body.template Do<1, 1>(i, 0);
}

// Applies function(in, out) to each element: in[s] is the element of input s, out[s] that of output s. An
// output may be an input. Function declares kIn and kOut, their numbers, and In and Out, their types.
template <typename Function>
struct Each {
  using In = typename Function::In;
  using Out = typename Function::Out;
  static constexpr bool kSynchronizes = false;
  static constexpr int kMaxThreads = 256;
  static constexpr int kBlocksOfMultiprocessor = 3;  // up to 80 registers, so that none are spilled
  static constexpr int kIn = Function::kIn, kOut = Function::kOut;
  // A pack of the larger type is 16 bytes, so that the packs of neighbouring lanes are adjacent for both
  // types. With twice 16 bytes per lane, half of each memory access would be wasted.
  static constexpr int kWidth = 16 / (sizeof(In) > sizeof(Out) ? sizeof(In) : sizeof(Out));
  static constexpr int kUnroll = kIn > 2 ? 1 : 32 / (kWidth * sizeof(In));
  Function function;
  const In* in[kIn];
  Out* out[kOut];
  Packing packing;

  template <typename Thread>
  DT_KERNEL_BODY void operator()(Thread& thread) const {
    ForEach<kWidth, kUnroll>(thread, packing, *this);
  }

  template <int width, int unroll>
  DT_KERNEL_BODY void Do(int64_t i, int64_t step) const {
    Inputs<width> inputs[unroll];
    DT_UNROLL()
    for (int u = 0; u < unroll; ++u) inputs[u] = Load<width>(i + u * step);
    DT_UNROLL()
    for (int u = 0; u < unroll; ++u) Store(inputs[u], i + u * step);
  }

 private:
  template <int width>
  struct Inputs {
    Pack<In, width> of[kIn];
  };

  template <int width>
  DT_KERNEL_BODY Inputs<width> Load(int64_t i) const {
    Inputs<width> inputs;
    DT_UNROLL()
    for (int s = 0; s < kIn; ++s) {
      inputs.of[s] = *reinterpret_cast<const Pack<In, width>*>(in[s] + i);
    }
    return inputs;
  }

  template <int width>
  DT_KERNEL_BODY void Store(const Inputs<width>& inputs, int64_t i) const {
    Pack<Out, width> to[kOut];
    DT_UNROLL()
    for (int e = 0; e < width; ++e) {
      In from[kIn];
      Out values[kOut];
      DT_UNROLL()
      for (int s = 0; s < kIn; ++s) from[s] = inputs.of[s].at[e];
      function(from, values);
      DT_UNROLL()
      for (int s = 0; s < kOut; ++s) to[s].at[e] = values[s];
    }
    DT_UNROLL()
    for (int s = 0; s < kOut; ++s) StorePack(to[s], out[s] + i);
  }
};

}  // namespace dtrain::gpu::cuda
