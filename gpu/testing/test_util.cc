#include "gpu/testing/test_util.h"

#include <hwy/targets.h>

#include <string>

#include "base/check.h"

namespace dtrain::gpu::test {
namespace {

cuda::DeviceInfo FirstDevice(cuda::Runtime& runtime) {
  std::string why;
  const std::vector<cuda::DeviceInfo> devices = runtime.Devices(&why);
  DT_CHECK(!devices.empty(), why);
  cuda::DeviceInfo first = devices[0];
  // This number only shapes launches. With the fake device's number a grid loops as often as it does there,
  // in tests of the same size.
  first.multiprocessors = 4;
  return first;
}

// Loads cuBLAS before the device is made: what the library registers for the end of the process then runs
// after what is made later.
std::unique_ptr<cuda::Runtime> LoadedRuntime() {
  std::unique_ptr<cuda::Runtime> runtime = cuda::MakeRuntime();
  runtime->WhyNoBlas();
  return runtime;
}

}  // namespace

Place::Place(std::unique_ptr<cuda::Runtime> runtime)
    : runtime_(std::move(runtime)),
      device_(std::make_unique<cuda::Device>(*runtime_, FirstDevice(*runtime_), 1, false)),
      queue_(std::make_unique<cuda::Queue>(*device_)),
      stream_(*queue_) {}

const std::vector<Place*>& Places() {
  static Place processor;
  static Place device(LoadedRuntime());
  static const std::vector<Place*> places = {&processor, &device};
  return places;
}

void UseInstructions(int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace dtrain::gpu::test
