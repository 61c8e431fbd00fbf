#include <doctest/doctest.h>

#include <cstring>
#include <string>

#include "gpu/ops.h"
#include "gpu/ref/ref.h"
#include "gpu/test_util.h"

namespace dtrain::gpu {
namespace {

using namespace test;

constexpr int64_t kMostInputs = 5;

// Gradients as they lie in frames: each at an address of its own alignment.
struct Frames {
  explicit Frames(int64_t size) {
    for (int64_t k = 0; k < kMostInputs; ++k) {
      values.push_back(Normals(size, "g" + std::to_string(k)));
      std::vector<std::byte> bytes(static_cast<size_t>(k) + values.back().size() * sizeof(float));
      if (size > 0) std::memcpy(bytes.data() + k, values.back().data(), values.back().size() * sizeof(float));
      frames.push_back(std::move(bytes));
    }
  }
  // The first `count` of them, from element `first` on.
  std::vector<const std::byte*> From(int64_t count, int64_t first = 0) const {
    std::vector<const std::byte*> pointers;
    for (int64_t k = 0; k < count; ++k) {
      pointers.push_back(frames[static_cast<size_t>(k)].data() + k + first * 4);
    }
    return pointers;
  }
  std::vector<std::vector<float>> values;
  std::vector<std::vector<std::byte>> frames;
};

TEST_CASE("sum: agrees with ref over odd sizes and counts and leaves the neighbours alone") {
  Stream stream(Backend::kCpu);
  for (const int64_t n : {0, 1, 7, 31, 33, 1000}) {
    const Frames frames(n);
    for (int64_t count = 1; count <= kMostInputs; ++count) {
      CAPTURE(n);
      CAPTURE(count);
      std::vector<std::vector<double>> doubles;
      for (int64_t k = 0; k < count; ++k) doubles.push_back(Doubles(frames.values[static_cast<size_t>(k)]));
      const std::vector<ref::Vector> inputs(doubles.begin(), doubles.end());
      std::vector<double> expected(static_cast<size_t>(n));
      ref::Sum(inputs, expected);
      Guarded<float> sum(n);
      Sum(stream, frames.From(count), sum.span());
      CHECK(LargestError(sum.span(), expected, 1) <= static_cast<double>(count) * 0x1p-22);
      CHECK(sum.GuardsIntact());
    }
  }
}

TEST_CASE("sum: of one gradient is that gradient") {
  Stream stream(Backend::kCpu);
  const Frames frames(33);
  std::vector<float> sum(33);
  Sum(stream, frames.From(1), sum);
  CHECK(sum == frames.values[0]);
}

TEST_CASE("sum: the same bits wherever a range is cut") {
  Stream stream(Backend::kCpu);
  const int64_t n = 71;
  const Frames frames(n);
  std::vector<float> whole(static_cast<size_t>(n));
  Sum(stream, frames.From(3), whole);
  for (int64_t cut = 0; cut <= n; ++cut) {
    std::vector<float> parts(static_cast<size_t>(n));
    Sum(stream, frames.From(3), {parts.data(), cut});
    Sum(stream, frames.From(3, cut), {parts.data() + cut, n - cut});
    CHECK(parts == whole);
  }
}

// The first `count` gradients of `values`, from element `first` on.
std::vector<const float*> Pointers(const std::vector<std::vector<float>>& values, int64_t count,
                                   int64_t first = 0) {
  std::vector<const float*> pointers;
  for (int64_t k = 0; k < count; ++k) pointers.push_back(values[static_cast<size_t>(k)].data() + first);
  return pointers;
}

const std::vector<float> kWeights = {0.5f, 0.3f, 0.1f, -2.0f, 0.7f};

TEST_CASE("weighted sum: agrees with ref over odd sizes and counts and leaves the neighbours alone") {
  Stream stream(Backend::kCpu);
  for (const int64_t n : {0, 1, 7, 31, 33, 5000}) {
    const Frames frames(n);
    for (int64_t count = 1; count <= kMostInputs; ++count) {
      CAPTURE(n);
      CAPTURE(count);
      const std::vector<float> weights(kWeights.begin(), kWeights.begin() + count);
      std::vector<std::vector<double>> doubles;
      for (int64_t k = 0; k < count; ++k) doubles.push_back(Doubles(frames.values[static_cast<size_t>(k)]));
      const std::vector<ref::Vector> inputs(doubles.begin(), doubles.end());
      std::vector<double> expected(static_cast<size_t>(n));
      ref::WeightedSum(inputs, Doubles(weights), expected);
      Guarded<float> sum(n);
      WeightedSum(stream, Pointers(frames.values, count), weights, sum.span());
      CHECK(LargestError(sum.span(), expected, 1) <= static_cast<double>(count + 1) * 0x1p-22);
      CHECK(sum.GuardsIntact());
    }
  }
}

TEST_CASE("weighted sum: the same bits wherever a range is cut, and in place") {
  Stream stream(Backend::kCpu);
  const int64_t n = 71;
  const Frames frames(n);
  const std::vector<float> weights(kWeights.begin(), kWeights.begin() + 3);
  std::vector<float> whole(static_cast<size_t>(n));
  WeightedSum(stream, Pointers(frames.values, 3), weights, whole);
  for (int64_t cut = 0; cut <= n; ++cut) {
    std::vector<float> parts(static_cast<size_t>(n));
    WeightedSum(stream, Pointers(frames.values, 3), weights, {parts.data(), cut});
    WeightedSum(stream, Pointers(frames.values, 3, cut), weights, {parts.data() + cut, n - cut});
    CHECK(parts == whole);
  }
  std::vector<std::vector<float>> values = frames.values;
  WeightedSum(stream, Pointers(values, 3), weights, values[0]);
  CHECK(values[0] == whole);
}

}  // namespace
}  // namespace dtrain::gpu
