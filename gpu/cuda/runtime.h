// Runtime: what dtrain asks of the CUDA runtime and of cuBLAS, and nothing more. Implementations:
// cudart/cudart_runtime.h (NVIDIA's libraries), fake/fake_runtime.h (tests: this processor plays the device).
// Work is queued in streams and done in the order of its stream; a call returns before its work is done
// unless it says otherwise. Handles belong to the runtime that made them and are given back to it. Errors:
// DeviceError, which names the device and what failed; never after a handle's Delete(). Thread: any, also
// several at once in one stream; a BlasHandle and a capture: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "gpu/cuda/kernels/kernel.h"

namespace dtrain::gpu::cuda {

// A device that cannot go on: a fault in a kernel, a lost connection, a library that refuses.
class DeviceError : public Failure {
 public:
  explicit DeviceError(const std::string& text) : Failure(ExitCode::kInternal, text) {}
};

// The oldest compute capability that our kernels are compiled for (third_party/cuda/configure.bzl).
constexpr int kMinMajor = 7;
constexpr int kMinMinor = 5;

struct DeviceInfo {
  int id = 0;        // from 0, among those that CUDA_VISIBLE_DEVICES leaves
  std::string name;  // "NVIDIA H100 80GB HBM3"
  int major = 0;     // compute capability
  int minor = 0;
  std::string pci;  // "0000:3b:00.0"
  int64_t total_bytes = 0;
  int multiprocessors = 0;
};

enum class StreamHandle : uintptr_t {};
enum class EventHandle : uintptr_t {};
enum class GraphHandle : uintptr_t {};
enum class BlasHandle : uintptr_t {};

// c [m, n] = a [m, k] * b [k, n] (+ c where `add`), all f32 and row-major without gaps; a transposed operand
// lies in memory as [k, m] or [n, k]. m, n and k are above 0.
struct Product {
  int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  const float* a = nullptr;
  const float* b = nullptr;
  float* c = nullptr;
  bool add = false;
};

class Runtime {
 public:
  virtual ~Runtime() = default;

  // Without a context:
  // The devices that this process may use. Where there are none, `why` says why in a few words: "no driver".
  virtual std::vector<DeviceInfo> Devices(std::string* why) = 0;
  // Why there is no cuBLAS ("libcublas.so.13: cannot open shared object file"); empty: it is loaded.
  virtual std::string WhyNoBlas() = 0;
  // The versions of the parts, for people: "CUDA runtime 13.0, driver 13.0, cuBLAS 13.1".
  virtual std::string Versions() = 0;

  // From here on the device that is named, or that of the stream, gets a context.
  virtual int64_t FreeBytes(int device) = 0;

  virtual StreamHandle NewStream(int device) = 0;
  virtual void Delete(StreamHandle stream) = 0;  // waits for nothing: what is queued there is still done
  virtual void Wait(StreamHandle stream) = 0;    // until all that is queued there is done

  virtual EventHandle NewEvent(int device) = 0;
  virtual void Delete(EventHandle event) = 0;
  virtual void Record(EventHandle event, StreamHandle stream) = 0;
  // What is queued in `stream` from now on begins when the event's last Record() is reached; at once where
  // there was none.
  virtual void WaitFor(StreamHandle stream, EventHandle event) = 0;
  virtual void Wait(EventHandle event) = 0;  // until then
  virtual bool Done(EventHandle event) = 0;  // whether it is reached; waits for nothing
  // Between two events that are done.
  virtual double Milliseconds(EventHandle begin, EventHandle end) = 0;
  // For a loop that looks at pinned memory which a stream writes: called in each turn.
  virtual void Relax() = 0;

  // 256-byte aligned, from the stream's device's pool, usable by what is queued in that stream from now on.
  // Null where there is too little memory. 0 bytes are allowed.
  virtual void* Allocate(StreamHandle stream, size_t bytes) = 0;
  // For what is queued from now on it is gone.
  virtual void Free(StreamHandle stream, void* memory) = 0;
  // Memory of this machine that all devices read and write at the same address, zeroed. Null: too little
  // memory. Make a stream first: with no context yet it makes one on device 0.
  virtual void* AllocatePinned(size_t bytes) = 0;
  virtual void FreePinned(void* memory) = 0;  // what uses it is done
  // Makes memory of this process such memory, until Unpin(). False where the system does not let us.
  virtual bool Pin(void* memory, size_t bytes) = 0;
  virtual void Unpin(void* memory) = 0;

  // Between any two of: the device's memory, another device's, pinned memory, plain memory. From and to plain
  // memory it waits until that has been read or written.
  virtual void Copy(StreamHandle stream, void* to, const void* from, size_t bytes) = 0;
  virtual void Fill(StreamHandle stream, void* memory, int byte, size_t bytes) = 0;

  // `arguments` is the kernel's body (kernel.h), copied before this returns. Not for 0 blocks.
  virtual void Launch(StreamHandle stream, const Grid& grid, Kernel kernel, const void* arguments) = 0;

  // A cuBLAS handle with a workspace of its own, for products in `stream`. `tf32`: products of 10 bits of
  // mantissa by the tensor cores.
  virtual BlasHandle NewBlas(StreamHandle stream, bool tf32) = 0;
  virtual void Delete(BlasHandle blas) = 0;
  virtual void Multiply(BlasHandle blas, const Product& product) = 0;

  // Between these two calls nothing that is queued in `stream`, or in a stream that waits for an event of it,
  // is done: it becomes a graph. The streams are joined again by events before the end. No allocation, no
  // wait and no plain memory in between, and all in one thread. AbortCapture(): after an exception there;
  // nothing where no capture is under way, as behind an EndCapture() that throws.
  virtual void BeginCapture(StreamHandle stream) = 0;
  virtual GraphHandle EndCapture(StreamHandle stream) = 0;
  virtual void AbortCapture(StreamHandle stream) = 0;
  virtual void Launch(StreamHandle stream, GraphHandle graph) = 0;
  virtual void Delete(GraphHandle graph) = 0;
};

// The runtime of this program. It does nothing until it is asked: a task that never does makes no context. In
// a build without CUDA it has no devices and says so.
std::unique_ptr<Runtime> MakeRuntime();

}  // namespace dtrain::gpu::cuda
