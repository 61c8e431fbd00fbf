// The rows of hooks, failure, checkpoint and summary in the table of keys. Only fields.cc includes this.
#pragma once

#include <vector>

#include "trainer/config/fields.h"

namespace dtrain {

std::vector<Field> RunningFields();
std::vector<Field> CheckpointFields();
std::vector<Field> SummaryFields();

}  // namespace dtrain
