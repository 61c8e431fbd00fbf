#include <doctest/doctest.h>

#include <cstring>
#include <numeric>

#include "gpu/ops.h"
#include "gpu/ref/ref.h"
#include "gpu/testing/test_util.h"

namespace dtrain::gpu {
namespace {

using namespace test;

const std::byte* Bytes(const float* values) { return reinterpret_cast<const std::byte*>(values); }

TEST_CASE("non-finite: one bad value anywhere is found") {
  for (Place* place : Places()) {
    for (const int64_t n : {1, 31, 33, 1023, 1024, 1025, 2500}) {
      std::vector<float> values = Normals(n, "v");
      CHECK_FALSE(AnyNonFinite(place->stream(), Bytes(Array<float>(*place, values).data()), n));
      for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
        for (const float bad : {HUGE_VALF, -HUGE_VALF, std::numeric_limits<float>::quiet_NaN()}) {
          const float kept = values[at];
          values[at] = bad;
          CHECK(AnyNonFinite(place->stream(), Bytes(Array<float>(*place, values, 3).data()), n));
          CHECK(ref::AnyNonFinite(Doubles(values)));
          values[at] = kept;
        }
      }
    }
  }
}

TEST_CASE(
    "non-finite: a bad value between those of many blocks is found, and its neighbours are not looked at") {
  for (Place* place : Places()) {
    std::vector<float> values = Normals(kManyBlocks, "v");
    Array<float> good(*place, values, 1);
    CHECK_FALSE(AnyNonFinite(place->stream(), Bytes(good.data()), kManyBlocks));
    values[77777] = HUGE_VALF;
    Array<float> bad(*place, values, 1);
    CHECK(AnyNonFinite(place->stream(), Bytes(bad.data()), kManyBlocks));
    CHECK_FALSE(AnyNonFinite(place->stream(), Bytes(bad.data()), 77777));
  }
}

TEST_CASE("non-finite: on this processor at any address") {
  Stream stream;
  const std::vector<float> values = {1, 2, HUGE_VALF};
  std::vector<std::byte> frame(3 + values.size() * sizeof(float));
  std::memcpy(frame.data() + 3, values.data(), values.size() * sizeof(float));
  CHECK(AnyNonFinite(stream, frame.data() + 3, 3));
  CHECK_FALSE(AnyNonFinite(stream, frame.data() + 3, 2));
}

TEST_CASE("non-finite: zeros, denormals and the largest floats are finite, and so is nothing") {
  for (Place* place : Places()) {
    Array<float> values(*place, {0.0f, -0.0f, 1e-45f, 3.4028234e38f, -3.4028234e38f});
    CHECK_FALSE(AnyNonFinite(place->stream(), Bytes(values.data()), 5));
    CHECK_FALSE(AnyNonFinite(place->stream(), nullptr, 0));
  }
}

TEST_CASE("scale: agrees with ref over odd sizes and leaves the neighbours alone") {
  for (Place* place : Places()) {
    for (const int64_t n : {int64_t{0}, int64_t{1}, int64_t{31}, int64_t{33}, int64_t{1000}, kManyBlocks}) {
      for (const float factor : {0.0f, 1.0f, 0.37f}) {
        const std::vector<float> values = Normals(n, "v");
        std::vector<double> expected = Doubles(values);
        ref::Scale(static_cast<double>(factor), expected);
        Array<float> out(*place, values, n % 4);
        Scale(place->stream(), factor, out.span());
        CHECK(LargestError(out.Read(), expected, 1) <= 0x1p-22);
        CHECK(out.GuardsIntact());
      }
    }
  }
}

TEST_CASE("bytes to floats: all 256 values are the correctly rounded quotient") {
  std::vector<uint8_t> all(256);
  std::iota(all.begin(), all.end(), uint8_t{0});
  for (Place* place : Places()) {
    Array<uint8_t> table(*place, all);
    Array<int64_t> rows(*place, std::vector<int64_t>{0});
    Array<float> out(*place, 256);
    GatherBytes(place->stream(), {table.matrix(1, 256), rows.span()}, out.matrix(1, 256));
    for (int i = 0; i < 256; ++i) CHECK(out.Read()[i] == static_cast<float>(i) / 255.0f);
  }
}

// Rows of a table of five, out of order and one of them twice.
std::vector<int64_t> SomeRows(int64_t count) {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < count; ++i) rows.push_back(i % 4 == 0 ? 4 : i % 3);
  return rows;
}

void CheckGathers(Place& place, int64_t cols, int64_t count, int64_t shift) {
  CAPTURE(place.name());
  CAPTURE(cols);
  const CounterRandom random(3);
  std::vector<uint8_t> bytes(5 * cols);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(random.Bits(i));
  const std::vector<float> floats = Normals(5 * cols, "table");
  const std::vector<double> doubles = Doubles(floats);
  const std::vector<int64_t> numbers = SomeRows(count);
  Array<int64_t> rows(place, numbers);
  Array<uint8_t> byte_table(place, bytes, shift);
  Array<float> table(place, floats, shift), from_bytes(place, count * cols, shift),
      out(place, count * cols, shift);
  GatherBytes(place.stream(), {byte_table.matrix(5, cols), rows.span()}, from_bytes.matrix(count, cols));
  GatherFloats(place.stream(), table.matrix(5, cols), rows.span(), out.matrix(count, cols));
  std::vector<double> expected(count * cols);
  ref::GatherBytes({bytes.data(), 5, cols}, numbers, {expected.data(), count, cols});
  CHECK(LargestError(from_bytes.Read(), expected, 0x1p-24) <= 0x1p-24);  // one rounding
  ref::GatherFloats({doubles.data(), 5, cols}, numbers, {expected.data(), count, cols});
  CHECK(LargestError(out.Read(), expected, 1) == 0);
  CHECK(from_bytes.GuardsIntact());
  CHECK(out.GuardsIntact());
}

TEST_CASE("rows of a table: gathered in the given order over odd widths, bytes and floats") {
  for (Place* place : Places()) {
    for (const int64_t cols : kOddSizes) {
      for (const int64_t count : {0, 1, 4, 33}) CheckGathers(*place, cols, count, cols % 3);
    }
    CheckGathers(*place, 784, 1300, 0);
    CheckGathers(*place, 787, 1300, 1);
  }
}

}  // namespace
}  // namespace dtrain::gpu
