#include <doctest/doctest.h>

#include <functional>

#include "gpu/ops.h"
#include "gpu/ref/ref.h"
#include "gpu/testing/test_util.h"

namespace dtrain::gpu {
namespace {

using namespace test;

// A loss and its gradient by a place's operations.
struct Result {
  float loss;
  std::vector<float> gradient;
};

enum class Where { kApart, kOverLogits };

// loss(stream, logits, targets, gradient, result), for rows of `cols`.
template <typename Target, typename Loss>
Result ResultOf(Place& place, const std::vector<float>& logits, const std::vector<Target>& targets,
                Where where, const Loss& loss) {
  Array<float> z(place, logits), dz(place, static_cast<int64_t>(logits.size())), result(place, 1);
  Array<Target> t(place, targets);
  Array<float>& to = where == Where::kApart ? dz : z;
  loss(place.stream(), z, t, to, result.data());
  CHECK(to.GuardsIntact());
  CHECK(result.GuardsIntact());
  return {result.Only(), to.Read()};
}

Result Squared(Place& place, const std::vector<float>& y, const std::vector<float>& t,
               Where where = Where::kApart) {
  return ResultOf(place, y, t, where, [](Stream& stream, auto& z, auto& targets, auto& dz, float* loss) {
    MeanSquaredError(stream, z.span(), targets.span(), dz.span(), loss);
  });
}

Result Logistic(Place& place, const std::vector<float>& z, const std::vector<int32_t>& labels,
                Where where = Where::kApart) {
  return ResultOf(place, z, labels, where, [](Stream& stream, auto& logits, auto& t, auto& dz, float* loss) {
    SigmoidXent(stream, logits.span(), t.span(), dz.span(), loss);
  });
}

Result Softmax(Place& place, const std::vector<float>& z, const std::vector<int32_t>& labels, int64_t classes,
               Where where = Where::kApart) {
  const auto n = static_cast<int64_t>(labels.size());
  return ResultOf(place, z, labels, where, [=](Stream& stream, auto& logits, auto& t, auto& dz, float* loss) {
    SoftmaxXent(stream, logits.matrix(n, classes), t.span(), dz.matrix(n, classes), loss);
  });
}

std::vector<int64_t> Rows() {
  std::vector<int64_t> rows(std::begin(kOddSizes), std::end(kOddSizes));
  rows.insert(rows.end(), {5000, kManyBlocks / 3});
  return rows;
}

TEST_CASE("mean squared error: loss and gradient agree with ref over odd sizes") {
  for (const int64_t n : Rows()) {
    const std::vector<float> y = Normals(n, "y"), t = Normals(n, "t");
    std::vector<double> gradient(n);
    const double loss = ref::MeanSquaredError(Doubles(y), Doubles(t), gradient);
    for (Place* place : Places()) {
      CAPTURE(place->name());
      CAPTURE(n);
      const Result result = Squared(*place, y, t);
      // The difference and the scale are rounded once each, and so is their product.
      CHECK(result.loss == doctest::Approx(loss).epsilon(0x1p-22));
      CHECK(LargestError(result.gradient, gradient, 0x1p-24 / static_cast<double>(n + 1)) <= 0x1p-22);
    }
  }
}

TEST_CASE("sigmoid cross-entropy: loss and gradient agree with ref over odd sizes") {
  for (const int64_t n : Rows()) {
    const std::vector<float> z = Normals(n, "z", 4);
    const std::vector<int32_t> labels = Classes(n, 2);
    std::vector<double> gradient(n);
    const double loss = ref::SigmoidXent(Doubles(z), labels, gradient);
    for (Place* place : Places()) {
      CAPTURE(place->name());
      CAPTURE(n);
      const Result result = Logistic(*place, z, labels);
      // expf and log1pf are good to an ulp or two, each 6e-8; nothing cancels.
      CHECK(result.loss == doctest::Approx(loss).epsilon(2e-6));
      CHECK(LargestError(result.gradient, gradient, 1e-12) <= 2e-6);
    }
  }
}

TEST_CASE("sigmoid cross-entropy: logits of any size give finite values") {
  for (Place* place : Places()) {
    const Result result = Logistic(*place, {1000, -1000, 1000, -1000, 0}, {1, 0, 0, 1, 1});
    CHECK(result.loss == doctest::Approx((2000 + std::log(2.0)) / 5));
    CHECK(result.gradient[0] == 0);
    CHECK(result.gradient[1] == 0);
    CHECK(result.gradient[2] == doctest::Approx(0.2));
    CHECK(result.gradient[3] == doctest::Approx(-0.2));
    CHECK(result.gradient[4] == doctest::Approx(-0.1));
  }
}

void CheckSoftmax(int64_t n, int64_t classes) {
  const std::vector<float> z = Normals(n * classes, "z", 3);
  const std::vector<double> z64 = Doubles(z);
  const std::vector<int32_t> labels = Classes(n, classes);
  std::vector<double> gradient(n * classes);
  const double loss = ref::SoftmaxXent({z64.data(), n, classes}, labels, {gradient.data(), n, classes});
  for (Place* place : Places()) {
    CAPTURE(place->name());
    CAPTURE(n);
    CAPTURE(classes);
    const Result result = Softmax(*place, z, labels, classes);
    // expf to an ulp; at the label 1 is subtracted, hence the floor.
    CHECK(result.loss == doctest::Approx(loss).epsilon(2e-6).scale(0.5));
    CHECK(LargestError(result.gradient, gradient, 0.5 / static_cast<double>(n + 1)) <= 2e-6);
  }
}

TEST_CASE("softmax cross-entropy: loss and gradient agree with ref over odd shapes") {
  for (const int64_t n : kOddSizes) {
    for (const int64_t classes : {1, 2, 8, 9, 10, 16, 31, 33, 100, 200, 1000}) CheckSoftmax(n, classes);
  }
  for (const int64_t classes : {3, 4, 6, 12, 20, 32, 40, 64, 65, 256, 300, 512, 516})
    CheckSoftmax(33, classes);
  // More than all blocks of a played device do in one turn.
  for (const int64_t classes : {2, 10, 40}) CheckSoftmax(6007, classes);
}

TEST_CASE("softmax cross-entropy: rows of thousands of classes agree with ref") {
  for (const int64_t n : {0, 1, 3}) {
    for (const int64_t classes : {1024, 1025, 4096, 4097, 16384, 16385, 40001}) CheckSoftmax(n, classes);
  }
  for (const int64_t classes : {1028, 8192, 8193, 16388}) CheckSoftmax(9, classes);
}

TEST_CASE("softmax cross-entropy: on this processor many classes are as exact as few") {
  Place cpu;
  const int64_t n = 4;
  for (const int64_t classes : {10, 100, 1000, 30000}) {
    for (const double spread : {0.01, 1.0, 3.0}) {
      CAPTURE(classes);
      CAPTURE(spread);
      const std::vector<float> z = Normals(n * classes, "z", spread);
      const std::vector<double> z64 = Doubles(z);
      const std::vector<int32_t> labels = Classes(n, classes);
      std::vector<double> gradient(n * classes);
      const double loss = ref::SoftmaxXent({z64.data(), n, classes}, labels, {gradient.data(), n, classes});
      const Result result = Softmax(cpu, z, labels, classes);
      double largest = 0, error = 0;
      for (size_t i = 0; i < gradient.size(); ++i) {
        largest = std::max(largest, std::abs(gradient[i]));
        error = std::max(error, std::abs(static_cast<double>(result.gradient[i]) - gradient[i]));
      }
      CHECK(error <= 2e-7 * largest);  // four roundings to 2^-25 or 2^-24
      CHECK(result.loss == doctest::Approx(loss).epsilon(2e-7));
    }
  }
}

TEST_CASE("softmax cross-entropy: the same gradient at addresses that are not those of packs") {
  for (const int64_t classes : {2, 10, 16, 24, 32, 100, 1000, 5000, 20000}) {
    const std::vector<float> z = Normals(3 * classes, "z");
    const std::vector<int32_t> labels = Classes(3, classes);
    for (Place* place : Places()) {
      CAPTURE(place->name());
      CAPTURE(classes);
      const Result apart = Softmax(*place, z, labels, classes);
      Array<float> logits(*place, z, 1), result(*place, 1);
      Array<int32_t> l(*place, labels);
      SoftmaxXent(place->stream(), logits.matrix(3, classes), l.span(), logits.matrix(3, classes),
                  result.data());
      CHECK(logits.GuardsIntact());
      CHECK(result.Only() == doctest::Approx(apart.loss).epsilon(2e-6));
      // Summed in another order.
      CHECK(LargestError(logits.Read(), apart.gradient, 0.1) <= 2e-6);
    }
  }
}

// One row for each kernel, with all logits but two at `rest`.
std::vector<float> RowOf(int64_t classes, float rest, float first, float last) {
  std::vector<float> row(static_cast<size_t>(classes), rest);
  row.front() = first;
  row.back() = last;
  return row;
}
constexpr int64_t kClasses[] = {3, 10, 30, 100, 200, 1000, 3000, 10000, 20000};

TEST_CASE("softmax cross-entropy: large logits do not overflow, and infinitely small ones count nothing") {
  for (Place* place : Places()) {
    for (const int64_t classes : kClasses) {
      CAPTURE(place->name());
      CAPTURE(classes);
      for (const float rest : {-1000.0f, -HUGE_VALF}) {
        const std::vector<float> z = RowOf(classes, rest, 1000, 0);
        const Result right = Softmax(*place, z, {0}, classes);
        CHECK(right.loss == 0);
        CHECK(right.gradient == std::vector<float>(z.size()));
        const Result wrong = Softmax(*place, z, {static_cast<int32_t>(classes - 1)}, classes);
        CHECK(wrong.loss == doctest::Approx(1000));
        CHECK(wrong.gradient == RowOf(classes, 0, 1, -1));
      }
    }
  }
}

TEST_CASE("softmax cross-entropy: a logit that is not a number shows in the loss") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (Place* place : Places()) {
    for (const int64_t classes : kClasses) {
      CAPTURE(place->name());
      CAPTURE(classes);
      CHECK(std::isnan(Softmax(*place, RowOf(classes, 0, 1, nan), {0}, classes).loss));
      CHECK(std::isnan(Softmax(*place, RowOf(classes, 0, nan, 1), {1}, classes).loss));
      CHECK(std::isnan(Softmax(*place, RowOf(classes, 0, HUGE_VALF, 1), {1}, classes).loss));
    }
  }
}

// Losses of one output with a parameter where they have one, and targets in their range.
struct PointCase {
  PointLoss loss;
  std::vector<float> outputs, targets;
  std::vector<int32_t> labels;  // of classes
  bool of_classes() const { return LossRowOf(loss.kind).of_classes; }
};

std::vector<PointCase> PointCases(int64_t n) {
  std::vector<PointCase> cases;
  for (const LossRow& row : LossTable()) {
    const double parameter = row.kind == LossKind::kQuantile  ? 0.9
                             : row.kind == LossKind::kTweedie ? 1.3
                                                              : 0.5;
    PointCase one{{row.kind, parameter}, Normals(n, "z"), Normals(n, "t", 2), Classes(n, 2)};
    for (float& target : one.targets) {
      if (row.range == TargetRange::kAny) continue;
      target = std::abs(target);
      if (row.range == TargetRange::kFromZero && target < 1) target = 0;
    }
    if (row.of_classes) {
      for (size_t i = 0; i < one.targets.size(); ++i) one.targets[i] = one.labels[i] == 1 ? 1.0f : -1.0f;
    }
    cases.push_back(std::move(one));
  }
  return cases;
}

Result Point(Place& place, const PointCase& of, Where where = Where::kApart) {
  const auto loss = [&](Stream& stream, auto& z, auto& targets, auto& dz, float* result) {
    MeanPointLoss(stream, of.loss, z.span(), targets.span(), dz.span(), result);
  };
  return of.of_classes() ? ResultOf(place, of.outputs, of.labels, where, loss)
                         : ResultOf(place, of.outputs, of.targets, where, loss);
}

TEST_CASE("point losses: loss and gradient agree with ref over odd sizes, also written over the outputs") {
  for (const int64_t n : Rows()) {
    for (const PointCase& of : PointCases(n)) {
      std::vector<double> gradient(n);
      const double loss = ref::MeanPointLoss(of.loss, Doubles(of.outputs), Doubles(of.targets), gradient);
      for (Place* place : Places()) {
        CAPTURE(place->name());
        CAPTURE(n);
        CAPTURE(std::string(LossRowOf(of.loss.kind).name));
        const Result result = Point(*place, of);
        CHECK(result.loss == doctest::Approx(loss).epsilon(2e-6));
        // Where prediction and target nearly meet, the rounding of both stays.
        CHECK(LargestError(result.gradient, gradient, 0.5 / static_cast<double>(n + 1)) <= 2e-6);
        if (n <= 1000) CHECK(Point(*place, of, Where::kOverLogits).gradient == result.gradient);
      }
    }
  }
}

TEST_CASE("point losses: squared is the mean squared error, to the bit") {
  const PointCase squared = PointCases(330)[0];
  for (Place* place : Places()) {
    const Result plain = Squared(*place, squared.outputs, squared.targets);
    CHECK(Point(*place, squared).loss == plain.loss);
    CHECK(Point(*place, squared).gradient == plain.gradient);
  }
}

TEST_CASE("point losses: values worked out by hand") {
  const auto value = [](LossKind kind, double output, double target, double parameter = 0) {
    return LossRowOf(kind).value(output, target, parameter);
  };
  CHECK(value(LossKind::kAbsolute, 1, 3) == 2);
  CHECK(value(LossKind::kHuber, 1, 1.5, 1) == 0.125);
  CHECK(value(LossKind::kHuber, 4, 1, 1) == 2.5);
  CHECK(value(LossKind::kQuantile, 1, 3, 0.75) == 1.5);
  CHECK(value(LossKind::kQuantile, 3, 1, 0.75) == 0.5);
  CHECK(value(LossKind::kHinge, 0.25, 1) == 0.75);
  CHECK(value(LossKind::kHinge, 0.25, -1) == 1.25);
  CHECK(value(LossKind::kSquaredHinge, 0.5, -1) == 2.25);
  // Half deviances: of a mean of 2 and a target of 1, and 0 where both agree.
  const double z = std::log(2.0);
  CHECK(value(LossKind::kPoisson, z, 1) == doctest::Approx(1 - z));
  CHECK(value(LossKind::kGamma, z, 1) == doctest::Approx(z - 0.5));
  CHECK(value(LossKind::kTweedie, z, 1, 1.5) == doctest::Approx(2 * std::sqrt(2.0) + std::sqrt(2.0) - 4));
  for (const LossKind kind : {LossKind::kPoisson, LossKind::kGamma, LossKind::kTweedie}) {
    CHECK(value(kind, z, 2, 1.5) == doctest::Approx(0).scale(1));
  }
  CHECK(value(LossKind::kPoisson, z, 0) == doctest::Approx(2));
  CHECK(value(LossKind::kTweedie, z, 0, 1.5) == doctest::Approx(2 * std::sqrt(2.0)));
}

TEST_CASE("point losses: at a kink the slope is 0, and hinge has none from its margin on") {
  for (Place* place : Places()) {
    for (const LossKind kind : {LossKind::kAbsolute, LossKind::kQuantile}) {
      CHECK(Point(*place, {{kind, 0.9}, {2}, {2}, {}}).gradient[0] == 0);
    }
    CHECK(Point(*place, {{LossKind::kHinge}, {1, 1, 0}, {}, {1, 0, 0}}).gradient ==
          std::vector<float>{0, 1 / 3.0f, 1 / 3.0f});
  }
}

TEST_CASE("point losses: outputs of any size give finite values, and no number shows in the loss") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (Place* place : Places()) {
    for (PointCase of : PointCases(4)) {
      CAPTURE(std::string(LossRowOf(of.loss.kind).name));
      of.outputs = {1000, -1000, 41, -41};
      const Result result = Point(*place, of);
      CHECK(std::isfinite(result.loss));
      for (const float slope : result.gradient) CHECK(std::isfinite(slope * slope));
      of.outputs[1] = nan;
      CHECK(std::isnan(Point(*place, of).loss));
    }
  }
}

