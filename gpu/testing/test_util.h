// Helpers for the tests of operations: random inputs, comparison with ref, and the places where tests run:
// this processor and the first device of the program's runtime (MakeRuntime in cuda/runtime.h), fake or real.
// Arrays lie in a place's memory, between guard words.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "gpu/cuda/queue.h"
#include "gpu/ops.h"

namespace dtrain::gpu::test {

// Sizes of rows, inputs and outputs: none, one, around a vector's width, around the limits for BLAS.
constexpr int64_t kOddSizes[] = {0, 1, 2, 3, 4, 7, 31, 33, 100};
// Enough elements that each block of the fake device loops more than once.
constexpr int64_t kManyBlocks = 300007;

inline std::vector<float> Normals(int64_t count, std::string_view stream, double stddev = 1) {
  const CounterRandom random = CounterRandom(7).Stream(stream);
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(stddev * random.Normal(i));
  return values;
}

inline std::vector<int32_t> Classes(int64_t count, int64_t classes) {
  const CounterRandom random = CounterRandom(7).Stream("classes");
  std::vector<int32_t> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<int32_t>(random.Below(i, classes));
  return values;
}

inline std::vector<double> Doubles(const std::vector<float>& values) {
  return std::vector<double>(values.begin(), values.end());
}

// Returns the largest |a - b| / (|b| + floor) of two ranges of equal length; infinity if only one is NaN.
template <typename A, typename B>
double LargestError(const A& values, const B& expected, double floor) {
  double largest = 0;
  auto right = expected.begin();
  for (const auto value : values) {
    const double error = std::abs(static_cast<double>(value) - *right) / (std::abs(*right) + floor);
    ++right;
    if (!(error <= largest)) largest = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
  }
  return largest;
}

// Place: this processor, or a device.
class Place {
 public:
  Place() = default;  // this processor
  explicit Place(std::unique_ptr<cuda::Runtime> runtime);

  std::string name() const { return queue_ == nullptr ? "cpu" : "cuda"; }
  Stream& stream() { return stream_; }
  cuda::Queue* queue() { return queue_.get(); }  // null: this processor

 private:
  std::unique_ptr<cuda::Runtime> runtime_;
  std::unique_ptr<cuda::Device> device_;
  std::unique_ptr<cuda::Queue> queue_;
  Stream stream_;
};

// Returns this processor and the device.
const std::vector<Place*>& Places();

// Limits the kernels of this processor to the instruction sets `targets`, bits of Highway's; 0: no limit.
void UseInstructions(int64_t targets);

// Array: elements in a place's memory. Guards and unset elements are bytes of 0xff (as a float NaN), so that
// an element that an operation skips or adds to is noticed. `shift`: the array begins this many elements
// behind an address that is aligned for packs.
template <typename T>
class Array {
 public:
  Array(Place& place, int64_t size, int64_t shift = 0) : Array(place, Untouched(size), shift) {}
  Array(Place& place, const std::vector<T>& values, int64_t shift = 0)
      : place_(place), first_(kGuards + shift), size_(static_cast<int64_t>(values.size())) {
    memory_.resize(static_cast<size_t>(first_ + size_ + kGuards));
    std::memset(static_cast<void*>(memory_.data()), 0xff, Bytes());
    std::copy(values.begin(), values.end(), memory_.begin() + first_);
    if (place_.queue() == nullptr) return;
    buffer_ = cuda::Buffer<T>(*place_.queue(), static_cast<int64_t>(memory_.size()), "a test");
    place_.queue()->Copy(buffer_.data(), memory_.data(), buffer_.bytes());
  }

  T* data() { return (place_.queue() == nullptr ? memory_.data() : buffer_.data()) + first_; }
  Span<T> span() { return {data(), size_}; }
  MatrixView<T> matrix(int64_t rows, int64_t cols) { return {data(), rows, cols}; }

  // Returns the elements, after all queued work is done.
  std::vector<T> Read() {
    Fetch();
    return {memory_.begin() + first_, memory_.begin() + first_ + size_};
  }
  T Only() { return Read().at(0); }
  bool GuardsIntact() {
    Fetch();
    const auto* const bytes = reinterpret_cast<const unsigned char*>(memory_.data());
    const auto untouched = [](unsigned char byte) { return byte == 0xff; };
    return std::all_of(bytes, bytes + first_ * sizeof(T), untouched) &&
           std::all_of(bytes + (first_ + size_) * sizeof(T), bytes + Bytes(), untouched);
  }

 private:
  static constexpr int64_t kGuards = 16;
  static std::vector<T> Untouched(int64_t size) {
    std::vector<T> values(static_cast<size_t>(size));
    if (size > 0) std::memset(static_cast<void*>(values.data()), 0xff, values.size() * sizeof(T));
    return values;
  }
  size_t Bytes() const { return memory_.size() * sizeof(T); }
  void Fetch() {
    if (place_.queue() != nullptr) place_.queue()->Copy(memory_.data(), buffer_.data(), buffer_.bytes());
  }

  Place& place_;
  const int64_t first_, size_;
  std::vector<T> memory_;  // the elements; for a device, as last read from it
  cuda::Buffer<T> buffer_;
};

}  // namespace dtrain::gpu::test
