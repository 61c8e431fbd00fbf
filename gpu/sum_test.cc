#include <doctest/doctest.h>

#include <cstring>
#include <deque>
#include <string>

#include "gpu/ops.h"
#include "gpu/ref/ref.h"
#include "gpu/testing/test_util.h"

namespace dtrain::gpu {
namespace {

using namespace test;

constexpr int64_t kMaxInputs = 35;  // more than two launches take
constexpr int64_t kCounts[] = {1, 2, 3, 5, 16, 17, 31, 32, kMaxInputs};

std::vector<std::vector<float>> Gradients(int64_t size, int64_t count) {
  std::vector<std::vector<float>> values;
  for (int64_t k = 0; k < count; ++k) values.push_back(Normals(size, "g" + std::to_string(k)));
  return values;
}

std::vector<float> Weights(int64_t count) {
  std::vector<float> weights = {0.5f, 0.3f, 0.1f, -2.0f, 0.7f};
  while (static_cast<int64_t>(weights.size()) < count) weights.push_back(weights[weights.size() - 5] + 0.01f);
  weights.resize(static_cast<size_t>(count));
  return weights;
}

// Gradients in a place's memory, each shifted its own way, or all alike.
struct Inputs {
  Inputs(Place& place, const std::vector<std::vector<float>>& values, bool alike) {
    for (size_t k = 0; k < values.size(); ++k) {
      arrays.emplace_back(place, values[k], alike ? 1 : static_cast<int64_t>(k) % 4);
    }
  }
  // From element `first` on.
  std::vector<const float*> Floats(int64_t first = 0) {
    std::vector<const float*> pointers;
    for (Array<float>& array : arrays) pointers.push_back(array.data() + first);
    return pointers;
  }
  std::vector<const std::byte*> Bytes(int64_t first = 0) {
    std::vector<const std::byte*> pointers;
    for (const float* floats : Floats(first)) pointers.push_back(reinterpret_cast<const std::byte*>(floats));
    return pointers;
  }
  std::deque<Array<float>> arrays;
};

// Both kinds of sum of `count` gradients.
void CheckSums(Place& place, int64_t n, int64_t count, bool alike) {
  CAPTURE(place.name());
  CAPTURE(n);
  CAPTURE(count);
  const std::vector<std::vector<float>> values = Gradients(n, count);
  const std::vector<float> weights = Weights(count);
  std::vector<std::vector<double>> doubles;
  for (const std::vector<float>& input : values) doubles.push_back(Doubles(input));
  const std::vector<ref::Vector> oracle_inputs(doubles.begin(), doubles.end());
  Inputs inputs(place, values, alike);
  Array<float> sum(place, n, 1), weighted(place, n, 1);
  Sum(place.stream(), inputs.Bytes(), sum.span());
  WeightedSum(place.stream(), inputs.Floats(), weights, weighted.span());
  std::vector<double> expected(static_cast<size_t>(n));
  ref::Sum(oracle_inputs, expected);
  CHECK(LargestError(sum.Read(), expected, 1) <= static_cast<double>(count) * 0x1p-22);
  ref::WeightedSum(oracle_inputs, Doubles(weights), expected);
  CHECK(LargestError(weighted.Read(), expected, 1) <= static_cast<double>(count + 1) * 0x1p-22);
  CHECK(sum.GuardsIntact());
  CHECK(weighted.GuardsIntact());
}

TEST_CASE("sums: agree with ref over odd sizes and counts and leave the neighbours alone") {
  for (Place* place : Places()) {
    for (const int64_t n : {0, 1, 7, 31, 33, 1000, 5000}) {
      for (const int64_t count : kCounts) {
        CheckSums(*place, n, count, true);
        CheckSums(*place, n, count, false);
      }
    }
    CheckSums(*place, kManyBlocks, 3, true);
    CheckSums(*place, kManyBlocks, 3, false);
  }
}

TEST_CASE("sum: of one gradient is that gradient") {
  for (Place* place : Places()) {
    const std::vector<std::vector<float>> values = Gradients(33, 1);
    Inputs inputs(*place, values, true);
    Array<float> sum(*place, 33);
    Sum(place->stream(), inputs.Bytes(), sum.span());
    CHECK(sum.Read() == values[0]);
  }
}

TEST_CASE("sum: on this processor of frames at any address") {
  Stream stream;
  const std::vector<std::vector<float>> values = Gradients(33, 5);
  std::vector<std::vector<std::byte>> frames;
  std::vector<const std::byte*> shifted, aligned;
  for (size_t k = 0; k < values.size(); ++k) {
    frames.emplace_back(k + 33 * sizeof(float));
    std::memcpy(frames[k].data() + k, values[k].data(), 33 * sizeof(float));
    aligned.push_back(reinterpret_cast<const std::byte*>(values[k].data()));
  }
  for (size_t k = 0; k < frames.size(); ++k) shifted.push_back(frames[k].data() + k);
  std::vector<float> sum(33), expected(33);
  Sum(stream, shifted, sum);
  Sum(stream, aligned, expected);
  CHECK(sum == expected);
}

TEST_CASE("sums: the same bits everywhere, wherever a range is cut, and in place") {
  const int64_t n = 71;
  Place processor;
  for (const int64_t count : {int64_t{3}, kMaxInputs}) {
    const std::vector<std::vector<float>> values = Gradients(n, count);
    const std::vector<float> weights = Weights(count);
    Inputs here(processor, values, true);
    std::vector<float> whole(n), weighted(n);
    Sum(processor.stream(), here.Bytes(), whole);
    WeightedSum(processor.stream(), here.Floats(), weights, weighted);
    for (Place* place : Places()) {
      Inputs inputs(*place, values, true);
      for (int64_t cut = 0; cut <= n; ++cut) {
        Array<float> parts(*place, n), weighted_parts(*place, n);
        Sum(place->stream(), inputs.Bytes(), {parts.data(), cut});
        Sum(place->stream(), inputs.Bytes(cut), {parts.data() + cut, n - cut});
        CHECK(parts.Read() == whole);
        WeightedSum(place->stream(), inputs.Floats(), weights, {weighted_parts.data(), cut});
        WeightedSum(place->stream(), inputs.Floats(cut), weights, {weighted_parts.data() + cut, n - cut});
        CHECK(weighted_parts.Read() == weighted);
      }
      WeightedSum(place->stream(), inputs.Floats(), weights, inputs.arrays[0].span());
      CHECK(inputs.arrays[0].Read() == weighted);
    }
  }
}

}  // namespace
}  // namespace dtrain::gpu