TEST_CASE("losses: the gradient may be written over the logits") {
  const std::vector<float> z = Normals(33 * 330, "z"), targets = Normals(33 * 330, "t");
  const std::vector<int32_t> ten = Classes(33 * 33, 10), two = Classes(33 * 330, 2);
  for (Place* place : Places()) {
    CHECK(Softmax(*place, z, ten, 10, Where::kOverLogits).gradient == Softmax(*place, z, ten, 10).gradient);
    CHECK(Logistic(*place, z, two, Where::kOverLogits).gradient == Logistic(*place, z, two).gradient);
    CHECK(Squared(*place, z, targets, Where::kOverLogits).gradient == Squared(*place, z, targets).gradient);
    for (const int64_t classes : kClasses) {
      const std::vector<float> row = Normals(2 * classes, "row");
      const std::vector<int32_t> labels = {static_cast<int32_t>(classes - 1), 0};
      const Result over = Softmax(*place, row, labels, classes, Where::kOverLogits);
      const Result apart = Softmax(*place, row, labels, classes);
      CHECK(over.gradient == apart.gradient);
      CHECK(over.loss == apart.loss);
    }
  }
}

TEST_CASE("losses: the same bits every time, whichever block comes last") {
  const std::vector<float> z = Normals(20000, "z"), targets = Normals(20000, "t");
  const std::vector<int32_t> two = Classes(20000, 2), ten = Classes(2000, 10);
  for (Place* place : Places()) {
    const float squared = Squared(*place, z, targets).loss, logistic = Logistic(*place, z, two).loss,
                softmax = Softmax(*place, z, ten, 10).loss;
    for (int time = 0; time < 3; ++time) {
      CHECK(Squared(*place, z, targets).loss == squared);
      CHECK(Logistic(*place, z, two).loss == logistic);
      CHECK(Softmax(*place, z, ten, 10).loss == softmax);
    }
  }
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
  for (const PointCase& of : PointCases(20)) {
    const std::vector<double> targets = Doubles(of.targets);
    const auto loss = [&](auto& v) { return ref::MeanPointLoss(of.loss, v, targets, scratch); };
    CAPTURE(std::string(LossRowOf(of.loss.kind).name));
    ref::MeanPointLoss(of.loss, z, targets, dz);
    CheckDifferences<double>(z, dz, loss, 1e-5, 1e-9);
  }
  ref::SigmoidXent(z, two, dz);
  CheckDifferences<double>(
      z, dz, [&](auto& v) { return ref::SigmoidXent(v, two, scratch); }, 1e-5, 1e-9);
  ref::SoftmaxXent({z.data(), 4, 5}, five, {dz.data(), 4, 5});
  const auto softmax = [&](const std::vector<double>& v) {
    return ref::SoftmaxXent({v.data(), 4, 5}, five, {scratch.data(), 4, 5});
  };
  CheckDifferences<double>(z, dz, softmax, 1e-5, 1e-9);
}

