#include <doctest/doctest.h>

#include <functional>

#include "gpu/ops.h"
#include "gpu/ref/ref.h"
#include "gpu/test_util.h"

namespace dtrain::gpu {
namespace {

using namespace test;

TEST_CASE("mean squared error: loss and gradient agree with ref over odd sizes") {
  Stream stream(Backend::kCpu);
  for (const int64_t n : kOddSizes) {
    CAPTURE(n);
    const std::vector<float> y = Normals(n, "y"), t = Normals(n, "t");
    Guarded<float> dy(n);
    std::vector<double> expected(n);
    const float loss = MeanSquaredError(stream, y, t, dy.span());
    // The difference and the scale are rounded once each, and so is their product.
    CHECK(loss == doctest::Approx(ref::MeanSquaredError(Doubles(y), Doubles(t), expected)).epsilon(0x1p-22));
    CHECK(LargestError(dy.span(), expected, 0x1p-24) <= 0x1p-22);
    CHECK(dy.GuardsIntact());
  }
}

TEST_CASE("sigmoid cross-entropy: loss and gradient agree with ref over odd sizes") {
  Stream stream(Backend::kCpu);
  for (const int64_t n : kOddSizes) {
    CAPTURE(n);
    const std::vector<float> z = Normals(n, "z", 4);
    const std::vector<int32_t> labels = Classes(n, 2);
    Guarded<float> dz(n);
    std::vector<double> expected(n);
    const float loss = SigmoidXent(stream, z, labels, dz.span());
    // expf and log1pf are good to an ulp or two, each 6e-8; nothing cancels.
    CHECK(loss == doctest::Approx(ref::SigmoidXent(Doubles(z), labels, expected)).epsilon(2e-6));
    CHECK(LargestError(dz.span(), expected, 1e-12) <= 2e-6);
    CHECK(dz.GuardsIntact());
  }
}

TEST_CASE("sigmoid cross-entropy: logits of any size give finite values") {
  Stream stream(Backend::kCpu);
  const std::vector<float> z = {1000, -1000, 1000, -1000, 0};
  const std::vector<int32_t> labels = {1, 0, 0, 1, 1};
  std::vector<float> dz(5);
  const float loss = SigmoidXent(stream, z, labels, dz);
  CHECK(loss == doctest::Approx((2000 + std::log(2.0)) / 5));
  CHECK(dz[0] == 0);
  CHECK(dz[1] == 0);
  CHECK(dz[2] == doctest::Approx(0.2));
  CHECK(dz[3] == doctest::Approx(-0.2));
  CHECK(dz[4] == doctest::Approx(-0.1));
}

TEST_CASE("softmax cross-entropy: loss and gradient agree with ref over odd shapes") {
  Stream stream(Backend::kCpu);
  for (const int64_t n : kOddSizes) {
    for (const int64_t classes : {1, 2, 10, 31, 33}) {
      CAPTURE(n);
      CAPTURE(classes);
      const std::vector<float> z = Normals(n * classes, "z", 3);
      const std::vector<int32_t> labels = Classes(n, classes);
      Guarded<float> dz(n * classes);
      std::vector<double> expected(n * classes);
      const float loss = SoftmaxXent(stream, {z.data(), n, classes}, labels, dz.matrix(n, classes));
      const std::vector<double> z64 = Doubles(z);
      const double expected_loss =
          ref::SoftmaxXent({z64.data(), n, classes}, labels, {expected.data(), n, classes});
      // expf to an ulp, a sum of up to 33 terms; at the label 1 is subtracted, hence the floor.
      CHECK(loss == doctest::Approx(expected_loss).epsilon(2e-6).scale(0.5));
      CHECK(LargestError(dz.span(), expected, 0.5 / static_cast<double>(n + 1)) <= 2e-6);
      CHECK(dz.GuardsIntact());
    }
  }
}

TEST_CASE("softmax cross-entropy: large logits do not overflow") {
  Stream stream(Backend::kCpu);
  const std::vector<float> z = {1000, 0, -1000, 1000, 0, -1000};
  const std::vector<int32_t> labels = {0, 2};
  std::vector<float> dz(6);
  CHECK(SoftmaxXent(stream, {z.data(), 2, 3}, labels, {dz.data(), 2, 3}) == doctest::Approx(1000));
  CHECK(dz == std::vector<float>{0, 0, 0, 0.5f, 0, -0.5f});
}

TEST_CASE("softmax cross-entropy: a logit that is not a number shows in the loss") {
  Stream stream(Backend::kCpu);
  const std::vector<float> z = {0, std::numeric_limits<float>::quiet_NaN(), 1};
  const std::vector<int32_t> labels = {0};
  std::vector<float> dz(3);
  CHECK(std::isnan(SoftmaxXent(stream, {z.data(), 1, 3}, labels, {dz.data(), 1, 3})));
}

TEST_CASE("losses: the gradient may be written over the logits") {
  Stream stream(Backend::kCpu);
  const std::vector<float> z = Normals(33 * 10, "z");
  const std::vector<int32_t> ten = Classes(33, 10), two = Classes(330, 2);
  std::vector<float> apart(330), over;

  over = z;
  SoftmaxXent(stream, {z.data(), 33, 10}, ten, {apart.data(), 33, 10});
  SoftmaxXent(stream, {over.data(), 33, 10}, ten, {over.data(), 33, 10});
  CHECK(over == apart);

  over = z;
  SigmoidXent(stream, z, two, apart);
  SigmoidXent(stream, over, two, over);
  CHECK(over == apart);

  over = z;
  const std::vector<float> targets = Normals(330, "t");
  MeanSquaredError(stream, z, targets, apart);
  MeanSquaredError(stream, over, targets, over);
  CHECK(over == apart);
}

// Central differences of `loss` at each element of `z` against `gradient`.
template <typename T>
void CheckDifferences(std::vector<T> z, const std::vector<T>& gradient,
                      const std::function<double(const std::vector<T>&)>& loss, T width, double tolerance) {
  for (size_t i = 0; i < z.size(); ++i) {
    const T kept = z[i];
    z[i] = kept + width;
    const double above = loss(z);
    z[i] = kept - width;
    const double below = loss(z);
    z[i] = kept;
    CHECK(std::abs((above - below) / (2.0 * width) - gradient[i]) <= tolerance);
  }
}

TEST_CASE("losses: ref's gradients are those of finite differences") {
  const std::vector<double> z = Doubles(Normals(20, "z")), t = Doubles(Normals(20, "t"));
  const std::vector<int32_t> five = Classes(4, 5), two = Classes(20, 2);
  std::vector<double> dz(20), scratch(20);
  // Width 1e-5: the truncation is about 1e-10, the rounding of the loss 1e-16 / 1e-5.
  ref::MeanSquaredError(z, t, dz);
  CheckDifferences<double>(
      z, dz, [&](auto& v) { return ref::MeanSquaredError(v, t, scratch); }, 1e-5, 1e-9);
  ref::SigmoidXent(z, two, dz);
  CheckDifferences<double>(
      z, dz, [&](auto& v) { return ref::SigmoidXent(v, two, scratch); }, 1e-5, 1e-9);
  ref::SoftmaxXent({z.data(), 4, 5}, five, {dz.data(), 4, 5});
  const auto softmax = [&](const std::vector<double>& v) {
    return ref::SoftmaxXent({v.data(), 4, 5}, five, {scratch.data(), 4, 5});
  };
  CheckDifferences<double>(z, dz, softmax, 1e-5, 1e-9);
}

TEST_CASE("losses: cpu's gradients are those of finite differences") {
  Stream stream(Backend::kCpu);
  const std::vector<float> z = Normals(20, "z"), t = Normals(20, "t");
  const std::vector<int32_t> five = Classes(4, 5), two = Classes(20, 2);
  std::vector<float> dz(20), scratch(20);
  // Width 0.02: the truncation is below width^2 / 6 = 7e-5, the rounding of the loss 1e-7 / 0.02 = 5e-6.
  MeanSquaredError(stream, z, t, dz);
  const auto squared = [&](auto& v) { return MeanSquaredError(stream, v, t, scratch); };
  CheckDifferences<float>(z, dz, squared, 0.02f, 1e-4);
  SigmoidXent(stream, z, two, dz);
  const auto sigmoid = [&](auto& v) { return SigmoidXent(stream, v, two, scratch); };
  CheckDifferences<float>(z, dz, sigmoid, 0.02f, 1e-4);
  SoftmaxXent(stream, {z.data(), 4, 5}, five, {dz.data(), 4, 5});
  const auto softmax = [&](const std::vector<float>& v) {
    return SoftmaxXent(stream, {v.data(), 4, 5}, five, {scratch.data(), 4, 5});
  };
  CheckDifferences<float>(z, dz, softmax, 0.02f, 1e-4);
}

TEST_CASE("correct rows: counts agree with ref over odd shapes") {
  Stream stream(Backend::kCpu);
  for (const int64_t n : kOddSizes) {
    const std::vector<float> scores = Normals(n * 10, "scores");
    const std::vector<double> scores64 = Doubles(scores);
    const std::vector<int32_t> ten = Classes(n, 10), two = Classes(n, 2);
    CHECK(CountArgmaxCorrect(stream, {scores.data(), n, 10}, ten) ==
          ref::CountArgmaxCorrect({scores64.data(), n, 10}, ten));
    CHECK(CountSignCorrect(stream, {scores.data(), n}, two) ==
          ref::CountSignCorrect({scores64.data(), n}, two));
  }
}

TEST_CASE("correct rows: of equal scores the lowest class counts") {
  Stream stream(Backend::kCpu);
  const std::vector<float> scores = {1, 1, 0, 0, 2, 2};
  CHECK(CountArgmaxCorrect(stream, {scores.data(), 2, 3}, std::vector<int32_t>{0, 1}) == 2);
  CHECK(CountArgmaxCorrect(stream, {scores.data(), 2, 3}, std::vector<int32_t>{1, 2}) == 0);
  const std::vector<float> zero = {0};
  CHECK(CountSignCorrect(stream, zero, std::vector<int32_t>{0}) == 1);
  CHECK(CountSignCorrect(stream, zero, std::vector<int32_t>{1}) == 0);
}

}  // namespace
}  // namespace dtrain::gpu
