// The runtime of a build without the CUDA toolkit. It has no devices, so no other call is made.
#include <cstdlib>

#include "base/check.h"
#include "gpu/cuda/runtime.h"

namespace dtrain::gpu::cuda {
namespace {

[[noreturn]] void NoDevice() { CheckFailed(__FILE__, __LINE__, "a device", {"built without CUDA"}); }

class NoCuda final : public Runtime {
 public:
  std::vector<DeviceInfo> Devices(std::string* why) override {
    *why = "built without CUDA";
    return {};
  }
  std::string WhyNoBlas() override { return "built without CUDA"; }
  std::string Versions() override { return "built without CUDA"; }

  int64_t FreeBytes(int) override { NoDevice(); }
  StreamHandle NewStream(int) override { NoDevice(); }
  void Delete(StreamHandle) override { NoDevice(); }
  void Wait(StreamHandle) override { NoDevice(); }
  EventHandle NewEvent(int) override { NoDevice(); }
  void Delete(EventHandle) override { NoDevice(); }
  void Record(EventHandle, StreamHandle) override { NoDevice(); }
  void WaitFor(StreamHandle, EventHandle) override { NoDevice(); }
  void Wait(EventHandle) override { NoDevice(); }
  bool Done(EventHandle) override { NoDevice(); }
  double Milliseconds(EventHandle, EventHandle) override { NoDevice(); }
  void Relax() override { NoDevice(); }
  void* Allocate(StreamHandle, size_t) override { NoDevice(); }
  void Free(StreamHandle, void*) override { NoDevice(); }
  void* AllocatePinned(size_t) override { NoDevice(); }
  void FreePinned(void*) override { NoDevice(); }
  bool Pin(void*, size_t) override { NoDevice(); }
  void Unpin(void*) override { NoDevice(); }
  void Copy(StreamHandle, void*, const void*, size_t) override { NoDevice(); }
  void Fill(StreamHandle, void*, int, size_t) override { NoDevice(); }
  void Launch(StreamHandle, const Grid&, Kernel, const void*) override { NoDevice(); }
  BlasHandle NewBlas(StreamHandle, bool) override { NoDevice(); }
  void Delete(BlasHandle) override { NoDevice(); }
  void Multiply(BlasHandle, const Product&) override { NoDevice(); }
  void BeginCapture(StreamHandle) override { NoDevice(); }
  GraphHandle EndCapture(StreamHandle) override { NoDevice(); }
  void AbortCapture(StreamHandle) override { NoDevice(); }
  void Launch(StreamHandle, GraphHandle) override { NoDevice(); }
  void Delete(GraphHandle) override { NoDevice(); }
};

}  // namespace

std::unique_ptr<Runtime> MakeRuntime() { return std::make_unique<NoCuda>(); }

}  // namespace dtrain::gpu::cuda
