// The order in which both sides of a row are measured.
#pragma once

#include <functional>

namespace dtrain::bench {

// Each side once a round, A B B A A B: next to each other, so that what slows the machine down for a while
// meets both, and each first in turn, so that what grows or fades all the time favours neither.
void TakeTurns(int rounds, const std::function<void()>& dtrain, const std::function<void()>& limit);

}  // namespace dtrain::bench
