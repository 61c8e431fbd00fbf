// What CUDA_VISIBLE_DEVICES leaves of a machine's devices, for the fake.
#pragma once

#include <vector>

namespace dtrain::gpu::cuda {

// The numbers of the visible ones of `count`, in their order. `setting` is the variable's value, null where
// it is not set: numbers with commas between them, and the first one that is none, or no device's, ends the
// list. One that is named twice leaves nothing, as with NVIDIA's runtime.
std::vector<int> VisibleDevices(const char* setting, int count);

}  // namespace dtrain::gpu::cuda
