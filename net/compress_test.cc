#include "net/compress.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/random.h"

namespace dtrain::net {
namespace {

using Bytes = std::vector<std::byte>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr Compression kForms[] = {Compression::kBf16, Compression::kInt8, Compression::kTopk};
constexpr int64_t kSizes[] = {0, 1, 15, 16, 17, 31, 255, 256, 257, 300, 512, 1000, 7850};

std::vector<float> Random(int64_t count, uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.1f);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

Bytes Compressed(Compression form, const std::vector<float>& values, std::vector<float>* residual = nullptr) {
  const auto count = static_cast<int64_t>(values.size());
  const size_t size = CompressedBytes(form, count);
  Bytes bytes(size + 1, std::byte{0x5a});  // the last one is a guard
  Compress(form, values.data(), residual == nullptr ? nullptr : residual->data(), count, bytes.data());
  CHECK(bytes.back() == std::byte{0x5a});
  bytes.pop_back();
  return bytes;
}

std::vector<float> Decompressed(Compression form, const Bytes& bytes, size_t count) {
  std::vector<float> values(count + 1, 42);
  REQUIRE(Decompress(form, bytes.data(), bytes.size(), static_cast<int64_t>(count), values.data()));
  CHECK(values.back() == 42);
  values.pop_back();
  return values;
}

std::vector<float> Sent(Compression form, const std::vector<float>& values,
                        std::vector<float>* residual = nullptr) {
  return Decompressed(form, Compressed(form, values, residual), values.size());
}

TEST_CASE("compress: the bytes of each form, also of a last group that is short") {
  CHECK(CompressedBytes(Compression::kNone, 300) == 1200);
  CHECK(CompressedBytes(Compression::kBf16, 300) == 600);
  CHECK(CompressedBytes(Compression::kInt8, 256) == 260);
  CHECK(CompressedBytes(Compression::kInt8, 257) == 265);
  CHECK(CompressedBytes(Compression::kTopk, 256) == 48);
  CHECK(CompressedBytes(Compression::kTopk, 257) == 51);
  CHECK(CompressedBytes(Compression::kTopk, 300) == 96);
  for (const Compression form : kForms) CHECK(CompressedBytes(form, 0) == 0);
}

TEST_CASE("compress: bf16 is the nearest float32 with 8 bits of mantissa, the even one of two") {
  const std::vector<float> values = {1, 1.00390625f, 1.01171875f, -1.0040f, 0, 3e-41f};
  const std::vector<float> sent = Sent(Compression::kBf16, values);
  CHECK(sent[0] == 1);
  CHECK(sent[1] == 1);            // between 1 and 1.0078125
  CHECK(sent[2] == 1.015625f);    // between 1.0078125 and 1.015625
  CHECK(sent[3] == -1.0078125f);  // just above the middle
  CHECK(sent[4] == 0);
  for (const int64_t count : kSizes) {
    const std::vector<float> many = Random(count), got = Sent(Compression::kBf16, many);
    for (size_t i = 0; i < many.size(); ++i) CHECK(std::abs(got[i] - many[i]) <= std::abs(many[i]) / 256);
  }
}

TEST_CASE("compress: int8 is within half a step of each group's scale") {
  for (const int64_t count : kSizes) {
    CAPTURE(count);
    const std::vector<float> values = Random(count), sent = Sent(Compression::kInt8, values);
    for (size_t begin = 0; begin < values.size(); begin += kGroupValues) {
      const size_t end = std::min(values.size(), begin + kGroupValues);
      float max = 0;
      for (size_t i = begin; i < end; ++i) max = std::max(max, std::abs(values[i]));
      for (size_t i = begin; i < end; ++i) CHECK(std::abs(sent[i] - values[i]) <= max / 127 * 0.50001f);
    }
  }
  std::vector<float> tiny(300, 1e-40f);
  tiny[299] = 2;
  const std::vector<float> sent = Sent(Compression::kInt8, tiny);
  CHECK(sent[0] == 0);
  CHECK(sent[299] == 2);
}

TEST_CASE("compress: topk keeps the largest of each group, and of equals the first") {
  std::vector<float> values(300, 0.5f);
  for (size_t i = 0; i < 10; ++i)
    values[i * 20 + 5] = (i % 2 == 0 ? 1.0f : -1.0f) * (2 + static_cast<float>(i));
  values[290] = -8;
  const std::vector<float> sent = Sent(Compression::kTopk, values);
  std::vector<float> expected(300, 0);
  for (size_t i = 0; i < 10; ++i) expected[i * 20 + 5] = values[i * 20 + 5];
  for (const size_t i : {0u, 1u, 2u, 3u, 4u, 6u}) expected[i] = 0.5f;
  for (size_t i = 256; i < 271; ++i) expected[i] = 0.5f;
  expected[290] = -8;
  CHECK(sent == expected);

  for (const int64_t count : kSizes) {
    CAPTURE(count);
    const std::vector<float> many = Random(count), got = Sent(Compression::kTopk, many);
    for (size_t begin = 0; begin < many.size(); begin += kGroupValues) {
      const size_t end = std::min(many.size(), begin + kGroupValues);
      float kept = kInfinity, dropped = 0;
      int64_t taken = 0;
      for (size_t i = begin; i < end; ++i) {
        taken += got[i] != 0 ? 1 : 0;
        if (got[i] != 0) kept = std::min(kept, std::abs(many[i]));
        if (got[i] == 0) dropped = std::max(dropped, std::abs(many[i]));
      }
      CHECK(taken == std::min<int64_t>(kTopValues, static_cast<int64_t>(end - begin)));
      CHECK(kept >= dropped);
    }
  }
}

TEST_CASE(
    "compress: what is left out is sent later: sums of all that was sent differ by the residual alone") {
  for (const Compression form : kForms) {
    CAPTURE(CompressionName(form));
    std::vector<float> residual(1000);
    std::vector<double> given(1000), got(1000);
    for (uint32_t step = 0; step < 50; ++step) {
      const std::vector<float> values = Random(1000, step), sent = Sent(form, values, &residual);
      for (size_t i = 0; i < 1000; ++i) given[i] += values[i], got[i] += sent[i];
    }
    for (size_t i = 0; i < 1000; ++i) CHECK(given[i] == doctest::Approx(got[i] + residual[i]).epsilon(1e-4));
  }
}

Bytes AtRandom(Compression form, const std::vector<float>& values, uint64_t seed) {
  const auto count = static_cast<int64_t>(values.size());
  const size_t size = CompressedBytes(form, count);
  Bytes bytes(size + 1, std::byte{0x5a});  // the last one is a guard
  CompressAtRandom(form, values.data(), seed, count, bytes.data());
  CHECK(bytes.back() == std::byte{0x5a});
  bytes.pop_back();
  return bytes;
}

TEST_CASE("compress at random: a value becomes one of its neighbours, and on average stays what it is") {
  constexpr int kSeeds = 4000;
  const CounterRandom seeds(7);
  std::vector<float> values = Random(600);
  for (size_t i = 0; i < values.size(); i += 3) values[i] *= 1e-3f;  // beside larger ones of its group
  values[5] = 0;
  for (const Compression form : {Compression::kBf16, Compression::kInt8}) {
    CAPTURE(CompressionName(form));
    std::vector<double> sums(values.size());
    std::vector<float> steps(values.size());  // between neighbours
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t begin = i / kGroupValues * kGroupValues, end = std::min<size_t>(begin + kGroupValues, 600);
      float max = 0;
      for (size_t at = begin; at < end; ++at) max = std::max(max, std::abs(values[at]));
      steps[i] = form == Compression::kInt8 ? max / 127 : std::abs(values[i]) / 128;
    }
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      const std::vector<float> sent = Decompressed(form, AtRandom(form, values, seeds.Bits(seed)), 600);
      for (size_t i = 0; i < sent.size(); ++i) {
        sums[i] += sent[i];
        if (std::abs(sent[i] - values[i]) > steps[i] * 1.0001f) FAIL("value ", i, " became ", sent[i]);
      }
    }
    CHECK(sums[5] == 0);
    for (size_t i = 0; i < values.size(); ++i) {
      // Five standard deviations of the mean of that many draws, which are at most half a step each.
      const double allowed = 5 * steps[i] / 2 / std::sqrt(kSeeds) + 1e-12;
      CHECK(std::abs(sums[i] / kSeeds - values[i]) <= allowed);
    }
  }
}

