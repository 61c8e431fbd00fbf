#include "trainer/data/glyph.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace dtrain {
namespace {

constexpr float kAspect = 0.62f;  // width of a digit over its height

struct Point {
  float x, y;
};
// A line of straight pieces; coordinates in a box of 1 x 1 with y down, as one would sketch it.
using Polyline = std::vector<Point>;

// Part of an ellipse, in degrees: 0 is right, 90 down, 180 left, 270 up.
Polyline Arc(float cx, float cy, float rx, float ry, float from, float to) {
  constexpr int kPieces = 16;
  constexpr float kRadians = 3.14159265f / 180;
  Polyline line;
  for (int i = 0; i <= kPieces; ++i) {
    const float angle = (from + (to - from) * static_cast<float>(i) / kPieces) * kRadians;
    line.push_back({cx + rx * std::cos(angle), cy + ry * std::sin(angle)});
  }
  return line;
}

float DistanceToPiece(Point p, Point a, Point b) {
  const float dx = b.x - a.x, dy = b.y - a.y;
  const float length2 = dx * dx + dy * dy;
  const float along = length2 == 0 ? 0 : ((p.x - a.x) * dx + (p.y - a.y) * dy) / length2;
  const float share = std::clamp(along, 0.0f, 1.0f);
  return std::hypot(p.x - a.x - share * dx, p.y - a.y - share * dy);
}

Point FromBox(Point p) { return {(p.x - 0.5f) * kAspect, p.y - 0.5f}; }

Glyph Draw(int digit, const std::vector<Polyline>& strokes) {
  Glyph glyph;
  glyph.digit = digit;
  glyph.distances.assign(Glyph::kGrid * Glyph::kGrid, std::numeric_limits<float>::max());
  constexpr float kStep = 2 * Glyph::kHalfWidth / (Glyph::kGrid - 1);
  for (int row = 0; row < Glyph::kGrid; ++row) {
    for (int column = 0; column < Glyph::kGrid; ++column) {
      const Point p{static_cast<float>(column) * kStep - Glyph::kHalfWidth,
                    static_cast<float>(row) * kStep - Glyph::kHalfWidth};
      float& nearest = glyph.distances[row * Glyph::kGrid + column];
      for (const Polyline& line : strokes) {
        for (size_t i = 1; i < line.size(); ++i) {
          nearest = std::min(nearest, DistanceToPiece(p, FromBox(line[i - 1]), FromBox(line[i])));
        }
      }
    }
  }
  return glyph;
}

}  // namespace

std::vector<Glyph> DrawGlyphs() {
  return {
      Draw(0, {Arc(.5f, .5f, .45f, .5f, 0, 360)}),
      Draw(1, {{{.5f, 0}, {.5f, 1}}}),
      Draw(1, {{{.2f, .22f}, {.55f, 0}, {.55f, 1}}}),
      Draw(2, {Arc(.5f, .28f, .4f, .28f, 190, 400), {{.81f, .46f}, {.08f, 1}, {.92f, 1}}}),
      Draw(3, {Arc(.45f, .26f, .4f, .26f, 200, 450), Arc(.45f, .75f, .45f, .25f, 270, 520)}),
      Draw(4, {{{.65f, 1}, {.65f, 0}, {.05f, .68f}, {.95f, .68f}}}),
      Draw(4, {{{.15f, 0}, {.1f, .55f}, {.9f, .55f}}, {{.8f, 0}, {.8f, 1}}}),
      Draw(5, {{{.85f, 0}, {.2f, 0}, {.14f, .45f}}, Arc(.45f, .68f, .45f, .32f, 225, 510)}),
      Draw(6, {Arc(.5f, .69f, .42f, .31f, 0, 360), Arc(.75f, .67f, .67f, .67f, 180, 270)}),
      Draw(7, {{{.05f, 0}, {.92f, 0}, {.35f, 1}}}),
      Draw(7, {{{.05f, 0}, {.92f, 0}, {.35f, 1}}, {{.3f, .5f}, {.85f, .5f}}}),
      Draw(8, {Arc(.5f, .25f, .36f, .25f, 0, 360), Arc(.5f, .74f, .43f, .26f, 0, 360)}),
      Draw(9, {Arc(.5f, .3f, .42f, .3f, 0, 360), Arc(.25f, .3f, .67f, .7f, 0, 65)}),
  };
}

}  // namespace dtrain
