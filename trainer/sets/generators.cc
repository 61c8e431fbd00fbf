#include "trainer/sets/generators.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "base/large_vector.h"
#include "base/random.h"
#include "gpu/ops.h"
#include "trainer/sets/memory_rows.h"

namespace dtrain {
namespace {

// Glyph: the shape of a digit as the distance to its nearest stroke, on a grid. It is computed once from
// lines and arcs and then sampled for every image, rotated and scaled. Units: the digit's height is 1, its
// centre is (0, 0), x points right and y down.
struct Glyph {
  static constexpr int kGrid = 64;           // points on each side
  static constexpr float kHalfWidth = 0.9f;  // the grid spans [-kHalfWidth, kHalfWidth] in x and y
  int digit = 0;
  std::vector<float> distances;  // [kGrid, kGrid] row-major

  // Returns the distance to the nearest stroke, interpolated between grid points; outside the grid, that of
  // the edge.
  float DistanceAt(float x, float y) const;
};

float Glyph::DistanceAt(float x, float y) const {
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

constexpr float kAspect = 0.62f;  // width of a digit over its height

struct Point {
  float x, y;
};
// A polyline, with coordinates in a box of 1 x 1 and y down.
using Polyline = std::vector<Point>;

// A part of an ellipse, in degrees: 0 is right, 90 down, 180 left, 270 up.
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
  // In double, which rounds as glibc's hypotf does. That one would need glibc 2.35.
  const double x = p.x - a.x - share * dx, y = p.y - a.y - share * dy;
  return static_cast<float>(std::sqrt(x * x + y * y));
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

// Returns the glyphs of the digits 0 to 9; some digits have two.
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

constexpr int kSide = 28;
// The ranges in which images vary. Lengths in pixels, angles in radians, light with white = 1.
constexpr float kMinHeight = 16, kMaxHeight = 20;    // height of a digit
constexpr float kMinWidth = 0.8f, kMaxWidth = 1.2f;  // its width over that of the glyph
constexpr float kTurn = 0.15f;
constexpr float kSlant = 0.2f;
constexpr float kShift = 1.7f;
constexpr float kMinPen = 0.9f, kMaxPen = 1.8f;  // half of the pen's width
constexpr float kMinInk = 0.5f;                  // of the ink; the maximum is 1
constexpr float kDarkness = 0.3f;                // the background at the strongest light
constexpr float kNoise = 0.2f;

// Uniform random values for one image, in a fixed sequence.
class ImageRandom {
 public:
  explicit ImageRandom(const CounterRandom& random) : random_(random) {}
  float Between(float low, float high) {
    return low + (high - low) * static_cast<float>(random_.Uniform(next_++));
  }
  uint64_t Below(uint64_t bound) { return random_.Below(next_++, bound); }
  uint64_t Bits() { return random_.Bits(next_++); }

 private:
  const CounterRandom random_;
  uint64_t next_ = 0;
};

// Pose: how one image is drawn.
struct Pose {
  float xx, xy, yx, yy;      // pixels relative to the centre -> the glyph's units
  float centre_x, centre_y;  // pixels
  float height;              // pixels
  float pen;                 // half its width, in pixels
  float ink;
  float light, light_x, light_y;  // background = light + light_x * x + light_y * y
};

Pose DrawPose(ImageRandom* dice) {
  Pose pose{};
  pose.height = dice->Between(kMinHeight, kMaxHeight);
  const float width = dice->Between(kMinWidth, kMaxWidth);
  const float turn = dice->Between(-kTurn, kTurn);
  const float slant = dice->Between(-kSlant, kSlant);
  const float cosine = std::cos(turn) / pose.height, sine = std::sin(turn) / pose.height;
  // Rotates back, then removes the slant (x + slant * y), then scales to the glyph's width.
  pose.yx = -sine;
  pose.yy = cosine;
  pose.xx = (cosine + slant * pose.yx) / width;
  pose.xy = (sine + slant * pose.yy) / width;
  pose.centre_x = (kSide - 1) * 0.5f + dice->Between(-kShift, kShift);
  pose.centre_y = (kSide - 1) * 0.5f + dice->Between(-kShift, kShift);
  pose.pen = dice->Between(kMinPen, kMaxPen);
  pose.ink = dice->Between(kMinInk, 1);
  pose.light = dice->Between(0, kDarkness);
  pose.light_x = dice->Between(-kDarkness, kDarkness) / kSide;
  pose.light_y = dice->Between(-kDarkness, kDarkness) / kSide;
  return pose;
}

// Returns the noise of one pixel from 16 random bits: the sum of two uniform bytes, scaled to [-1, 1].
float PixelNoise(uint64_t bits) {
  return (static_cast<float>(bits & 0xff) + static_cast<float>(bits >> 8 & 0xff) - 255.0f) * (1.0f / 255.0f);
}

void DrawImage(const Glyph& glyph, const Pose& pose, ImageRandom* dice, uint8_t* pixels) {
  uint64_t noise = 0;
  for (int row = 0; row < kSide; ++row) {
    for (int column = 0; column < kSide; ++column) {
      const float x = static_cast<float>(column) - pose.centre_x;
      const float y = static_cast<float>(row) - pose.centre_y;
      const float distance =
          pose.height * glyph.DistanceAt(pose.xx * x + pose.xy * y, pose.yx * x + pose.yy * y);
      const float covered = std::clamp(pose.pen - distance + 0.5f, 0.0f, 1.0f);
      const float background = pose.light + pose.light_x * x + pose.light_y * y;
      noise = column % 4 == 0 ? dice->Bits() : noise >> 16;
      const float grey = background + (pose.ink - background) * covered + kNoise * PixelNoise(noise);
      pixels[row * kSide + column] = static_cast<uint8_t>(std::clamp(grey, 0.0f, 1.0f) * 255.0f + 0.5f);
    }
  }
}

// DigitArtist: draws the digits of a part, in any order. Thread: any; immutable.
class DigitArtist {
 public:
  DigitArtist(uint64_t seed, std::string_view part)
      : glyphs_(DrawGlyphs()), random_(CounterRandom(seed).Stream("digits").Stream(part)) {
    for (const Glyph& glyph : glyphs_) ways_[static_cast<size_t>(glyph.digit)].push_back(&glyph);
  }
  DigitArtist(const DigitArtist&) = delete;
  DigitArtist& operator=(const DigitArtist&) = delete;

  // Returns the label of a row. `pixels`: [kDigitInputs], get the image; null: it is not wanted.
  uint8_t Draw(int64_t row, uint8_t* pixels) const {
    ImageRandom dice(random_.Stream(static_cast<uint64_t>(row)));
    const auto label = static_cast<uint8_t>(dice.Below(kDigitClasses));
    if (pixels == nullptr) return label;
    const std::vector<const Glyph*>& choices = ways_[label];
    const Glyph& glyph = *choices[dice.Below(choices.size())];
    const Pose pose = DrawPose(&dice);
    DrawImage(glyph, pose, &dice, pixels);
    return label;
  }

 private:
  const std::vector<Glyph> glyphs_;
  std::array<std::vector<const Glyph*>, kDigitClasses> ways_;  // the glyphs of each digit
  const CounterRandom random_;
};

class DigitFetch : public Fetch {
 public:
  DigitFetch(uint64_t seed, std::string_view part) : artist_(seed, part) {}

  void Read(gpu::Span<const int64_t> rows, const RowsOut& out) const override {
    gpu::Stream stream;
    std::array<uint8_t, kDigitInputs> pixels;
    const gpu::MatrixView<const uint8_t> image(pixels.data(), 1, kDigitInputs);
    const int64_t first = 0;
    for (int64_t i = 0; i < rows.size; ++i) {
      const uint8_t label = artist_.Draw(rows[i], out.inputs != nullptr ? pixels.data() : nullptr);
      if (out.labels != nullptr) out.labels[i] = label;
      if (out.inputs == nullptr) continue;
      gpu::GatherBytes(stream, {image, {&first, 1}}, {out.inputs + i * kDigitInputs, 1, kDigitInputs});
    }
  }

 private:
  const DigitArtist artist_;
};

class LinearFetch : public Fetch {
 public:
  LinearFetch(const CounterRandom& random, int64_t inputs) : random_(random), inputs_(inputs) {}

  void Read(gpu::Span<const int64_t> rows, const RowsOut& out) const override {
    for (int64_t i = 0; i < rows.size; ++i) {
      // A row takes inputs_ + 1 numbers: the inputs, then the noise.
      const uint64_t first = static_cast<uint64_t>(rows[i]) * static_cast<uint64_t>(inputs_ + 1);
      double sum = 0;
      for (int64_t j = 0; j < inputs_; ++j) {
        const float x = static_cast<float>(random_.Normal(first + static_cast<uint64_t>(j)));
        if (out.inputs != nullptr) out.inputs[i * inputs_ + j] = x;
        sum += x;
      }
      const double noise = kLinearNoise * random_.Normal(first + static_cast<uint64_t>(inputs_));
      if (out.targets != nullptr)
        out.targets[i] = static_cast<float>(kLinearWeight * sum + kLinearBias + noise);
    }
  }

 private:
  static constexpr double kLinearWeight = 2, kLinearBias = 10, kLinearNoise = 0.33;

  const CounterRandom random_;
  const int64_t inputs_;
};

}  // namespace

DataSet DrawDigits(uint64_t seed, std::string_view part, int64_t rows) {
  const DigitArtist artist(seed, part);
  LargeVector<uint8_t> pixels(rows * kDigitInputs);
  std::vector<uint8_t> labels(rows);
  for (int64_t row = 0; row < rows; ++row) labels[row] = artist.Draw(row, pixels.data() + row * kDigitInputs);
  return BytesInMemory(std::move(pixels), std::move(labels), kDigitInputs, kDigitClasses);
}

DataSet DigitsAsRead(uint64_t seed, std::string_view part, int64_t rows) {
  return {{kDigitInputs, kDigitClasses, rows}, std::make_shared<DigitFetch>(seed, part)};
}

DataSet LinearRows(uint64_t seed, std::string_view part, int64_t inputs, std::optional<int64_t> rows) {
  const CounterRandom random = CounterRandom(seed).Stream("synthetic linear").Stream(part);
  return {{inputs, std::nullopt, rows}, std::make_shared<LinearFetch>(random, inputs)};
}

}  // namespace dtrain
