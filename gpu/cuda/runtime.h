// Runtime: the parts of the CUDA runtime and of cuBLAS that dtrain uses. Implementations:
// cudart/cudart_runtime.h (NVIDIA's libraries) and fake/fake_runtime.h (for tests: this processor plays the
// device). Work is queued in streams and done in the order of its stream. A call returns before its work is
// done unless it says otherwise. Handles belong to the runtime that made them and are deleted by it. Errors:
// DeviceError with the device and what failed; Delete() never throws. Thread: any, also several at once in
// one stream; a BlasHandle and a capture: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "gpu/cuda/kernels/kernel.h"

namespace dtrain::gpu::cuda {

// DeviceError: a device cannot go on: a fault in a kernel, a lost connection, an error of a library.
class DeviceError : public Failure {
 public:
  explicit DeviceError(const std::string& text) : Failure(ExitCode::kInternal, text) {}
};

// The lowest compute capability that our kernels are compiled for (third_party/cuda/configure.bzl).
constexpr int kMinMajor = 7;
constexpr int kMinMinor = 5;

struct DeviceInfo {
  int id = 0;        // from 0, among those that CUDA_VISIBLE_DEVICES selects
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

// Product: c [m, n] = a [m, k] * b [k, n] (+ c if `add`), all f32 and row-major without gaps. A transposed
// operand lies in memory as [k, m] or [n, k]. m, n and k are above 0.
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

  // The calls up to Versions() make no context.

  // Returns the devices that this process may use. If there are none, `why` says why: "no driver".
  virtual std::vector<DeviceInfo> Devices(std::string* why) = 0;
  // Returns why there is no cuBLAS ("libcublas.so.13: cannot open shared object file"); empty if it is
  // loaded.
  virtual std::string WhyNoBlas() = 0;
  // Returns the versions for people: "CUDA runtime 13.0, driver 13.0, cuBLAS 13.1".
  virtual std::string Versions() = 0;

  // The calls from here on make a context on the device that they name, or on the stream's device.

  virtual int64_t FreeBytes(int device) = 0;

  virtual StreamHandle NewStream(int device) = 0;
  virtual void Delete(StreamHandle stream) = 0;  // does not wait: queued work is still done
  virtual void Wait(StreamHandle stream) = 0;    // until all its queued work is done

  virtual EventHandle NewEvent(int device) = 0;
  virtual void Delete(EventHandle event) = 0;
  virtual void Record(EventHandle event, StreamHandle stream) = 0;
  // Work that is queued in `stream` from now on waits for the event's last Record(); without one it does not
  // wait.
  virtual void WaitFor(StreamHandle stream, EventHandle event) = 0;
  virtual void Wait(EventHandle event) = 0;  // until it is reached
  virtual bool Done(EventHandle event) = 0;  // whether it is reached; does not wait
  // Returns the time between two events that are both done.
  virtual double Milliseconds(EventHandle begin, EventHandle end) = 0;
  // Call it in each turn of a loop that polls pinned memory which a stream writes.
  virtual void Relax() = 0;

  // Allocates from the pool of the stream's device, aligned to 256 bytes, for what is queued in that stream
  // from now on. Returns null if there is too little memory. 0 bytes are allowed.
  virtual void* Allocate(StreamHandle stream, size_t bytes) = 0;
  // Frees memory; what is queued from now on must not use it.
  virtual void Free(StreamHandle stream, void* memory) = 0;
  // Allocates zeroed memory of this machine that all devices access at the same address. Returns null if
  // there is too little. Make a stream first: without any context this makes one on device 0.
  virtual void* AllocatePinned(size_t bytes) = 0;
  virtual void FreePinned(void* memory) = 0;  // no queued work may use it any more
  // Makes memory of this process accessible to devices, until Unpin(). Returns false if the system refuses.
  virtual bool Pin(void* memory, size_t bytes) = 0;
  virtual void Unpin(void* memory) = 0;

  // Copies between any two of: the device's memory, another device's, pinned memory, plain memory. If one
  // side is plain memory, waits until it has been read or written.
  virtual void Copy(StreamHandle stream, void* to, const void* from, size_t bytes) = 0;
  virtual void Fill(StreamHandle stream, void* memory, int byte, size_t bytes) = 0;

  // `arguments` is the kernel's body (kernel.h); it is copied before this returns. `grid` has at least one
  // block.
  virtual void Launch(StreamHandle stream, const Grid& grid, Kernel kernel, const void* arguments) = 0;

  // Makes a cuBLAS handle with a workspace of its own, for products in `stream`. `tf32`: products run on
  // tensor cores with 10 bits of mantissa.
  virtual BlasHandle NewBlas(StreamHandle stream, bool tf32) = 0;
  virtual void Delete(BlasHandle blas) = 0;
  virtual void Multiply(BlasHandle blas, const Product& product) = 0;

  // Captures a graph. Between these two calls, work queued in `stream`, or in a stream that waits for an
  // event of it, is not done but becomes part of the graph. The streams must be joined again by events before
  // the end. In between: one thread, no allocation, no wait and no plain memory. Call AbortCapture() after an
  // exception in between; it does nothing if no capture is active, as after an EndCapture() that throws.
  virtual void BeginCapture(StreamHandle stream) = 0;
  virtual GraphHandle EndCapture(StreamHandle stream) = 0;
  virtual void AbortCapture(StreamHandle stream) = 0;
  virtual void Launch(StreamHandle stream, GraphHandle graph) = 0;
  virtual void Delete(GraphHandle graph) = 0;
};

// Returns the runtime of this program. It makes no context until a call needs one. In a build without CUDA it
// has no devices and says so.
std::unique_ptr<Runtime> MakeRuntime();

}  // namespace dtrain::gpu::cuda
