#include "trainer/model/finite.h"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

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

}  // namespace
}  // namespace dtrain
