// Glyph: the shape of a digit as the distance to its nearest stroke, on a grid. Drawn once from lines and
// arcs of our own, then sampled for every image, turned and scaled as the image wants.
// Units: the digit's height is 1, its centre (0, 0); x to the right, y down.
#pragma once

#include <cstdint>
#include <vector>

namespace dtrain {

struct Glyph {
  static constexpr int kGrid = 64;           // points on each side
  static constexpr float kHalfWidth = 0.9f;  // the grid spans [-kHalfWidth, kHalfWidth] in x and y
  int digit = 0;
  std::vector<float> distances;  // [kGrid, kGrid] row-major

  // Distance to the nearest stroke, interpolated between grid points; outside the grid that of its edge.
  float DistanceAt(float x, float y) const;
};

// The digits 0 to 9, some of them in two ways of writing; every digit at least once.
std::vector<Glyph> DrawGlyphs();

inline float Glyph::DistanceAt(float x, float y) const {
  constexpr float kScale = (kGrid - 1) / (2 * kHalfWidth);
  constexpr float kLast = kGrid - 1.001f;
  float column = (x + kHalfWidth) * kScale;
  float row = (y + kHalfWidth) * kScale;
  column = column < 0 ? 0 : column > kLast ? kLast : column;
  row = row < 0 ? 0 : row > kLast ? kLast : row;
  const int left = static_cast<int>(column);
  const int top = static_cast<int>(row);
  const float right_share = column - static_cast<float>(left);
  const float low_share = row - static_cast<float>(top);
  const float* corner = distances.data() + top * kGrid + left;
  const float upper = corner[0] + right_share * (corner[1] - corner[0]);
  const float lower = corner[kGrid] + right_share * (corner[kGrid + 1] - corner[kGrid]);
  return upper + low_share * (lower - upper);
}

}  // namespace dtrain
