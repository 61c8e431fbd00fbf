// The runtime of a test's binary: this processor plays its devices.
#include <cstdio>

#include "gpu/cuda/fake/fake_runtime.h"

namespace dtrain::gpu::cuda {

std::unique_ptr<Runtime> MakeRuntime() {
  FakeOptions options;
  // For tests that check which tasks make a context.
  options.on_context = [](int device) { std::fprintf(stderr, "fake cuda: context on device %d\n", device); };
  return std::make_unique<FakeRuntime>(std::move(options));
}

}  // namespace dtrain::gpu::cuda
