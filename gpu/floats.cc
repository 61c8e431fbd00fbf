#include "gpu/floats.h"

#include <algorithm>

namespace dtrain::gpu {

// By pieces: a copy of all of it here could be more than this machine has.
Floats::Floats(cuda::Queue& queue, int64_t size, float value, const char* what) : there_(queue, size, what) {
  constexpr int64_t kPiece = 1 << 20;
  const std::vector<float> values(static_cast<size_t>(std::min(size, kPiece)), value);
  for (int64_t begin = 0; begin < size; begin += kPiece) {
    const int64_t count = std::min(kPiece, size - begin);
    queue.Copy(there_.data() + begin, values.data(), count * static_cast<int64_t>(sizeof(float)));
  }
  queue.Wait();
}

}  // namespace dtrain::gpu
