#include "bench/report/turns.h"

namespace dtrain::bench {

void TakeTurns(int rounds, const std::function<void()>& dtrain, const std::function<void()>& limit) {
  for (int round = 0; round < rounds; ++round) {
    const bool dtrain_first = round % 2 == 0;
    (dtrain_first ? dtrain : limit)();
    (dtrain_first ? limit : dtrain)();
  }
}

}  // namespace dtrain::bench
