#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "gpu/ops.h"
#include "gpu/ref/ref.h"
#include "gpu/test_util.h"

namespace dtrain::gpu {
namespace {

using namespace test;

constexpr Activation kKinds[] = {Activation::kSigmoid, Activation::kTanh, Activation::kRelu};

TEST_CASE("activation: agrees with ref over odd sizes and leaves the neighbours alone") {
  Stream stream(Backend::kCpu);
  for (const Activation kind : kKinds) {
    for (const int64_t n : kOddSizes) {
      CAPTURE(n);
      const std::vector<float> inputs = Normals(n, "x", 4), slopes = Normals(n, "g");
      Guarded<float> outputs(n), gradient(n);
      std::copy(inputs.begin(), inputs.end(), outputs.span().begin());
      std::copy(slopes.begin(), slopes.end(), gradient.span().begin());
      Activate(stream, kind, outputs.span());
      std::vector<double> expected = Doubles(inputs);
      ref::Activate(kind, expected);
      CHECK(LargestError(outputs.span(), expected, 1e-20) <= 0x1p-21);
      ActivationGradient(stream, kind, outputs.span(), gradient.span());
      std::vector<double> made(outputs.span().begin(), outputs.span().end());
      std::vector<double> expected_gradient = Doubles(slopes);
      ref::ActivationGradient(kind, made, expected_gradient);
      // 1 - y of a y near 1 keeps the digits that y has; two more roundings.
      CHECK(LargestError(gradient.span(), expected_gradient, 1e-20) <= 0x1p-22);
      CHECK(outputs.GuardsIntact());
      CHECK(gradient.GuardsIntact());
    }
  }
}

TEST_CASE("activation: a value does not depend on where its range starts") {
  Stream stream(Backend::kCpu);
  for (const Activation kind : kKinds) {
    const std::vector<float> inputs = Normals(71, "x", 4);
    std::vector<float> whole = inputs;
    Activate(stream, kind, whole);
    for (int64_t cut = 0; cut <= 71; ++cut) {
      std::vector<float> parts = inputs;
      Activate(stream, kind, {parts.data(), cut});
      Activate(stream, kind, {parts.data() + cut, 71 - cut});
      CHECK(parts == whole);
    }
  }
}

TEST_CASE("activation: huge values end at the limits, and what is not a number stays so") {
  Stream stream(Backend::kCpu);
  const float huge = std::numeric_limits<float>::max();
  for (const Activation kind : kKinds) {
    std::vector<float> values = {huge, -huge, 200, -200, std::nanf("")};
    Activate(stream, kind, values);
    const bool relu = kind == Activation::kRelu;
    CHECK(values[0] == (relu ? huge : 1.0f));
    CHECK(values[1] == (kind == Activation::kTanh ? -1.0f : 0.0f));
    CHECK(values[2] == (relu ? 200.0f : 1.0f));
    CHECK(std::abs(values[3] - (kind == Activation::kTanh ? -1.0f : 0.0f)) <= 1e-30f);
    CHECK(std::isnan(values[4]));
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
