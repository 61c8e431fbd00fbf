// What a task lets a peer say: bounds that keep arithmetic with it from overflowing.
#pragma once

#include <cstdint>

namespace dtrain {

constexpr uint64_t kMostSteps = (uint64_t{1} << 62) - 1;

}  // namespace dtrain
