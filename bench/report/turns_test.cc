#include "bench/report/turns.h"

#include <doctest/doctest.h>

#include <string>

namespace dtrain::bench {

TEST_CASE("turns: both sides run once a round and the other one begins the next") {
  std::string order;
  TakeTurns(
      3, [&] { order += 'A'; }, [&] { order += 'B'; });
  CHECK(order == "ABBAAB");
}

}  // namespace dtrain::bench
