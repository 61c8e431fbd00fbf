// CounterRandom: random numbers by counter. A value is a pure function of (key, counter), so every owner of a
// range of a tensor can fill it, in any order, with the same bits.
// The mixing function is the finaliser of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom
// number generators", OOPSLA 2014), applied twice so that neighbouring keys do not correlate. Thread: any.
#pragma once

#include <cstdint>
#include <string_view>

namespace dtrain {

constexpr uint64_t Mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

class CounterRandom {
 public:
  explicit constexpr CounterRandom(uint64_t seed) : key_(Mix64(seed + 0x9e3779b97f4a7c15ull)) {}

  // Returns an independent stream named by a number or a text.
  constexpr CounterRandom Stream(uint64_t id) const {
    return CounterRandom(key_ ^ Mix64(id * 0xd1342543de82ef95ull + 0x632be59bd9b4e019ull));
  }
  CounterRandom Stream(std::string_view name) const;

  constexpr uint64_t Bits(uint64_t counter) const {
    return Mix64(Mix64(key_ + counter * 0x9e3779b97f4a7c15ull) ^ key_);
  }
  // Returns a value in [0, bound), for 1 <= bound < 2^32. The bias of the multiply-shift is below bound /
  // 2^32.
  constexpr uint64_t Below(uint64_t counter, uint64_t bound) const {
    return ((Bits(counter) >> 32) * bound) >> 32;
  }
  // Returns a value in [0, 1) with 53 bits.
  constexpr double Uniform(uint64_t counter) const {
    return static_cast<double>(Bits(counter) >> 11) * 0x1p-53;
  }
  // Returns a standard normal value by Box and Muller (1958), cosine branch.
  double Normal(uint64_t counter) const;

 private:
  uint64_t key_;
};

}  // namespace dtrain
