// A feature as the model takes it.
#pragma once

#include "trainer/rows/row_reader.h"

namespace dtrain {

constexpr char kPixelRule[] = "must be 0 to 255, as the bytes of images that the model was trained on";
inline bool IsPixel(double value) { return value >= 0 && value <= 255; }

inline float Scaled(const RowSpec& spec, int64_t feature, float value) {
  constexpr float kPixel = 1.0f / 255;
  if (spec.pixels) return value * kPixel;
  const FittedScale& scale = spec.form.scale;
  if (scale.shift.empty()) return value;
  const auto i = static_cast<size_t>(feature);
  return static_cast<float>((value - scale.shift[i]) * scale.factor[i]);
}

}  // namespace dtrain
