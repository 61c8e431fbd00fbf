#include <doctest/doctest.h>

#include "gpu/cuda/runtime.h"

namespace dtrain::gpu::cuda {
namespace {

TEST_CASE("no cuda: a build without the toolkit has no devices and says so") {
  const std::unique_ptr<Runtime> runtime = MakeRuntime();
  std::string why;
  CHECK(runtime->Devices(&why).empty());
  CHECK(why == "built without CUDA");
  CHECK(runtime->WhyNoBlas() == "built without CUDA");
}

}  // namespace
}  // namespace dtrain::gpu::cuda
