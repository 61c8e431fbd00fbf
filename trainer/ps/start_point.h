// StartPoint: where a worker begins, or goes on, as ps 0 tells it with Start. Plain data.
#pragma once

#include <cstdint>

namespace dtrain {

struct StartPoint {
  int64_t local_step = 0;  // its next one: where its data go on
  uint64_t clock = 0;      // ssp: the count of gradients that it begins with, the same at every ps
  // sync: it was lost and waited for. Its next gradient is of the weights of `version`, which every ps has.
  bool resume = false;
  uint64_t version = 0;
  // That gradient is in a round which was decided before the worker was lost. It may have reached some ps and
  // not others, so it is computed and sent once more; where it has been counted it is not counted again.
  bool again = false;
};

}  // namespace dtrain