TEST_CASE("compress at random: the bits are a pure function of the seed and of a value's place") {
  const std::vector<float> values = Random(1000);
  for (const Compression form : {Compression::kBf16, Compression::kInt8}) {
    CAPTURE(CompressionName(form));
    const Bytes bytes = AtRandom(form, values, 99);
    CHECK(AtRandom(form, values, 99) == bytes);
    for (const uint64_t other : {98ull, 99ull | 1ull << 32, 99ull | 1ull << 63}) {
      const Bytes others = AtRandom(form, values, other);
      int64_t same = 0;
      for (size_t i = 0; i < bytes.size(); ++i) same += bytes[i] == others[i];
      CHECK(same < static_cast<int64_t>(bytes.size()) * 9 / 10);  // the first bytes of bf16 are
    }
    const Bytes front = AtRandom(form, {values.begin(), values.begin() + 512}, 99);
    CHECK(std::equal(front.begin(), front.end(), bytes.begin()));
  }
}

TEST_CASE("compress at random: what is not finite stays so, and what a form has exactly stays exact") {
  for (const Compression form : {Compression::kBf16, Compression::kInt8}) {
    for (const float bad : {kNan, kInfinity, -kInfinity, std::numeric_limits<float>::signaling_NaN()}) {
      std::vector<float> values = Random(600);
      values[300] = bad;
      const std::vector<float> sent = Decompressed(form, AtRandom(form, values, 3), 600);
      CHECK_FALSE(std::isfinite(sent[300]));
      CHECK(std::all_of(sent.begin(), sent.begin() + 256, [](float value) { return std::isfinite(value); }));
    }
    for (const int64_t count : kSizes) {
      std::vector<float> values(static_cast<size_t>(count));
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = i % 4 == 0 ? 127.0f : static_cast<float>(i % 7) - 3;
      CHECK(Decompressed(form, AtRandom(form, values, 11), values.size()) == values);
    }
  }
}

