#include "trainer/data/digits.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/random.h"
#include "trainer/data/glyph.h"

namespace dtrain {
namespace {

constexpr int kSide = 28;
// How much the images differ; lengths in pixels, angles in radians, light in 1 = white.
constexpr float kSmallest = 16, kLargest = 20;      // height of a digit
constexpr float kNarrowest = 0.8f, kWidest = 1.2f;  // its width over that of the glyph
constexpr float kTurn = 0.15f;
constexpr float kSlant = 0.2f;
constexpr float kShift = 1.7f;
constexpr float kThinnest = 0.9f, kThickest = 1.8f;  // half of the pen's width
constexpr float kFaintest = 0.5f;                    // of the ink; 1 at most
constexpr float kDarkness = 0.3f;                    // background where the light is strongest
constexpr float kNoise = 0.2f;

// Uniform values of one image, drawn one after the other.
class Dice {
 public:
  explicit Dice(const CounterRandom& random) : random_(random) {}
  float Between(float low, float high) {
    return low + (high - low) * static_cast<float>(random_.Uniform(next_++));
  }
  uint64_t Below(uint64_t bound) { return random_.Below(next_++, bound); }
  uint64_t Bits() { return random_.Bits(next_++); }

 private:
  const CounterRandom random_;
  uint64_t next_ = 0;
};

// How one image is drawn.
struct Pose {
  float xx, xy, yx, yy;      // pixels relative to the centre -> the glyph's units
  float centre_x, centre_y;  // pixels
  float height;              // pixels
  float pen;                 // half its width, in pixels
  float ink;
  float light, light_x, light_y;  // background = light + light_x * x + light_y * y
};

Pose DrawPose(Dice* dice) {
  Pose pose{};
  pose.height = dice->Between(kSmallest, kLargest);
  const float width = dice->Between(kNarrowest, kWidest);
  const float turn = dice->Between(-kTurn, kTurn);
  const float slant = dice->Between(-kSlant, kSlant);
  const float cosine = std::cos(turn) / pose.height, sine = std::sin(turn) / pose.height;
  // Turned back, then upright again (x + slant * y), then to the glyph's width.
  pose.yx = -sine;
  pose.yy = cosine;
  pose.xx = (cosine + slant * pose.yx) / width;
  pose.xy = (sine + slant * pose.yy) / width;
  pose.centre_x = (kSide - 1) * 0.5f + dice->Between(-kShift, kShift);
  pose.centre_y = (kSide - 1) * 0.5f + dice->Between(-kShift, kShift);
  pose.pen = dice->Between(kThinnest, kThickest);
  pose.ink = dice->Between(kFaintest, 1);
  pose.light = dice->Between(0, kDarkness);
  pose.light_x = dice->Between(-kDarkness, kDarkness) / kSide;
  pose.light_y = dice->Between(-kDarkness, kDarkness) / kSide;
  return pose;
}

// Noise of one pixel from 16 random bits: the sum of two uniform bytes, in [-1, 1].
float PixelNoise(uint64_t bits) {
  return (static_cast<float>(bits & 0xff) + static_cast<float>(bits >> 8 & 0xff) - 255.0f) * (1.0f / 255.0f);
}

void DrawImage(const Glyph& glyph, const Pose& pose, Dice* dice, uint8_t* pixels) {
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

}  // namespace

ByteSet DrawDigits(uint64_t seed, std::string_view part, int64_t rows) {
  const std::vector<Glyph> glyphs = DrawGlyphs();
  std::vector<std::vector<const Glyph*>> ways(kDigitClasses);  // of writing each digit
  for (const Glyph& glyph : glyphs) ways[glyph.digit].push_back(&glyph);
  const CounterRandom random = CounterRandom(seed).Stream("digits").Stream(part);

  std::vector<uint8_t> pixels(rows * kDigitInputs);
  std::vector<uint8_t> labels(rows);
  for (int64_t row = 0; row < rows; ++row) {
    Dice dice(random.Stream(static_cast<uint64_t>(row)));
    labels[row] = static_cast<uint8_t>(dice.Below(kDigitClasses));
    const auto& choices = ways[labels[row]];
    const Glyph& glyph = *choices[dice.Below(choices.size())];
    const Pose pose = DrawPose(&dice);
    DrawImage(glyph, pose, &dice, pixels.data() + row * kDigitInputs);
  }
  return ByteSet(std::move(pixels), std::move(labels), kDigitInputs, kDigitClasses);
}

}  // namespace dtrain
