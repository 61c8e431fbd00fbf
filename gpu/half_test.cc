#include <doctest/doctest.h>

#include <cmath>

#include "gpu/number.h"
#include "gpu/ops.h"
#include "gpu/ref/ref.h"
#include "gpu/testing/test_util.h"

namespace dtrain::gpu {
namespace {

using namespace test;

constexpr Half kFormats[] = {Half::kFloat16, Half::kBfloat16};

TEST_CASE("half: every one of 65536 numbers is exact as a float, and itself again on the way back") {
  std::vector<uint16_t> all(65536);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  for (Place* place : Places()) {
    for (const Half format : kFormats) {
      Array<uint16_t> halves(*place, all), back(*place, 65536);
      Array<float> floats(*place, 65536);
      FromHalf(place->stream(), format, halves.span(), floats.span());
      ToHalf(place->stream(), format, floats.span(), back.span());
      const std::vector<float> values = floats.Read();
      const std::vector<uint16_t> again = back.Read();
      int64_t wrong = 0;
      for (size_t i = 0; i < all.size(); ++i) {
        const double expected = ref::FromHalf(format, all[i]);
        const bool same = std::isnan(expected)
                              ? std::isnan(values[i]) && std::isnan(ref::FromHalf(format, again[i]))
                              : values[i] == expected && again[i] == all[i];
        wrong += !same;
      }
      CHECK(wrong == 0);
      CHECK(floats.GuardsIntact());
      CHECK(back.GuardsIntact());
    }
  }
}

// All neighbours in the middle between two halves, and those of the limits.
std::vector<float> HardFloats(Half format) {
  std::vector<float> floats = {0.0f, -0.0f, 1e-45f, -1e-45f, 3.4e38f, -3.4e38f, HUGE_VALF, -HUGE_VALF};
  for (uint16_t half = 0; half < 0x7fff; ++half) {
    const double middle = (ref::FromHalf(format, half) + ref::FromHalf(format, half + 1)) / 2;
    if (!std::isfinite(middle) || std::abs(middle) > 3e38) continue;
    const auto value = static_cast<float>(middle);
    for (const float near : {value, std::nextafterf(value, 0), std::nextafterf(value, HUGE_VALF)}) {
      floats.push_back(near);
      floats.push_back(-near);
    }
  }
  for (const float limit : {65503.0f, 65504.0f, 65519.996f, 65520.0f, 65536.0f}) floats.push_back(limit);
  return floats;
}

TEST_CASE("half: floats are rounded to the nearest, ties to even, over odd sizes and addresses") {
  for (const Half format : kFormats) {
    const std::vector<float> hard = HardFloats(format);
    std::vector<uint16_t> expected;
    for (const float value : hard) expected.push_back(ref::ToHalf(format, static_cast<double>(value)));
    for (Place* place : Places()) {
      for (const auto n : {size_t{0}, size_t{1}, size_t{31}, size_t{33}, hard.size()}) {
        for (const int64_t shift : {0, 3}) {
          Array<float> floats(*place, std::vector<float>(hard.begin(), hard.begin() + n), 2 * shift);
          Array<uint16_t> halves(*place, static_cast<int64_t>(n), shift);
          ToHalf(place->stream(), format, floats.span(), halves.span());
          CHECK(halves.Read() == std::vector<uint16_t>(expected.begin(), expected.begin() + n));
          CHECK(halves.GuardsIntact());
        }
      }
    }
  }
}

TEST_CASE("half: what is not a number stays none") {
  for (Place* place : Places()) {
    for (const Half format : kFormats) {
      // Quiet, and signalling with its one bit at the lower end.
      Array<float> floats(*place, {std::nanf(""), FloatOf(0x7f800001), FloatOf(0xff800001)});
      Array<uint16_t> halves(*place, 3);
      ToHalf(place->stream(), format, floats.span(), halves.span());
      for (const uint16_t half : halves.Read()) CHECK(std::isnan(ref::FromHalf(format, half)));
    }
  }
}

}  // namespace
}  // namespace dtrain::gpu
