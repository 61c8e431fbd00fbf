#include "trainer/model/finite.h"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <vector>

#include "trainer/config/model_config.h"

namespace dtrain {
namespace {

Layout MatrixAndBias() {
  Variable matrix;
  matrix.name = "weights/W";
  matrix.rows = 3;
  matrix.cols = 4;
  Variable bias;
  bias.name = "biases/b";
  bias.rows = 4;
  return PlaceVariables({matrix, bias}, 1, PlacementConfig());
}

TEST_CASE("finite: the first value that is not finite is named with its place") {
  const Layout layout = MatrixAndBias();
  std::vector<float> values(16, std::numeric_limits<float>::max());
  values[1] = std::numeric_limits<float>::denorm_min();
  CHECK(!FirstNonFinite(layout, values.data()));
  values[15] = -std::numeric_limits<float>::infinity();
  CHECK(FirstNonFinite(layout, values.data()) == "biases/b[3] is -inf");
  values[7] = std::numeric_limits<float>::quiet_NaN();
  CHECK(FirstNonFinite(layout, values.data()) == "weights/W[1, 3] is nan");
}

TEST_CASE("finite: a part of the vector is named by its place in the model, at any address") {
  const Layout layout = MatrixAndBias();
  std::vector<std::byte> frame(1 + 8 * sizeof(float));
  const auto set = [&frame](size_t i, float value) {
    std::memcpy(frame.data() + 1 + i * sizeof value, &value, sizeof value);
  };
  const Range range = {6, 14};
  CHECK(!FirstNonFinite(layout, range, frame.data() + 1));
  set(7, -std::numeric_limits<float>::quiet_NaN());
  CHECK(FirstNonFinite(layout, range, frame.data() + 1) == "biases/b[1] is nan");
  set(5, std::numeric_limits<float>::infinity());
  CHECK(FirstNonFinite(layout, range, frame.data() + 1) == "weights/W[2, 3] is inf");
}

TEST_CASE("finite: the value of the largest magnitude is named with its place") {
  const Layout layout = MatrixAndBias();
  std::vector<float> values(16, 1.0f);
  values[6] = -2e30f;
  CHECK(LargestValue(layout, values.data()).text == "weights/W[1, 2] is -2e+30");
}

}  // namespace
}  // namespace dtrain
