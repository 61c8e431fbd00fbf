// What the body of a kernel may ask of its thread, on a device and on this processor alike:
//
//   int64_t block(), blocks()    which block, of how many
//   int index(), threads()       which thread of its block, of how many
//   int lane(), warp(), warps()  index() as a lane of 32 and a warp of its block
//   void Sync()                  waits for all threads of the block
//   T Shuffle(T value, int lane)     `value` as that lane of this warp gave it
//   T ShuffleXor(T value, int mask)  `value` as lane() ^ mask gave it
//                                T: float, double, int32_t or int64_t
//   T* Shared<T, N>()            N elements, uninitialised, that the threads of the block share
//                                the same ones at every call with the same T and N
//   T AtomicAdd(T* at, T value)  in device memory: what was there before
//                                T: int32_t, uint32_t or unsigned long long
//   void Publish()               what this thread wrote before is seen by each thread of the launch that sees
//                                what it writes after
//
// Sync() and the shuffles are called by all threads of the block or of the warp, or by none. A body that
// calls neither says so: `static constexpr bool kSynchronizes = false;`, the others say true.
#pragma once

#ifdef __CUDACC__
#define DT_KERNEL_BODY __host__ __device__
#else
#define DT_KERNEL_BODY
#endif

// Unrolls the loop that follows by `times` (completely if none is given), for loads that do not wait for each
// other. g++, which compiles a .cu file too, does not know the pragma.
#ifdef __CUDA_ARCH__
#define DT_UNROLL(times) _Pragma(DT_UNROLL_TEXT(unroll times))
#define DT_UNROLL_TEXT(text) #text
#else
#define DT_UNROLL(times)
#endif
