#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "gpu/ops.h"
#include "gpu/ref/ref.h"
#include "gpu/testing/test_util.h"

namespace dtrain::gpu {
namespace {

using namespace test;

constexpr Activation kKinds[] = {Activation::kSigmoid, Activation::kTanh, Activation::kRelu};

void CheckWithRef(Place& place, Activation kind, int64_t n, int64_t shift) {
  CAPTURE(place.name());
  CAPTURE(n);
  const std::vector<float> inputs = Normals(n, "x", 4), slopes = Normals(n, "g");
  Array<float> outputs(place, inputs, shift), gradient(place, slopes, shift);
  Activate(place.stream(), kind, outputs.span());
  ActivationGradient(place.stream(), kind, outputs.span(), gradient.span());
  std::vector<double> expected = Doubles(inputs), expected_gradient = Doubles(slopes);
  ref::Activate(kind, expected);
  CHECK(LargestError(outputs.Read(), expected, 1e-20) <= 0x1p-21);
  ref::ActivationGradient(kind, Doubles(outputs.Read()), expected_gradient);
  // 1 - y of a y near 1 keeps the digits that y has; two more roundings.
  CHECK(LargestError(gradient.Read(), expected_gradient, 1e-20) <= 0x1p-22);
  CHECK(outputs.GuardsIntact());
  CHECK(gradient.GuardsIntact());
}

TEST_CASE("activation: agrees with ref over odd sizes and leaves the neighbours alone") {
  for (Place* place : Places()) {
    for (const Activation kind : kKinds) {
      for (const int64_t n : kOddSizes) CheckWithRef(*place, kind, n, n % 4);
      CheckWithRef(*place, kind, kManyBlocks, 3);
    }
  }
}

TEST_CASE("activation: a value does not depend on where its range starts") {
  for (Place* place : Places()) {
    for (const Activation kind : kKinds) {
      const std::vector<float> inputs = Normals(71, "x", 4);
      Array<float> whole(*place, inputs);
      Activate(place->stream(), kind, whole.span());
      for (int64_t cut = 0; cut <= 71; ++cut) {
        Array<float> parts(*place, inputs);
        Activate(place->stream(), kind, {parts.data(), cut});
        Activate(place->stream(), kind, {parts.data() + cut, 71 - cut});
        CHECK(parts.Read() == whole.Read());
      }
    }
  }
}

TEST_CASE("activation: huge values end at the limits, and what is not a number stays so") {
  const float huge = std::numeric_limits<float>::max();
  for (Place* place : Places()) {
    for (const Activation kind : kKinds) {
      CAPTURE(place->name());
      Array<float> array(*place, {huge, -huge, 200, -200, std::nanf("")});
      Activate(place->stream(), kind, array.span());
      const std::vector<float> values = array.Read();
      const bool relu = kind == Activation::kRelu;
      CHECK(values[0] == (relu ? huge : 1.0f));
      CHECK(values[1] == (kind == Activation::kTanh ? -1.0f : 0.0f));
      CHECK(values[2] == (relu ? 200.0f : 1.0f));
      CHECK(std::abs(values[3] - (kind == Activation::kTanh ? -1.0f : 0.0f)) <= 1e-30f);
      CHECK(std::isnan(values[4]));
    }
  }
}

TEST_CASE("activation: the slope is that of finite differences") {
  for (const Activation kind : kKinds) {
    for (const double x : {-2.0, -0.5, 0.25, 3.0}) {
      std::vector<double> around = {x - 1e-5, x, x + 1e-5}, gradient = {1, 1, 1};
      ref::Activate(kind, around);
      ref::ActivationGradient(kind, around, gradient);
      CHECK((around[2] - around[0]) / 2e-5 == doctest::Approx(gradient[1]).epsilon(1e-6));
    }
  }
}

}  // namespace
}  // namespace dtrain::gpu