TEST_CASE("compress: a tensor that is cut between groups has the same bytes and residuals as the whole") {
  for (const Compression form : kForms) {
    CAPTURE(CompressionName(form));
    const std::vector<float> values = Random(1000);
    std::vector<float> residual = Random(1000, 7);
    std::vector<float> front(residual.begin(), residual.begin() + 512),
        back(residual.begin() + 512, residual.end());
    const Bytes whole = Compressed(form, values, &residual);
    Bytes parts = Compressed(form, {values.begin(), values.begin() + 512}, &front);
    const Bytes rest = Compressed(form, {values.begin() + 512, values.end()}, &back);
    parts.insert(parts.end(), rest.begin(), rest.end());
    CHECK(parts == whole);
    front.insert(front.end(), back.begin(), back.end());
    CHECK(front == residual);
  }
}

TEST_CASE("compress: a value that is not finite is found on the other side, and leaves no residual") {
  for (const Compression form : kForms) {
    CAPTURE(CompressionName(form));
    for (const float bad : {kNan, kInfinity, -kInfinity, std::numeric_limits<float>::signaling_NaN()}) {
      std::vector<float> values = Random(600), residual(600);
      values[300] = bad;
      const std::vector<float> sent = Sent(form, values, &residual);
      CHECK_FALSE(std::isfinite(sent[300]));
      CHECK(std::all_of(sent.begin(), sent.begin() + 256, [](float value) { return std::isfinite(value); }));
      CHECK(std::all_of(residual.begin(), residual.end(), [](float value) { return std::isfinite(value); }));
    }
  }
}

TEST_CASE("compress: the wrong number of bytes, and places out of order or out of their group, are refused") {
  std::vector<float> out(300);
  for (const Compression form : kForms) {
    const Bytes bytes = Compressed(form, Random(300));
    CHECK_FALSE(Decompress(form, bytes.data(), bytes.size() - 1, 300, out.data()));
    CHECK_FALSE(Decompress(form, bytes.data(), bytes.size(), 260, out.data()));
    CHECK_FALSE(Decompress(form, bytes.data(), 0, 300, out.data()));
  }
  const Bytes good = Compressed(Compression::kTopk, Random(300));
  const auto takes = [&](const Bytes& bytes) {
    return Decompress(Compression::kTopk, bytes.data(), bytes.size(), 300, out.data());
  };
  CHECK(takes(good));
  Bytes bad = good;
  bad[1] = bad[0];
  CHECK_FALSE(takes(bad));
  bad = good;
  std::swap(bad[48], bad[49]);  // the second group's first places
  CHECK_FALSE(takes(bad));
  bad = good;
  bad[48 + 15] = std::byte{44};  // it has 44 values
  CHECK_FALSE(takes(bad));
}

}  // namespace
}  // namespace dtrain::net
