// FakeRuntime: a Runtime for tests. This processor plays the devices, as strictly as it can:
//   - Queued work is done only when a caller waits for it or asks (one piece for each Done() and Relax()), or
//     at the end. Streams are ordered by events only. Without a wait a test reads poison, or old values.
//   - Only queued work can access device memory (as long as little is used: arena.h). Memory is filled with
//     0xff when it is allocated and when it is freed.
//   - A mistake of ours fails a DT_CHECK: a copy beyond its block, a block freed twice, a write behind a
//     block, a grid that is too large, a deleted handle, a handle that is never deleted.
//   - A call that CUDA refuses during a capture throws DeviceError and spoils the capture.
// Owner: a test. Thread: any.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gpu/cuda/fake/arena.h"
#include "gpu/cuda/fake/grid.h"
#include "gpu/cuda/fake/work_queues.h"
#include "gpu/cuda/runtime.h"

namespace dtrain::gpu::cuda {

struct FakeOptions {
  // The devices of the machine. CUDA_VISIBLE_DEVICES selects from them as with NVIDIA's runtime, except that
  // UUIDs are not supported.
  std::vector<std::string> names = {"Fake GPU A", "Fake GPU B"};
  int64_t bytes = int64_t{1} << 30;  // of each device
  int major = 9;                     // compute capability of each device
  std::string why_no_blas;           // the answer of WhyNoBlas()
  // How long Relax() may be called with nothing queued and nothing new, before it aborts.
  std::chrono::milliseconds idle = std::chrono::seconds(60);
  std::function<void(int device)> on_context;  // called under the lock when a device gets a context
};

// FakeCall: the calls that can be made to fail.
enum class FakeCall {
  kNewStream,
  kWait,            // for a stream or an event
  kAllocate,        // answers null
  kAllocatePinned,  // answers null
  kPin,             // answers false
  kCopy,
  kFill,
  kLaunch,  // of a kernel
  kNewBlas,
  kMultiply,
  kEndCapture,
  kLaunchGraph,
  kCount,
};

struct FakeCounts {
  std::vector<int> contexts;  // contexts made, by device
  int64_t allocations = 0;    // of device memory
  int64_t launches = 0;       // calls, including captured ones
  int64_t graph_launches = 0;
  int64_t kernels = 0;          // kernels run, including those of graphs
  int64_t products = 0;         // likewise
  int64_t bytes_to_device = 0;  // copied, likewise
  int64_t bytes_from_device = 0;
  int64_t bytes_between_devices = 0;  // or within one
};

class FakeRuntime final : public Runtime {
 public:
  explicit FakeRuntime(FakeOptions options = {});
  ~FakeRuntime() override;

  // Makes the next call of this kind fail, after `after` calls that do not.
  void FailNext(FakeCall call, int after = 0);
  FakeCounts counts() const;
  size_t queued() const;  // pieces of work that are not done yet
  // Returns "1 stream, 2 events" that were never deleted; empty if there are none. The destructor checks it.
  std::string Leaks() const;

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
  enum class Place { kPlain, kPinned, kDevice };
  struct FakeDevice {
    DeviceInfo info;
    std::unique_ptr<Arena> arena;  // made with the context
    int contexts = 0;
  };
  struct Pinned {
    size_t bytes;
    bool ours;  // made by AllocatePinned()
  };
  struct Blas {
    StreamHandle stream;
    void* workspace;
  };
  // Running: while it lives, queued work may run.
  class Running {
   public:
    explicit Running(FakeRuntime& runtime) : runtime_(runtime) {
      runtime.last_work_ = std::chrono::steady_clock::now();
    }
    ~Running() { runtime_.CloseAll(); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    FakeRuntime& runtime_;
  };

  // The functions below are called with the lock held.
  FakeDevice& DeviceOf(StreamHandle stream);
  Arena& MakeContext(int device);
  bool Fails(FakeCall call);
  void ThrowIfFails(FakeCall call, StreamHandle stream);
  // Returns where the memory lies that a call names; with `queued`, that queued work names.
  Place PlaceOf(const void* memory, size_t bytes, bool queued = false) const;
  void CheckOnDevice(int device, const void* memory, size_t bytes, bool queued) const;
  void* AllocateBlock(StreamHandle stream, size_t bytes);
  void FreeBlock(StreamHandle stream, void* memory);
  void RunCopy(void* to, Place to_place, const void* from, Place from_place, size_t bytes);
  void RunProduct(int device, const Product& product);
  void CheckProduct(int device, const Product& product, bool queued) const;
  // Makes the memory of devices accessible to this process: that of one for its kernels, that of all for a
  // copy.
  void Open(int device);
  void OpenAll();
  void CloseAll();
  std::string LeaksLocked() const;

  const FakeOptions options_;
  mutable std::mutex mutex_;
  std::vector<FakeDevice> devices_;
  std::string why_;  // why there are no devices
  WorkQueues queues_;
  GridRunner grid_runner_;
  std::map<uintptr_t, Pinned> pinned_;
  std::map<uint64_t, Blas> blas_;
  uint64_t last_blas_ = 0;
  FakeCounts counts_;
  std::array<int, static_cast<size_t>(FakeCall::kCount)> fail_after_;  // negative: does not fail
  std::chrono::steady_clock::time_point last_work_;
};

// Returns the devices that CUDA_VISIBLE_DEVICES selects from `count`, in its order. `setting` is the
// variable's value: numbers separated by commas; null if it is not set. The list ends at the first entry that
// is not the number of a device. If a device is named twice, nothing is selected, as with NVIDIA's runtime.
std::vector<int> VisibleDevices(const char* setting, int count);

}  // namespace dtrain::gpu::cuda