TEST_CASE("point losses: beyond the largest exponent they go on as a straight line") {
  for (const LossRow& row : LossTable()) {
    if (!row.log_link) continue;
    CAPTURE(row.name);
    const double power = 1.25;  // of tweedie: one exponent is 3/4 of the output, the other -1/4
    for (const double z : {60.0, -200.0}) {
      const double here = row.slope(z, 2, power), width = 0.5;
      CHECK((row.value(z + width, 2, power) - row.value(z - width, 2, power)) / (2 * width) ==
            doctest::Approx(here).epsilon(1e-9));
      CHECK(row.slope(z + width, 2, power) == doctest::Approx(here).epsilon(1e-9));
    }
  }
}

TEST_CASE("losses: the gradients are those of finite differences") {
  const std::vector<float> z = Normals(20, "z"), t = Normals(20, "t");
  const std::vector<int32_t> five = Classes(4, 5), two = Classes(20, 2);
  for (Place* place : Places()) {
    // Width 0.02: the truncation is below width^2 / 6 = 7e-5, the rounding of the loss 1e-7 / 0.02 = 5e-6.
    const auto squared = [&](auto& v) { return Squared(*place, v, t).loss; };
    CheckDifferences<float>(z, Squared(*place, z, t).gradient, squared, 0.02f, 1e-4);
    const auto sigmoid = [&](auto& v) { return Logistic(*place, v, two).loss; };
    CheckDifferences<float>(z, Logistic(*place, z, two).gradient, sigmoid, 0.02f, 1e-4);
    const auto softmax = [&](auto& v) { return Softmax(*place, v, five, 5).loss; };
    CheckDifferences<float>(z, Softmax(*place, z, five, 5).gradient, softmax, 0.02f, 1e-4);
  }
}

