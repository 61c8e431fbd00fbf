#include "base/random.h"

#include <cmath>

namespace dtrain {

CounterRandom CounterRandom::Stream(std::string_view name) const {
  uint64_t hash = 0xcbf29ce484222325ull;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return Stream(hash);
}

double CounterRandom::Normal(uint64_t counter) const {
  constexpr double kTwoPi = 6.283185307179586;
  const double radius = std::sqrt(-2.0 * std::log(1.0 - Uniform(2 * counter)));
  return radius * std::cos(kTwoPi * Uniform(2 * counter + 1));
}

}  // namespace dtrain
