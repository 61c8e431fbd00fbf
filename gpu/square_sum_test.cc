#include "gpu/optimizer_ops.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "gpu/ref/ref.h"
#include "gpu/testing/test_util.h"

namespace dtrain::gpu {
namespace {

using namespace test;

const std::byte* Bytes(const std::vector<float>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

SquareSum SumOf(const std::vector<float>& values) {
  Stream stream;
  SquareSum sum;
  AddSquares(stream, Bytes(values), static_cast<int64_t>(values.size()), &sum);
  return sum;
}

// In long double, whose 64 bits round 2^11 times finer than a double's.
double PlainSum(const std::vector<float>& values) {
  long double sum = 0;
  for (const float value : values) sum += static_cast<long double>(value) * value;
  return static_cast<double>(sum);
}

// Magnitudes from 2^-60 to 2^60.
std::vector<float> WideValues(int64_t n) {
  std::vector<float> values = Normals(n, "v");
  for (int64_t i = 0; i < n; ++i) values[i] = std::ldexp(values[i], static_cast<int>(i * 37 % 121) - 60);
  return values;
}

TEST_CASE("square sum: is the plain sum over odd sizes") {
  for (const int64_t n : {0, 1, 2, 3, 31, 33, 1000, 300001}) {
    CAPTURE(n);
    for (const std::vector<float>& values : {Normals(n, "v"), WideValues(n)}) {
      const double expected = PlainSum(values);
      CHECK(std::abs(Total(SumOf(values)) - expected) <= 1e-15 * expected);
    }
  }
}

TEST_CASE("square sum: its root is the norm that ref has") {
  for (const int64_t n : {1, 31, 33, 1000}) {
    const double expected = ref::Norm(Doubles(Normals(n, "v")));
    CHECK(std::abs(std::sqrt(Total(SumOf(Normals(n, "v")))) - expected) <= 1e-15 * expected * 4);
  }
}

TEST_CASE("square sum: the same for every cut, order of the parts and address") {
  Stream stream;
  const std::vector<float> values = WideValues(97);
  const SquareSum whole = SumOf(values);
  for (int64_t cut = 0; cut <= 97; ++cut) {
    std::vector<std::byte> frame(3 + values.size() * sizeof(float));
    std::copy(Bytes(values), Bytes(values) + values.size() * sizeof(float), frame.begin() + 3);
    SquareSum first, second;
    AddSquares(stream, frame.data() + 3, cut, &first);
    AddSquares(stream, frame.data() + 3 + cut * 4, 97 - cut, &second);
    SquareSum forth = first, back = second;
    AddSum(second, &forth);
    AddSum(first, &back);
    CHECK(forth.words == whole.words);
    CHECK(back.words == whole.words);
  }
}

TEST_CASE("square sum: one value's square is exact, from the smallest float to the largest") {
  for (const float value :
       {0.0f, -0.0f, 1e-45f, -3e-40f, 1.17549435e-38f, 0.1f, -1.0f, 3.0f, 3.4028234e38f}) {
    CAPTURE(value);
    CHECK(Total(SumOf({value})) == static_cast<double>(value) * value);
  }
}

TEST_CASE("square sum: a small value beside a large one is not lost, and a tie is decided by it") {
  // 2^53 + 1 lies between two doubles, and goes to the even one; with 2^-100 more it goes up.
  const float half = std::ldexp(1.0f, 26), tiny = std::ldexp(1.0f, -50);
  const std::vector<float> tie = {half, half, 1};
  CHECK(Total(SumOf(tie)) == 0x1p53);
  CHECK(Total(SumOf({half, half, 1, tiny})) == 0x1p53 + 2);
}

TEST_CASE("square sum: many of the largest floats do not overflow") {
  const float most = std::numeric_limits<float>::max();
  SquareSum sum = SumOf(std::vector<float>(1000, most));
  for (int doubled = 0; doubled < 50; ++doubled) AddSum(SquareSum(sum), &sum);
  CHECK(Total(sum) == doctest::Approx(1000 * 0x1p50 * most * most).epsilon(1e-15));
}

TEST_CASE("square sum: infinite where one value is infinite or not a number, in whatever part") {
  for (const float bad : {HUGE_VALF, -HUGE_VALF, std::nanf("")}) {
    SquareSum sum = SumOf({1, 2});
    AddSum(SumOf({1, bad, 2}), &sum);
    CHECK(std::isinf(Total(sum)));
  }
}

}  // namespace
}  // namespace dtrain::gpu
