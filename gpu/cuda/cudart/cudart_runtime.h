// CudartRuntime: the Runtime on the CUDA runtime library. Thread: any.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "gpu/cuda/cudart/cublas.h"
#include "gpu/cuda/runtime.h"

namespace dtrain::gpu::cuda {

// The errors of the CUDA runtime as DeviceError, and the current device.

// Throws DeviceError "cuda 0 (NVIDIA H100 80GB HBM3): cudaFoo: what is wrong" if `error` is one.
void Check(cudaError_t error, int device, const char* call);

// For calls whose failure does not matter: clears their error in this thread.
void Forget(cudaError_t error);

// Makes `device` the current one of this thread, with a context.
void MakeCurrent(int device);
// The same, but returns false if it fails.
bool TryMakeCurrent(int device);

// CudartRuntime: the Runtime of NVIDIA's devices, by the CUDA runtime library and cuBLAS. A handle is the
// address of an object that knows its device; each call first makes that device the current one of its
// thread. Owner: the task. Thread: any.
class CudartRuntime final : public Runtime {
 public:
  ~CudartRuntime() override;

  std::vector<DeviceInfo> Devices(std::string* why) override;
  std::string WhyNoBlas() override;
  std::string Versions() override;
  int64_t FreeBytes(int device) override;
  StreamHandle NewStream(int device) override;
  void Delete(StreamHandle stream) override;
  void Wait(StreamHandle stream) override;
  EventHandle NewEvent(int device) override;
  void Delete(EventHandle event) override;
  void Record(EventHandle event, StreamHandle stream) override;
  void WaitFor(StreamHandle stream, EventHandle event) override;
  void Wait(EventHandle event) override;
  bool Done(EventHandle event) override;
  double Milliseconds(EventHandle begin, EventHandle end) override;
  void Relax() override;
  void* Allocate(StreamHandle stream, size_t bytes) override;
  void Free(StreamHandle stream, void* memory) override;
  void* AllocatePinned(size_t bytes) override;
  void FreePinned(void* memory) override;
  bool Pin(void* memory, size_t bytes) override;
  void Unpin(void* memory) override;
  void Copy(StreamHandle stream, void* to, const void* from, size_t bytes) override;
  void Fill(StreamHandle stream, void* memory, int byte, size_t bytes) override;
  void Launch(StreamHandle stream, const Grid& grid, Kernel kernel, const void* arguments) override;
  BlasHandle NewBlas(StreamHandle stream, bool tf32) override;
  void Delete(BlasHandle blas) override;
  void Multiply(BlasHandle blas, const Product& product) override;
  void BeginCapture(StreamHandle stream) override;
  GraphHandle EndCapture(StreamHandle stream) override;
  void AbortCapture(StreamHandle stream) override;
  void Launch(StreamHandle stream, GraphHandle graph) override;
  void Delete(GraphHandle graph) override;

 private:
  struct Stream {
    int device;
    cudaStream_t stream;
    cudaMemPool_t pool;
    std::unique_lock<std::recursive_mutex> capture{};  // locked while a capture is active
  };
  struct Event {
    int device;
    cudaEvent_t event;
  };
  struct Graph {
    int device;
    cudaGraphExec_t graph;
  };
  struct Blas {
    int device;
    cudaStream_t stream;
    cublasHandle_t handle;
    void* workspace;
  };

  // Returns the object of a handle and makes its device current.
  static Stream& Use(StreamHandle handle);
  static Event& Use(EventHandle handle);
  static Graph& Use(GraphHandle handle);
  static Blas& Use(BlasHandle handle);

  // Returns the pool of the device's memory, made at the first use.
  cudaMemPool_t PoolOf(int device);
  // Returns a device that has a context, or the first one. Pinned memory is allocated in the context of one
  // device, for all of them.
  int AnyDevice();

  // Locked during a capture, and by calls that wait for the whole device inside the library: these would
  // spoil a capture of another thread.
  std::recursive_mutex capture_;
  std::mutex mutex_;
  std::vector<cudaMemPool_t> pools_;  // by device; null: not made yet
  Cublas cublas_;
};

}  // namespace dtrain::gpu::cuda
