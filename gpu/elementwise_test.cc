#include <doctest/doctest.h>

#include <cstring>
#include <numeric>

#include "gpu/ops.h"
#include "gpu/ref/ref.h"
#include "gpu/test_util.h"

namespace dtrain::gpu {
namespace {

using namespace test;

const std::byte* Bytes(const std::vector<float>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

// The same floats, starting `shift` bytes into the returned memory.
std::vector<std::byte> Shifted(const std::vector<float>& values, size_t shift) {
  std::vector<std::byte> bytes(shift + values.size() * sizeof(float));
  if (!values.empty()) std::memcpy(bytes.data() + shift, values.data(), values.size() * sizeof(float));
  return bytes;
}

TEST_CASE("non-finite: one bad value anywhere is found, at any address") {
  Stream stream(Backend::kCpu);
  for (const int64_t n : {1, 31, 33, 1023, 1024, 1025, 2500}) {
    std::vector<float> values = Normals(n, "v");
    CHECK_FALSE(AnyNonFinite(stream, Bytes(values), n));
    for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
      for (const float bad : {HUGE_VALF, -HUGE_VALF, std::numeric_limits<float>::quiet_NaN()}) {
        const float kept = values[at];
        values[at] = bad;
        const std::vector<std::byte> frame = Shifted(values, 3);
        CHECK(AnyNonFinite(stream, frame.data() + 3, n));
        CHECK(ref::AnyNonFinite(Doubles(values)));
        values[at] = kept;
      }
    }
  }
}

TEST_CASE("non-finite: zeros, denormals and the largest floats are finite, and so is nothing") {
  Stream stream(Backend::kCpu);
  const std::vector<float> values = {0.0f, -0.0f, 1e-45f, 3.4028234e38f, -3.4028234e38f};
  CHECK_FALSE(AnyNonFinite(stream, Bytes(values), 5));
  CHECK_FALSE(AnyNonFinite(stream, nullptr, 0));
}

TEST_CASE("scale: agrees with ref over odd sizes and leaves the neighbours alone") {
  Stream stream(Backend::kCpu);
  for (const int64_t n : {0, 1, 31, 33, 1000}) {
    for (const float factor : {0.0f, 1.0f, 0.37f}) {
      const std::vector<float> values = Normals(n, "v");
      std::vector<double> expected = Doubles(values);
      ref::Scale(static_cast<double>(factor), expected);
      Guarded<float> out(n);
      std::copy(values.begin(), values.end(), out.span().data);
      Scale(stream, factor, out.span());
      CHECK(LargestError(out.span(), expected, 1) <= 0x1p-22);
      CHECK(out.GuardsIntact());
    }
  }
}

TEST_CASE("bytes to floats: all 256 values are the correctly rounded quotient") {
  Stream stream(Backend::kCpu);
  std::vector<uint8_t> table(256);
  std::iota(table.begin(), table.end(), uint8_t{0});
  Guarded<float> out(256);
  const std::vector<int64_t> first = {0};
  GatherBytes(stream, {{table.data(), 1, 256}, first}, out.matrix(1, 256));
  for (int i = 0; i < 256; ++i) CHECK(out.span()[i] == static_cast<float>(i) / 255.0f);
}

TEST_CASE("bytes to floats: rows are gathered in the given order over odd widths") {
  Stream stream(Backend::kCpu);
  for (const int64_t cols : kOddSizes) {
    CAPTURE(cols);
    std::vector<uint8_t> table(5 * cols);
    const CounterRandom random(3);
    for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<uint8_t>(random.Bits(i));
    const std::vector<int64_t> rows = {4, 0, 0, 3};
    Guarded<float> out(4 * cols);
    std::vector<double> expected(4 * cols);
    GatherBytes(stream, {{table.data(), 5, cols}, rows}, out.matrix(4, cols));
    ref::GatherBytes({table.data(), 5, cols}, rows, {expected.data(), 4, cols});
    CHECK(LargestError(out.span(), expected, 0x1p-24) <= 0x1p-24);  // one rounding
    CHECK(out.GuardsIntact());
  }
}

}  // namespace
}  // namespace dtrain::gpu
