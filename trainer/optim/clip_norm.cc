#include "trainer/optim/clip_norm.h"

#include <cmath>
#include <cstddef>

namespace dtrain {

double ClipScale(const gpu::SquareSum& squares, double clip_norm) {
  if (!squares.finite) return 1;
  const double norm = std::sqrt(gpu::Total(squares));
  return norm > clip_norm ? clip_norm / norm : 1;
}

void ClipToNorm(double clip_norm, gpu::Span<float> gradient) {
  gpu::Stream stream;
  gpu::SquareSum squares;
  gpu::AddSquares(stream, reinterpret_cast<const std::byte*>(gradient.data), gradient.size, &squares);
  const double scale = ClipScale(squares, clip_norm);
  if (scale < 1) gpu::Scale(stream, static_cast<float>(scale), gradient);
}

}  // namespace dtrain