int64_t ArgmaxCorrect(Place& place, const std::vector<float>& scores, const std::vector<int32_t>& labels) {
  const auto n = static_cast<int64_t>(labels.size());
  Array<float> s(place, scores);
  Array<int32_t> l(place, labels);
  Array<int64_t> correct(place, 1);
  const int64_t classes = n == 0 ? 10 : static_cast<int64_t>(scores.size()) / n;
  CountArgmaxCorrect(place.stream(), s.matrix(n, classes), l.span(), correct.data());
  CHECK(correct.GuardsIntact());
  return correct.Only();
}

int64_t SignCorrect(Place& place, const std::vector<float>& logits, const std::vector<int32_t>& labels) {
  Array<float> z(place, logits);
  Array<int32_t> l(place, labels);
  Array<int64_t> correct(place, 1);
  CountSignCorrect(place.stream(), z.span(), l.span(), correct.data());
  CHECK(correct.GuardsIntact());
  return correct.Only();
}

TEST_CASE("correct rows: counts agree with ref over odd shapes") {
  for (const int64_t n : Rows()) {
    for (const int64_t classes : {1, 2, 10, 33, 200}) {
      if (n > 10000 && classes != 2) continue;
      const std::vector<float> scores = Normals(n * classes, "scores");
      const std::vector<double> scores64 = Doubles(scores);
      const std::vector<int32_t> labels = Classes(n, classes), two = Classes(n, 2);
      const int64_t expected = ref::CountArgmaxCorrect({scores64.data(), n, classes}, labels);
      const int64_t expected_signs = ref::CountSignCorrect({scores64.data(), n}, two);
      const std::vector<float> logits(scores.begin(), scores.begin() + n);
      for (Place* place : Places()) {
        CHECK(ArgmaxCorrect(*place, scores, labels) == expected);
        CHECK(SignCorrect(*place, logits, two) == expected_signs);
      }
    }
  }
}

