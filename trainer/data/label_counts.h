// How often each class occurs in the parts of the data. Looks at every label once.
// Thread: any; free functions.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/data/source.h"

namespace dtrain {

// By class, up to the largest that occurs; empty: there are no rows, they have no end, or targets.
struct LabelCounts {
  std::vector<int64_t> held_out;  // the first data.validation training rows
  std::vector<int64_t> trained;   // the other training rows
  std::vector<int64_t> test;
};

LabelCounts CountLabels(const LoadedData& data, int64_t validation);

}  // namespace dtrain
