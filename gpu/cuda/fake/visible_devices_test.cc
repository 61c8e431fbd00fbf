#include "gpu/cuda/fake/visible_devices.h"

#include <doctest/doctest.h>

namespace dtrain::gpu::cuda {
namespace {

TEST_CASE("visible devices: all without the variable, else those of the list up to the first that is none") {
  using List = std::vector<int>;
  CHECK(VisibleDevices(nullptr, 3) == List{0, 1, 2});
  CHECK(VisibleDevices("", 3).empty());
  CHECK(VisibleDevices("-1", 3).empty());
  CHECK(VisibleDevices("2,0", 3) == List{2, 0});
  CHECK(VisibleDevices("1,-1,0", 3) == List{1});
  CHECK(VisibleDevices("1,3,0", 3) == List{1});
  CHECK(VisibleDevices("1,x,0", 3) == List{1});
  CHECK(VisibleDevices("1,99999999999999999999", 3) == List{1});
  CHECK(VisibleDevices("GPU-4", 3).empty());
  CHECK(VisibleDevices("0,1,0", 3).empty());
}

}  // namespace
}  // namespace dtrain::gpu::cuda
