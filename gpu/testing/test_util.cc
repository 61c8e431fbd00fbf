#include "gpu/testing/test_util.h"

#include <string>

#include "base/check.h"

namespace dtrain::gpu::test {
namespace {

cuda::DeviceInfo FirstDevice(cuda::Runtime& runtime) {
  std::string why;
  const std::vector<cuda::DeviceInfo> devices = runtime.Devices(&why);
  DT_CHECK(!devices.empty(), why);
  cuda::DeviceInfo first = devices[0];
  // It only shapes launches: with those of a played device a grid goes round as often as it does there, in
  // tests as small.
  first.multiprocessors = 4;
  return first;
}

// With cuBLAS: what it does at the process's end comes before what was made before it goes, and no sooner
// than what is made after. So it is loaded before the device is made.
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

}  // namespace dtrain::gpu::test