TEST_CASE("correct rows: of equal scores the lowest class counts") {
  for (Place* place : Places()) {
    const std::vector<float> scores = {1, 1, 0, 0, 2, 2};
    CHECK(ArgmaxCorrect(*place, scores, {0, 1}) == 2);
    CHECK(ArgmaxCorrect(*place, scores, {1, 2}) == 0);
    std::vector<float> many(100, 1.0f);
    many[3] = many[35] = many[67] = 2;
    CHECK(ArgmaxCorrect(*place, many, {3}) == 1);
    CHECK(ArgmaxCorrect(*place, std::vector<float>(100, -HUGE_VALF), {0}) == 1);
    CHECK(SignCorrect(*place, {0}, {0}) == 1);
    CHECK(SignCorrect(*place, {0}, {1}) == 0);
  }
}

TEST_CASE("correct rows: what is not a number is never the largest, but where it comes first") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (Place* place : Places()) {
    CHECK(ArgmaxCorrect(*place, {0, nan, 1, nan}, {2}) == 1);
    CHECK(ArgmaxCorrect(*place, {nan, 5, 1, nan}, {0}) == 1);
    CHECK(ArgmaxCorrect(*place, std::vector<float>(40, nan), {0}) == 1);
  }
}

}  // namespace
}  // namespace dtrain::gpu
